//! Canonical masks without dead ends.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{GrammarTexts, Matcher};
use crate::engine::{Generation, Kept};
use crate::mask::token_set::{bits, clear_bits, has_bit};
use crate::mask::Target;
use ffwd_automaton::{without_texts, Automaton, EngineError, Result, StateId, TextId, Threads};
use ffwd_bounds::meter;
use ffwd_tokenizer::canonical::{
    Begun, CanonicalMasks, Canonicality, Choice, Closing, Completed, Context, Language, Liveliness,
    Liveness, Readable, Searched, Way,
};
use ffwd_tokenizer::vocabulary::TokenId;

/// Targets of more bytes are not kept.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// The texts of a grammar after the rest of a prefix that tokens have not encoded yet.
#[derive(Debug)]
struct Texts<'a> {
    automaton: &'a Automaton,
    left: &'a [u8],
    /// What is known where nothing is left of a prefix.
    known: &'a Generation,
}

/// How much of the prefix is encoded, and the state of the automaton.
type Encoded = (usize, Threads);

impl Language for Texts<'_> {
    type State = Encoded;
    type Error = EngineError;

    fn step(&self, (read, threads): &Encoded, byte: u8) -> Result<Option<Encoded>> {
        match self.left.get(*read) {
            Some(&next) => Ok((next == byte).then(|| (read + 1, threads.clone()))),
            None => {
                let next = GrammarTexts(self.automaton).step(threads, byte)?;
                Ok(next.map(|next| (*read, next)))
            }
        }
    }

    fn may_come(&self, (read, threads): &Encoded, byte: u8) -> Result<bool> {
        match self.left.get(*read) {
            Some(&next) => Ok(next == byte),
            None => GrammarTexts(self.automaton).may_come(threads, byte),
        }
    }

    fn goes_on_within(&self, (read, threads): &Encoded, byte: u8) -> Result<bool> {
        match self.left.get(*read) {
            Some(&next) => Ok(next == byte),
            None => GrammarTexts(self.automaton).goes_on_within(threads, byte),
        }
    }

    fn list_bytes(
        &self,
        (read, threads): &Encoded,
        bytes: &mut SmallVec<[u8; 16]>,
    ) -> Result<bool> {
        match self.left.get(*read) {
            Some(&next) => {
                bytes.push(next);
                Ok(true)
            }
            None => GrammarTexts(self.automaton).list_bytes(threads, bytes),
        }
    }

    fn may_end(&self, (read, threads): &Encoded) -> Result<bool> {
        Ok(*read == self.left.len() && GrammarTexts(self.automaton).may_end(threads)?)
    }
}

impl Texts<'_> {
    fn read(&self, state: &Encoded, bytes: &[u8]) -> Result<Option<Encoded>> {
        let mut state = state.clone();
        for &byte in bytes {
            match self.step(&state, byte)? {
                Some(next) => state = next,
                None => return Ok(None),
            }
        }
        Ok(Some(state))
    }
}

impl Completed for Texts<'_> {
    fn charge(&self, steps: usize) -> Result<()> {
        Ok(meter::charge(steps)?)
    }

    fn known(&self, place: &(Encoded, Context), searched: Searched) -> Option<Liveness> {
        let ((_, threads), context) = place;
        let key = self.left.is_empty().then(|| (threads.clone(), context.clone(), searched))?;
        self.known.live.get(&key)
    }

    fn keep(&self, place: &(Encoded, Context), searched: Searched, found: Liveness) {
        let ((_, threads), context) = place;
        if self.left.is_empty() {
            self.known.live.keep((threads.clone(), context.clone(), searched), found);
        }
    }

    fn followers(&self, ((_, threads), way): &(Encoded, Way)) -> Option<Arc<[TokenId]>> {
        let key = self.left.is_empty().then(|| (threads.clone(), *way))?;
        self.known.followers.get(&key)
    }

    fn keep_followers(&self, ((_, threads), way): (Encoded, Way), tokens: Arc<[TokenId]>) {
        if self.left.is_empty() {
            self.known.followers.keep((threads, way), tokens);
        }
    }

    fn completion(&self, (read, threads): &Encoded) -> Result<Option<Vec<u8>>> {
        let completing = self.automaton.completing();
        let is_forgetful = |thread: &ffwd_automaton::Thread| {
            thread.text == TextId::ANY || thread.transcript == TextId::ANY
        };
        let ending = match threads.iter().any(is_forgetful) {
            true => completing.shared(threads, &[], &[])?.map(|shared| shared.ending),
            false => completing.shortest(threads)?,
        };
        let Some(ending) = ending else { return Ok(None) };
        // The text is split at a special token as at its end.
        let length = ending.tokens.first().map_or(ending.text.len(), |&(place, _)| place);
        Ok(Some([&self.left[*read..], &ending.text[..length]].concat()))
    }
}

impl Matcher {
    /// Removes from canonical tokens those after which no text of the grammar continues
    /// canonically.
    pub(super) fn keep_live(
        &self,
        masks: &CanonicalMasks,
        canonicality: &Canonicality,
        context: &Context,
        row: &mut [u32],
    ) -> Result<()> {
        if self.terminated || self.is_in_free_text() || context.is_lost() {
            return Ok(());
        }
        let (generation, state) = self.here()?;
        let vocabulary = self.compiled.engine.vocabulary();
        let has = |token: TokenId| !vocabulary.text(token).is_empty();
        let choice = Choice { trie: vocabulary.trie(), has: &has };
        let left = self.prefix_left();
        let texts = Texts { automaton: &generation.automaton, left, known: &generation };
        let mut live = Liveliness::new(canonicality, choice, &texts);
        // While bytes of a prefix remain, the state alone does not determine the position.
        if !left.is_empty() || masks.are_few(row) {
            let dead = self.dead_of(&generation, state, &mut live, context, bits(row))?;
            clear_bits(row, &dead);
        } else {
            let ways = canonicality.ways(context);
            let forgetful = without_texts(generation.automaton.threads(state));
            let known = |&way: &Way| (way, generation.dead.get(&(forgetful.clone(), way)));
            let known: SmallVec<[_; 4]> = ways.iter().map(known).collect();
            let unknown: SmallVec<[Way; 4]> =
                known.iter().filter(|(_, dead)| dead.is_none()).map(|&(way, _)| way).collect();
            let mut found = match unknown.is_empty() {
                true => Vec::new(),
                false => {
                    let targets = targets(&generation, &forgetful)?;
                    dead_in_ways(masks, &mut live, &unknown, &targets)?
                }
            }
            .into_iter();
            let mut removed: SmallVec<[(Way, Arc<[TokenId]>); 4]> = SmallVec::new();
            for (way, dead) in known {
                let dead = dead.or_else(|| {
                    let dead: Arc<[TokenId]> = found.next()?.into();
                    generation.dead.keep((forgetful.clone(), way), dead.clone());
                    Some(dead)
                });
                removed.push((way, dead.unwrap_or_default()));
            }
            if removed.iter().any(|(_, dead)| !dead.is_empty()) {
                masks.remove(context, &removed, row);
            }
        }
        self.compiled.settle(&generation);
        Ok(())
    }

    /// Of some tokens in a context, those that are not live.
    fn dead_of(
        &self,
        generation: &Generation,
        state: StateId,
        live: &mut Liveliness<'_, Texts<'_>>,
        context: &Context,
        tokens: impl Iterator<Item = TokenId>,
    ) -> Result<Vec<TokenId>> {
        let vocabulary = self.compiled.engine.vocabulary();
        let automaton = &generation.automaton;
        let left = self.prefix_left();
        let mut dead = Vec::new();
        for token in tokens {
            let text = vocabulary.text(token);
            let read = text.len().min(left.len());
            let next = live.canonicality().step(context, token);
            let (Some(next), false) = (next, text.is_empty()) else { continue };
            let Some(threads) = automaton.walk(automaton.threads(state), &text[read..])? else {
                continue;
            };
            if live.find(&(read, threads), &next)? == Liveness::Dead {
                dead.push(token);
            }
        }
        Ok(dead)
    }
}

/// The tokens of a configuration without recorded texts, by what they lead to.
fn targets(generation: &Generation, forgetful: &Threads) -> Result<Arc<[Target]>> {
    if let Some(known) = generation.targets.get(forgetful) {
        return Ok(known);
    }
    let Generation { automaton, masker, .. } = generation;
    let targets: Arc<[Target]> = masker.targets(automaton, forgetful)?.into();
    if targets.bytes() <= MAX_KEPT_BYTES {
        generation.targets.keep(forgetful.clone(), targets.clone());
    }
    Ok(targets)
}

/// The tokens that are read in one way, and how pieces end after them.
struct InWay {
    way: Way,
    readable: Arc<Readable>,
    unclosable: Arc<[u32]>,
    /// Whether the closings of the pieces are live after a target.
    ended: Vec<Option<bool>>,
    dead: Vec<TokenId>,
}

/// Of the tokens of a state, those that are not live, sorted, by the way in which they are read.
fn dead_in_ways(
    masks: &CanonicalMasks,
    live: &mut Liveliness<'_, Texts<'_>>,
    ways: &[Way],
    targets: &[Target],
) -> Result<Vec<Vec<TokenId>>> {
    let in_way = |&way: &Way| {
        let readable = masks.in_way(way)?;
        let unclosable = masks.unclosable(&readable, way);
        Some(InWay { way, readable, unclosable, ended: Vec::new(), dead: Vec::new() })
    };
    let mut all: SmallVec<[Option<InWay>; 4]> = ways.iter().map(in_way).collect();
    live.expect(targets.len());
    for target in targets {
        live.language().charge(1 + target.tokens.len() / 8)?;
        let state = (0, target.threads.clone());
        let mut begun = live.begun(&state);
        for in_way in all.iter_mut().flatten() {
            in_way.add_dead(masks, live, &mut begun, &state, target)?;
        }
    }
    let dead = |in_way: Option<InWay>| {
        let mut dead = in_way.map_or(Vec::new(), |in_way| in_way.dead);
        dead.sort_unstable();
        dead.dedup();
        dead
    };
    Ok(all.into_iter().map(dead).collect())
}

impl InWay {
    /// Adds the tokens that lead to a state and are not live.
    fn add_dead<'a>(
        &mut self,
        masks: &CanonicalMasks,
        live: &mut Liveliness<'_, Texts<'a>>,
        begun: &mut Begun<Texts<'a>>,
        state: &Encoded,
        target: &Target,
    ) -> Result<()> {
        let Self { way, readable, unclosable, ended, dead } = self;
        let closings = masks.closings(readable);
        let listed = readable.groups_of(&target.tokens);
        // Those that no group decides.
        let mut left: Vec<TokenId> = Vec::new();
        for (at, (next, group)) in readable.groups().iter().enumerate() {
            if listed >> at & 1 == 0 && !target.has_bitmapped(group) {
                continue;
            }
            if !live.begins(begun, *next)? {
                let mut group = Cow::Borrowed(&**group);
                if !target.bitmaps.is_empty() {
                    live.remove_apart(begun, masks.apart(readable), &mut group)?;
                }
                left.extend(target.within(&group));
            } else if !unclosable.is_empty() {
                left.extend(target.within(unclosable).filter(|&token| has_bit(group, token)));
            }
        }
        ended.clear();
        ended.resize(closings.all().len(), None);
        for token in target.within(readable.unclosed()) {
            let Some(place) = closings.of(token) else { continue };
            let (text, next) = match &closings.all()[place] {
                Closing::With { text, next } => (text, next),
                Closing::Never => {
                    dead.push(token);
                    continue;
                }
                Closing::Unknown => {
                    left.push(token);
                    continue;
                }
            };
            let is_live = match ended[place] {
                Some(known) => known,
                None => match live.language().read(state, text)? {
                    Some(state) => live.find(&state, next)? == Liveness::Live,
                    None => false,
                },
            };
            ended[place] = Some(is_live);
            if !is_live {
                left.push(token);
            }
        }
        live.dead(*way, begun, &left, dead)
    }
}
