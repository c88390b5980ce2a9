//! Whether some text of a language continues canonically: what keeps masks off dead ends.
//!
//! A token is *live* if some text that the language allows is encoded into the tokens so far, this
//! token and others. Where a piece may begin and the language allows a character after which nothing
//! is known of the pieces before, any text with that character shows it: each has a tokenization.
//! So does a space and such a character.
//! So does one within a piece that no token has after the byte before it.
//! Otherwise some tokens are tried, those with few bytes first, each with what shows it after them.
//! If that does not decide, the shortest text may show it, here and after other tokens.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::pretokenizer::{Boundaries, HypothesisId};
use crate::vocabulary::{ByteTrie, Descent, NodeId, TokenId};

use super::context::{at_a_piece, Canonicality, Context, Hypothesis, Way, Whole};
use super::cover::{Choice, Cover, ForcedOptions, Language, Next, LIKELY_BYTES, MAX_ASKED};

/// A language that knows short texts.
pub trait Completed: Language<State: Eq + Hash> {
    /// Returns a text that ends in this state, up to its first special token; `None` if none is
    /// found.
    fn completion(&self, state: &Self::State) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The result of an earlier search.
    fn known(&self, _place: &(Self::State, Context), _searched: Searched) -> Option<Liveness> {
        None
    }

    /// Keeps the result of a search.
    fn keep(&self, _place: &(Self::State, Context), _searched: Searched, _found: Liveness) {}

    /// Tokens that earlier searches read in a state and a way and that are not dead.
    fn followers(&self, _place: &(Self::State, Way)) -> Option<Arc<[TokenId]>> {
        None
    }

    /// Keeps such tokens.
    fn keep_followers(&self, _place: (Self::State, Way), _tokens: Arc<[TokenId]>) {}

    /// Counts steps of the search, each of some dozen instructions.
    ///
    /// # Errors
    /// They are too many.
    fn charge(&self, _steps: usize) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Some canonical tokens end the text.
    Live,
    /// None do.
    Dead,
    /// Neither is shown within the effort of a search.
    Undecided,
}

/// How a place was looked at, which tells where a search ends undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Searched {
    /// By itself.
    Alone,
    /// With other tokens that lead there.
    Together,
}

/// How many tokens one search tries, and how many it tries before it looks for shortest texts.
const MAX_TRIED: usize = 512;
const FIRST_TRIED: usize = 32;

/// Of how many next bytes each is looked at with the state after it.
const FEW_BYTES: usize = 8;

/// Where tokens lead to so many states, most of these are new, and one after them is made only where
/// a token follows.
const MANY_STATES: usize = 64;

/// A text, and from where in it which contexts reach its end.
struct Ending {
    text: Vec<u8>,
    known: FxHashMap<(usize, Context), bool>,
}

/// Answers about one language that are kept.
pub struct Liveliness<'a, L: Completed> {
    canonicality: &'a Canonicality,
    choice: Choice<'a>,
    language: &'a L,
    endings: FxHashMap<L::State, Option<Ending>>,
    /// Whether texts go on with one of some characters, by state.
    anew: FxHashMap<(L::State, u128), bool>,
    known: FxHashMap<Place<L>, Liveness>,
    are_many: bool,
}

impl<L: Completed + std::fmt::Debug> std::fmt::Debug for Liveliness<'_, L> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Liveliness")
            .field("language", self.language)
            .finish_non_exhaustive()
    }
}

/// A state of the language, and which characters of one byte continue its texts.
#[derive(Debug)]
pub struct Begun<L: Completed> {
    state: L::State,
    /// Those that were looked at without a target state being made: most are better not made.
    tried: u128,
    found: u128,
    refused: u128,
    listed: Option<SmallVec<[u8; 16]>>,
}

impl<L: Completed> Begun<L> {
    /// Whether one of some characters of one byte is shown to continue texts.
    fn goes_on(&mut self, language: &L, bytes: u128) -> Result<bool, L::Error> {
        if self.found & bytes != 0 {
            return Ok(true);
        }
        let untried = bytes & !self.tried;
        let (found, tried) = self.first(language, untried, L::goes_on_within)?;
        self.tried |= tried;
        self.found |= found;
        Ok(found != 0)
    }

    /// Whether one of some characters of one byte continues texts. If more than `most` may, only
    /// those are looked at that need no target state.
    fn comes(&mut self, language: &L, bytes: u128, most: usize) -> Result<bool, L::Error> {
        if self.goes_on(language, bytes)? {
            return Ok(true);
        }
        if self.listed.as_ref().is_some_and(|listed| listed.len() > most) {
            return Ok(false);
        }
        let untried = bytes & !self.refused;
        let (found, tried) = self.first(language, untried, L::may_come)?;
        self.refused |= tried & !found;
        self.found |= found;
        Ok(found != 0)
    }

    /// Of some characters the first that does, likely ones first; and those that were looked at.
    fn first(
        &mut self,
        language: &L,
        bytes: u128,
        does: impl Fn(&L, &L::State, u8) -> Result<bool, L::Error>,
    ) -> Result<(u128, u128), L::Error> {
        if bytes == 0 {
            return Ok((0, 0));
        }
        if self.listed.is_none() {
            let mut listed = SmallVec::new();
            if !language.list_bytes(&self.state, &mut listed)? {
                listed.clear();
                listed.extend(LIKELY_BYTES.iter().copied().chain(b' '..0x7F));
            }
            self.listed = Some(listed);
        }
        let mut tried = 0;
        for &byte in self.listed.iter().flatten() {
            if byte < 0x80 && bytes >> byte & 1 == 1 {
                tried |= 1 << byte;
                if does(language, &self.state, byte)? {
                    return Ok((1 << byte, tried));
                }
            }
        }
        Ok((0, bytes))
    }
}

/// A place within a text that is spelled: the tokens that are left to try, the longest last.
struct Spelled {
    at: usize,
    context: Context,
    next: SmallVec<[(usize, TokenId); 8]>,
}

/// A state of the language, and the context of the tokens before it.
type Place<L> = (<L as Language>::State, Context);

/// Tokens with one hypothesis after them, with their contexts, and tokens that may come then and are
/// not dead.
struct Asked {
    contexts: Vec<(TokenId, Context)>,
    followers: Arc<[TokenId]>,
}

/// Whether a token is live, with the place after it.
type IsLive<'b, 'a, L> = dyn FnMut(&mut Liveliness<'a, L>, TokenId, Place<L>) -> Result<bool, <L as Language>::Error>
    + 'b;

type Found<L> = Result<Liveness, <L as Language>::Error>;

impl<'a, L: Completed> Liveliness<'a, L> {
    /// Starts with nothing known.
    pub fn new(canonicality: &'a Canonicality, choice: Choice<'a>, language: &'a L) -> Self {
        let (endings, anew, known) = Default::default();
        Self { canonicality, choice, language, endings, anew, known, are_many: false }
    }

    /// Says of how many states tokens are going to be looked at, most of which may be new.
    pub fn expect(&mut self, states: usize) {
        self.are_many = states > MANY_STATES;
    }

    /// Which sequences of tokens the tokenizer produces.
    pub fn canonicality(&self) -> &'a Canonicality {
        self.canonicality
    }

    /// The language.
    pub fn language(&self) -> &'a L {
        self.language
    }

    /// Whether canonical tokens after `context` encode a text that the language allows from a state
    /// on.
    ///
    /// # Errors
    /// As the language's.
    pub fn find(&mut self, state: &L::State, context: &Context) -> Found<L> {
        let key: Place<L> = (state.clone(), context.clone());
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        if let Some(known) = self.language.known(&key, Searched::Alone) {
            self.known.insert(key, known);
            return Ok(known);
        }
        let mut seen = FxHashSet::default();
        let mut found = match self.is_shown(state, context)? {
            true => Liveness::Live,
            false => self.search(&key, &mut seen, FIRST_TRIED, false)?,
        };
        // The shortest text takes longer to find than a few tokens to try.
        if found == Liveness::Undecided {
            seen.clear();
            found = match self.is_completed(state, context)? {
                true => Liveness::Live,
                false => self.search(&key, &mut seen, MAX_TRIED, true)?,
            };
        }
        if found == Liveness::Dead {
            // A closed region: nothing in it is live.
            self.known.extend(seen.into_iter().map(|place| (place, Liveness::Dead)));
        }
        self.language.keep(&key, Searched::Alone, found);
        self.known.insert(key, found);
        Ok(found)
    }

    /// Whether the text may end here, or every text with some next character continues canonically.
    fn is_shown(&mut self, state: &L::State, context: &Context) -> Result<bool, L::Error> {
        if self.canonicality.can_end(context) && self.language.may_end(state)? {
            return Ok(true);
        }
        for way in self.canonicality.ways(context) {
            let (bytes, most) = match context.last {
                Some(last) if way.goes_on => {
                    (self.canonicality.apart(last, way.from.boundary), FEW_BYTES)
                }
                _ => (self.anew(way.from.boundary), usize::MAX),
            };
            if self.goes_on(state, bytes, most)?
                || !way.goes_on
                    && bytes == 0
                    && self.goes_on_after_space(state, way.from.boundary)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a piece that begins here may begin with a space and a character with which the pieces
    /// are those of a text that begins with both.
    fn goes_on_after_space(
        &mut self,
        state: &L::State,
        from: HypothesisId,
    ) -> Result<bool, L::Error> {
        let boundaries = self.canonicality.boundaries();
        let bytes = boundaries.map_or(0, |boundaries| boundaries.anew_after_space(from));
        if bytes == 0 {
            return Ok(false);
        }
        match self.language.step(state, b' ')? {
            Some(next) => self.goes_on(&next, bytes, usize::MAX),
            None => Ok(false),
        }
    }

    /// The characters with which the pieces are those of a text that begins there.
    fn anew(&self, from: HypothesisId) -> u128 {
        self.canonicality.boundaries().map_or(0, |boundaries| boundaries.anew(from))
    }

    /// Whether the shortest text continues canonically.
    fn is_completed(&mut self, state: &L::State, context: &Context) -> Result<bool, L::Error> {
        if !self.endings.contains_key(state) {
            let text = self.language.completion(state)?;
            let ending = text.map(|text| Ending { text, known: FxHashMap::default() });
            self.endings.insert(state.clone(), ending);
        }
        let Self { canonicality, choice, endings, .. } = self;
        let Some(ending) = endings.get_mut(state).and_then(Option::as_mut) else {
            return Ok(false);
        };
        let known = ending.known.len();
        let found = ending.is_spelled(canonicality, *choice, context);
        self.language.charge(1 + ending.known.len() - known)?;
        Ok(found)
    }

    /// Whether the language allows one of some characters of one byte, as [`Begun::comes`].
    fn goes_on(&mut self, state: &L::State, bytes: u128, most: usize) -> Result<bool, L::Error> {
        if bytes == 0 {
            return Ok(false);
        }
        if let Some(&known) = self.anew.get(&(state.clone(), bytes)) {
            return Ok(known);
        }
        let found = self.begun(state).comes(self.language, bytes, most)?;
        self.anew.insert((state.clone(), bytes), found);
        Ok(found)
    }

    /// A state from which several pieces may begin.
    pub fn begun(&self, state: &L::State) -> Begun<L> {
        Begun { state: state.clone(), tried: 0, found: 0, refused: 0, listed: None }
    }

    /// Whether a text continues canonically with a piece that begins in a state.
    ///
    /// # Errors
    /// As the language's.
    pub fn begins(&mut self, begun: &mut Begun<L>, piece: HypothesisId) -> Result<bool, L::Error> {
        if begun.goes_on(self.language, self.anew(piece))? {
            return Ok(true);
        }
        Ok(self.find(&begun.state, &at_a_piece(piece))? == Liveness::Live)
    }

    /// Tries so many tokens after a place that is not shown to be live, nearest first. `completes`:
    /// whether the shortest texts after them are looked at.
    fn search(
        &mut self,
        start: &Place<L>,
        seen: &mut FxHashSet<Place<L>>,
        mut left: usize,
        completes: bool,
    ) -> Found<L> {
        let canonicality = self.canonicality;
        let mut open = VecDeque::from([start.clone()]);
        seen.insert(start.clone());
        while let Some((state, context)) = open.pop_front() {
            let after = |token| canonicality.step(&context, token);
            let ways = canonicality.ways(&context);
            let next =
                Next { after: &after, begins: &canonicality.beginnings(&ways), are_rare: true };
            let tried = self.try_each(&state, &next, &mut left, &mut |this, _, place| {
                if seen.contains(&place) {
                    return Ok(false);
                }
                let (state, context) = &place;
                if this.is_shown(state, context)?
                    || completes && this.is_completed(state, context)?
                {
                    return Ok(true);
                }
                seen.insert(place.clone());
                open.push_back(place);
                Ok(false)
            })?;
            if tried != Liveness::Dead {
                return Ok(tried);
            }
        }
        Ok(Liveness::Dead)
    }

    /// Tries the tokens that may come in a state until one is live. `left`: how many may be tried.
    fn try_each(
        &mut self,
        state: &L::State,
        next: &Next<'_>,
        left: &mut usize,
        is_live: &mut IsLive<'_, 'a, L>,
    ) -> Found<L> {
        let Self { canonicality, choice, language, .. } = *self;
        let options = ForcedOptions { look_ahead: false };
        let cover = Cover { canonicality, choice, language, options };
        let mut found = Ok(Liveness::Dead);
        cover.search(next, NodeId::ROOT, state, &mut |token, context, before, byte| {
            if !(choice.has)(token) {
                return true;
            }
            if *left == 0 {
                found = Ok(Liveness::Undecided);
                return false;
            }
            *left -= 1;
            let tried = match language.charge(1).and_then(|()| language.step(before, byte)) {
                Ok(Some(after)) => is_live(self, token, (after, context)),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            match tried {
                Ok(false) => return true,
                Ok(true) => found = Ok(Liveness::Live),
                Err(error) => found = Err(error),
            }
            false
        })?;
        found
    }

    /// Removes from tokens that lead to a state some that are live.
    ///
    /// # Errors
    /// As the language's.
    pub fn remove_apart<'r>(
        &mut self,
        begun: &mut Begun<L>,
        groups: impl Iterator<Item = (u8, &'r [u32])>,
        mask: &mut Cow<'_, [u32]>,
    ) -> Result<(), L::Error> {
        for (byte, group) in groups {
            if begun.goes_on(self.language, 1 << byte)? {
                mask.to_mut().iter_mut().zip(group).for_each(|(word, apart)| *word &= !apart);
            }
        }
        Ok(())
    }

    /// Of some tokens that are read in one way and lead to one state, those after which no text
    /// continues canonically.
    ///
    /// # Errors
    /// As the language's.
    pub fn dead(
        &mut self,
        way: Way,
        begun: &mut Begun<L>,
        tokens: &[TokenId],
        dead: &mut Vec<TokenId>,
    ) -> Result<(), L::Error> {
        self.language.charge(tokens.len())?;
        let canonicality = self.canonicality;
        let mut by_place: FxHashMap<Hypothesis, Asked> = FxHashMap::default();
        for &token in tokens {
            let Some(open) = canonicality.read(way, token) else { continue };
            let is_part = open.whole != Whole::Alone;
            let apart = canonicality.apart(token, open.boundary);
            if is_part && begun.goes_on(self.language, apart)? {
                continue;
            }
            let Some(context) = canonicality.enter(way, token) else { continue };
            if context.is_between_characters() {
                let asked = by_place.entry(open).or_insert_with(|| {
                    let way = Way { from: open, goes_on: true };
                    let known = self.language.followers(&(begun.state.clone(), way));
                    Asked { followers: known.unwrap_or_default(), contexts: Vec::new() }
                });
                let goes_on = |&follower: &TokenId| canonicality.may_go_on(token, follower);
                if !is_part || !asked.followers.iter().any(goes_on) {
                    asked.contexts.push((token, context));
                }
            } else if self.find(&begun.state, &context)? == Liveness::Dead {
                dead.push(token);
            }
        }
        for (open, asked) in by_place {
            self.dead_at(open, &begun.state, asked, dead)?;
        }
        Ok(())
    }

    /// The same for tokens with one hypothesis after them.
    fn dead_at(
        &mut self,
        open: Hypothesis,
        state: &L::State,
        asked: Asked,
        dead: &mut Vec<TokenId>,
    ) -> Result<(), L::Error> {
        let mut unknown = Vec::new();
        for (token, context) in asked.contexts {
            let place = (state.clone(), context);
            match self.language.known(&place, Searched::Together) {
                None => unknown.push((token, place)),
                Some(Liveness::Dead) => dead.push(token),
                Some(Liveness::Live | Liveness::Undecided) => {}
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let tokens = unknown.iter().map(|&(token, _)| token).collect();
        let mut followers = asked.followers.to_vec();
        let known = followers.len();
        let found = self.dead_within(open, state, tokens, &mut followers)?;
        let mut left = found.iter().peekable();
        for (token, place) in &unknown {
            let liveness = match left.next_if_eq(&token) {
                Some(_) => Liveness::Dead,
                None if followers.iter().any(|&next| self.canonicality.may_go_on(*token, next)) => {
                    continue
                }
                None => Liveness::Undecided,
            };
            self.language.keep(place, Searched::Together, liveness);
        }
        if followers.len() > known {
            let way = Way { from: open, goes_on: true };
            self.language.keep_followers((state.clone(), way), followers.into());
        }
        dead.extend(found);
        Ok(())
    }

    /// The same, in their order: whether one is live depends only on which tokens may follow it
    /// within the piece. One that an undecided token may follow is not dead. `followers`: takes the
    /// tokens that are not dead.
    fn dead_within(
        &mut self,
        from: Hypothesis,
        state: &L::State,
        mut tokens: Vec<TokenId>,
        followers: &mut Vec<TokenId>,
    ) -> Result<Vec<TokenId>, L::Error> {
        let canonicality = self.canonicality;
        let Some(boundaries) = canonicality.boundaries() else { return Ok(Vec::new()) };
        if canonicality.may_close(from.whole) {
            if boundaries.can_end(from.boundary) && self.language.may_end(state)? {
                return Ok(Vec::new());
            }
            for &fresh in boundaries.close(from.boundary) {
                if self.find(state, &at_a_piece(fresh))? == Liveness::Live {
                    return Ok(Vec::new());
                }
            }
        }
        let ways = match from.whole {
            Whole::Alone => &[][..],
            _ => &[Way { from, goes_on: true }],
        };
        let after = |token| canonicality.enter(*ways.first()?, token);
        let alone = match tokens[..] {
            [only] if self.are_many => Some(only),
            _ => None,
        };
        let beginnings = canonicality.beginnings(ways);
        let trie = self.choice.trie;
        let begins = |byte| {
            let follows = |last| {
                may_begin(trie, boundaries, from, byte, |next| canonicality.may_go_on(last, next))
            };
            beginnings(byte) && alone.is_none_or(follows)
        };
        let next = Next { after: &after, begins: &begins, are_rare: true };
        let mut left = MAX_TRIED;
        let tried = self.try_each(state, &next, &mut left, &mut |this, token, place| {
            let may_follow = |&last: &TokenId| canonicality.may_go_on(last, token);
            this.language.charge(tokens.len())?;
            if tokens.iter().any(may_follow) && this.find(&place.0, &place.1)? != Liveness::Dead {
                tokens.retain(|last| !may_follow(last));
                followers.push(token);
            }
            Ok(tokens.is_empty())
        })?;
        match tried {
            Liveness::Dead => Ok(tokens),
            Liveness::Live | Liveness::Undecided => Ok(Vec::new()),
        }
    }
}

/// Whether `follows` holds for a token that goes on from a place in the pieces and begins with a byte.
/// If more than [`MAX_ASKED`] begin so, none is asked and the answer is yes. Few begin with a digit.
fn may_begin(
    trie: &ByteTrie,
    boundaries: &Boundaries,
    from: Hypothesis,
    byte: u8,
    follows: impl Fn(TokenId) -> bool,
) -> bool {
    let Some(node) = trie.child(NodeId::ROOT, byte) else { return false };
    let Some(first) = boundaries.step(from.boundary, byte) else { return false };
    if trie.tokens_below(node).len() > MAX_ASKED {
        return true;
    }
    let any = |node| trie.tokens_at(node).iter().any(|&token| follows(token));
    any(node)
        || trie
            .walk(node, first, |&place, node, _| match boundaries.step(place, trie.byte(node)) {
                None => Ok(Descent::Skip),
                Some(_) if any(node) => Err(()),
                Some(next) => Ok(Descent::Below(next)),
            })
            .is_err()
}

impl Ending {
    /// Whether canonical tokens after a context encode this text and end there.
    fn is_spelled(
        &mut self,
        canonicality: &Canonicality,
        choice: Choice<'_>,
        context: &Context,
    ) -> bool {
        let mut path: Vec<Spelled> = Vec::new();
        let mut here = Some((0, context.clone()));
        loop {
            if let Some((at, context)) = here.take() {
                let known = match self.known.get(&(at, context.clone())) {
                    Some(&known) => Some(known),
                    None if at == self.text.len() => Some(canonicality.can_end(&context)),
                    None => None,
                };
                match known {
                    Some(true) => {
                        let live = path.into_iter().map(|place| ((place.at, place.context), true));
                        self.known.extend(live);
                        return true;
                    }
                    Some(false) => {}
                    None => {
                        let mut next = SmallVec::new();
                        canonicality.prefixes(&self.text[at..], |length, token| {
                            if (choice.has)(token) {
                                next.push((length, token));
                            }
                        });
                        path.push(Spelled { at, context, next });
                    }
                }
            }
            let Some(place) = path.last_mut() else { return false };
            match place.next.pop() {
                Some((length, token)) => {
                    let next = canonicality.step(&place.context, token);
                    here = next.map(|next| (place.at + length, next));
                }
                None => {
                    let place = path.pop().map(|place| (place.at, place.context));
                    self.known.extend(place.map(|place| (place, false)));
                }
            }
        }
    }
}
