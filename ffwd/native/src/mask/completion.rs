//! How a text can end, in tokens, and which tokens may come so that it ends in time.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::lexeme_mask::Inner;
use super::state_mask::Masker;
use super::token_set::set_bits;
use crate::automaton::{
    Automaton, EndingText, EngineError, StateId, TextId, Thread, ThreadLexeme, Threads,
};
use crate::expr::LexState;
use crate::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// Tokens with which a text can end: some as they are, then the fewest that spell a text, then a
/// token that ends the output, where the vocabulary has one.
#[derive(Debug)]
pub struct Completion {
    first: Box<[TokenId]>,
    text: Box<[u8]>,
    /// Tokens that come as they are within the text, each before a place of it.
    whole: Box<[(usize, TokenId)]>,
    end: Option<TokenId>,
    tokens: OnceLock<Box<[TokenId]>>,
}

impl Completion {
    pub fn new(vocabulary: &Vocabulary, first: Box<[TokenId]>, ending: EndingText) -> Self {
        let end = vocabulary.eos().first().copied();
        let whole = ending.tokens.iter().map(|&(place, token)| (place, TokenId(token))).collect();
        Self { first, text: ending.text.into(), whole, end, tokens: OnceLock::new() }
    }

    /// Of a text that has ended: no tokens.
    pub fn ended() -> Self {
        let (first, text, whole) = ([].into(), [].into(), [].into());
        Self { first, text, whole, end: None, tokens: OnceLock::new() }
    }

    /// After some text more.
    pub fn after(&self, vocabulary: &Vocabulary, first: Box<[TokenId]>, mut text: Vec<u8>) -> Self {
        let before = text.len();
        text.extend_from_slice(&self.text);
        let tokens = self.whole.iter().map(|&(place, token)| (before + place, token.0)).collect();
        Self::new(vocabulary, first, EndingText { text, tokens })
    }

    /// A number of tokens that there are at most, which is known at once: the bytes that they spell.
    pub fn most(&self) -> usize {
        let as_they_are = self.first.len() + self.whole.len();
        as_they_are + self.text.len() + usize::from(self.end.is_some())
    }

    pub fn tokens(&self, vocabulary: &Vocabulary) -> &[TokenId] {
        self.tokens.get_or_init(|| {
            let mut tokens = self.first.to_vec();
            let mut spelled = 0;
            for &(place, token) in &self.whole {
                tokens.extend(vocabulary.fewest_tokens(&self.text[spelled..place]));
                tokens.push(token);
                spelled = place;
            }
            tokens.extend(vocabulary.fewest_tokens(&self.text[spelled..]));
            tokens.extend(self.end);
            tokens.into()
        })
    }

    /// Whether there are at most so many tokens.
    pub fn is_within(&self, vocabulary: &Vocabulary, tokens: usize) -> bool {
        self.most() <= tokens || self.tokens(vocabulary).len() <= tokens
    }

    /// How many of the tokens end the output.
    pub fn num_end_tokens(&self) -> usize {
        usize::from(self.end.is_some())
    }

    fn memory_bytes(&self) -> usize {
        // There are rarely more tokens than a quarter of the bytes.
        std::mem::size_of::<Self>() + self.first.len() * 8 + self.text.len() * 2
    }
}

/// Tokens after which a text can end with the same number of tokens.
#[derive(Debug)]
struct Level {
    /// How many tokens that is.
    left: usize,
    tokens: Inner,
}

/// What single tokens do to the completion of a state.
#[derive(Debug)]
pub(super) struct Levels(Box<[Level]>);

/// Where tokens lead: the configurations, each with its tokens.
#[derive(Default)]
struct Successors {
    places: FxHashMap<Threads, usize>,
    found: Vec<(Threads, Vec<TokenId>)>,
    /// Of the lexeme that the text is in: the same by its state.
    within: FxHashMap<LexState, usize>,
}

/// Where a walk over a trie is.
#[derive(Clone)]
enum Place {
    /// In the lexeme that it began in.
    Within(LexState),
    Anywhere(Threads),
}

/// How many bytes of a character may be left where a token ends.
const REST_OF_CHARACTER: usize = 3;

impl Masker {
    /// How a text can end that is in a state; `None` where that takes too long to find.
    pub fn completion(
        &self,
        automaton: &Automaton,
        state: StateId,
    ) -> Result<Option<Arc<Completion>>, EngineError> {
        if let Some(known) = self.completions.with(state.0, Arc::clone) {
            return Ok(Some(known));
        }
        let Some(ending) = automaton.completion(automaton.threads(state))? else { return Ok(None) };
        let completion = Arc::new(Completion::new(&self.vocabulary, [].into(), ending));
        self.make_room(completion.memory_bytes());
        self.completions.set(state.0, Arc::new(completion.clone()));
        Ok(Some(completion))
    }

    /// A number of tokens that suffices to end the text after any token that may come in a state.
    pub fn most_after(&self, automaton: &Automaton, state: StateId) -> Result<usize, EngineError> {
        if let Some(known) = self.known_most_after(state) {
            return Ok(known);
        }
        let threads = automaton.threads(state);
        let mut most = 0;
        for (_, stack) in automaton.token_exits(threads)? {
            let length = automaton.completion_length(automaton.starts(stack)?)?;
            most = length.map_or(usize::MAX, |length| most.max(length));
        }
        let mut successors = Successors::default();
        let within = self.add_exits(automaton, threads, &mut successors)?;
        match within {
            Some(within) => most = most.max(within),
            None => {
                let trie = self.vocabulary.trie();
                successors.add_below(automaton, trie, NodeId::ROOT, threads)?;
            }
        }
        for (threads, _) in &successors.found {
            let length = automaton.completion_length(threads)?;
            most = length.map_or(usize::MAX, |length| most.max(length));
        }
        let most = most.saturating_add(usize::from(!self.vocabulary.eos().is_empty()));
        self.make_room(std::mem::size_of::<usize>() * 4);
        self.most_after.set(state.0, Arc::new(most));
        Ok(most)
    }

    /// [`Self::most_after`], where it is known.
    pub fn known_most_after(&self, state: StateId) -> Option<usize> {
        self.most_after.with(state.0, |&known| known)
    }

    /// Overwrites a row with the tokens after which the text can still end with `left` tokens,
    /// those themselves not counted.
    pub fn fill_within(
        &self,
        automaton: &Automaton,
        state: StateId,
        left: usize,
        row: &mut [u32],
    ) -> Result<(), EngineError> {
        row.fill(0);
        if automaton.is_accepting(state) {
            set_bits(row, self.vocabulary.eos());
        }
        for level in self.levels(automaton, state)?.0.iter().filter(|level| level.left <= left) {
            match &level.tokens {
                Inner::Few(tokens) => set_bits(row, tokens),
                Inner::Many(bitmap) => {
                    row.iter_mut().zip(bitmap.iter()).for_each(|(word, more)| *word |= more);
                }
            }
        }
        Ok(())
    }

    fn levels(&self, automaton: &Automaton, state: StateId) -> Result<Arc<Levels>, EngineError> {
        if let Some(known) = self.levels.with(state.0, Arc::clone) {
            return Ok(known);
        }
        let vocabulary = &self.vocabulary;
        let mut successors = Successors::default();
        let threads = automaton.threads(state);
        successors.add_below(automaton, vocabulary.trie(), NodeId::ROOT, threads)?;
        let mut by_count: std::collections::BTreeMap<usize, Vec<TokenId>> = Default::default();
        for (set, stack) in automaton.token_exits(threads)? {
            let after = Threads::from_slice(automaton.starts(stack)?);
            for &(first, last) in automaton.token_set(set) {
                let tokens: Vec<TokenId> = (first..=last).map(TokenId).collect();
                successors.add(&after, &tokens);
            }
        }
        for (threads, tokens) in successors.found {
            if let Some(ending) = automaton.completion(&threads)? {
                let completion = Completion::new(vocabulary, [].into(), ending);
                by_count.entry(completion.tokens(vocabulary).len()).or_default().extend(tokens);
            }
        }
        let levels = by_count
            .into_iter()
            .map(|(left, tokens)| Level { left, tokens: Inner::of(vocabulary, tokens) });
        let levels = Arc::new(Levels(levels.collect()));
        self.make_room(levels.memory_bytes());
        self.levels.set(state.0, Arc::new(levels.clone()));
        Ok(levels)
    }

    /// The successors of the tokens that leave the lexeme, where all others stay in free text: a
    /// number of tokens that suffices after these. `None` where it is something else.
    fn add_exits(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        successors: &mut Successors,
    ) -> Result<Option<usize>, EngineError> {
        let [thread] = threads else { return Ok(None) };
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(None) };
        let (lexeme, state) = (automaton.lexeme(index), thread.lex_state());
        if !is_unrecorded(thread) || lexeme.free_text(state).is_none() {
            return Ok(None);
        }
        let mask = self.lexeme_masks.get(&self.vocabulary, lexeme, state)?;
        if mask.exits.iter().any(|group| !group.everywhere.is_empty()) {
            return Ok(None);
        }
        let Some(length) = automaton.completion_length(threads)? else { return Ok(None) };
        for group in &mask.exits {
            let stack = automaton.exit_thread(thread, group.accept)?;
            let starts = automaton.following(stack, thread.transcript)?;
            successors.add(&starts, group.rests.tokens_at(NodeId::ROOT));
            successors.add_below(automaton, &group.rests, NodeId::ROOT, &starts)?;
            let trie = self.vocabulary.trie();
            for &(root, with_node) in &group.grafts {
                if with_node {
                    successors.add(&starts, trie.tokens_at(root));
                }
                successors.add_below(automaton, trie, root, &starts)?;
            }
        }
        Ok(Some(length + REST_OF_CHARACTER))
    }
}

impl Levels {
    fn memory_bytes(&self) -> usize {
        let level = |level: &Level| {
            let tokens = match &level.tokens {
                Inner::Few(tokens) => tokens.len(),
                Inner::Many(bitmap) => bitmap.len(),
            };
            std::mem::size_of::<Level>() + tokens * 4
        };
        self.0.iter().map(level).sum::<usize>() + 64
    }
}

/// Whether no text is recorded in which the lexeme is a part.
pub(super) fn is_unrecorded(thread: &Thread) -> bool {
    (thread.text, thread.transcript) == (TextId::NONE, TextId::NONE)
}

impl Successors {
    fn place(&mut self, threads: &Threads) -> usize {
        if let Some(&known) = self.places.get(threads) {
            return known;
        }
        let place = self.found.len();
        self.places.insert(threads.clone(), place);
        self.found.push((threads.clone(), Vec::new()));
        place
    }

    fn add(&mut self, threads: &Threads, tokens: &[TokenId]) {
        if !tokens.is_empty() {
            let place = self.place(threads);
            self.found[place].1.extend_from_slice(tokens);
        }
    }

    /// Where the tokens below a node lead.
    fn add_below(
        &mut self,
        automaton: &Automaton,
        trie: &ByteTrie,
        root: NodeId,
        threads: &[Thread],
    ) -> Result<(), EngineError> {
        // Within a lexeme that cannot end yet a byte is a look-up.
        let alone = match threads {
            [thread] => match thread.lexeme {
                ThreadLexeme::Lexeme(index) if is_unrecorded(thread) => {
                    Some((thread, automaton.lexeme(index)))
                }
                _ => None,
            },
            _ => None,
        };
        self.within.clear();
        let start = match alone {
            Some((thread, _)) => Place::Within(thread.lex_state()),
            None => Place::Anywhere(Threads::from_slice(threads)),
        };
        let mut pending = vec![(root, start)];
        while let Some((node, place)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                let next = match (&place, alone) {
                    (&Place::Within(state), Some((thread, lexeme))) => {
                        let within = if state.accepts() { None } else { Some(lexeme) };
                        match within.map(|lexeme| lexeme.next(state, byte)).transpose()? {
                            Some(None) => continue,
                            Some(Some(next)) if !next.is_final() => Place::Within(next),
                            _ => {
                                let threads = [Thread { state: state.0, ..*thread }];
                                Place::Anywhere(automaton.step(&threads, byte)?)
                            }
                        }
                    }
                    (Place::Anywhere(threads), _) => {
                        Place::Anywhere(automaton.step(threads, byte)?)
                    }
                    (Place::Within(_), None) => continue,
                };
                if matches!(&next, Place::Anywhere(threads) if threads.is_empty()) {
                    continue;
                }
                let tokens = trie.tokens_at(child);
                if !tokens.is_empty() {
                    let place = match (&next, alone) {
                        (Place::Anywhere(threads), _) => self.place(threads),
                        (Place::Within(state), Some((thread, _))) => match self.within.get(state) {
                            Some(&known) => known,
                            None => {
                                let thread = Thread { state: state.0, ..*thread };
                                let place = self.place(&Threads::from_slice(&[thread]));
                                self.within.insert(*state, place);
                                place
                            }
                        },
                        (Place::Within(_), None) => continue,
                    };
                    self.found[place].1.extend_from_slice(tokens);
                }
                if !trie.is_leaf(child) {
                    pending.push((child, next));
                }
            }
        }
        Ok(())
    }
}
