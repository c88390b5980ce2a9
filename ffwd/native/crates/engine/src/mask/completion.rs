//! Completions of a text in tokens, and the tokens after which one is still possible in time.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::leading::are_listed;
use super::lexeme_mask::Inner;
use super::state_mask::Masker;
use super::successors::{is_unrecorded, Found, Successors};
use super::token_set::{set_bits, Bitmap};
use ffwd_automaton::{Automaton, EndingText, Result, StateId, Thread, ThreadLexeme};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// Tokens that complete a text: some fixed ones, then the fewest that encode a text, then an end
/// token if the vocabulary has one.
#[derive(Debug)]
pub struct Completion {
    first: Box<[TokenId]>,
    text: Box<[u8]>,
    /// Special tokens within the text, each with its position.
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

    /// Returns the empty completion of a text that has ended.
    pub fn ended() -> Self {
        let (first, text, whole) = ([].into(), [].into(), [].into());
        Self { first, text, whole, end: None, tokens: OnceLock::new() }
    }

    /// The completion after some more text.
    pub fn after(&self, vocabulary: &Vocabulary, first: Box<[TokenId]>, mut text: Vec<u8>) -> Self {
        let before = text.len();
        text.extend_from_slice(&self.text);
        let tokens = self.whole.iter().map(|&(place, token)| (before + place, token.0)).collect();
        Self::new(vocabulary, first, EndingText { text, tokens })
    }

    /// Returns the text it writes, without the fixed tokens before it.
    pub fn ending(&self) -> EndingText {
        let tokens = self.whole.iter().map(|&(place, token)| (place, token.0)).collect();
        EndingText { text: self.text.to_vec(), tokens }
    }

    /// Returns a cheap upper bound of the number of tokens: the bytes of their text.
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

    /// Returns whether it has at most this many tokens.
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
    /// More of them, in memory that several levels share.
    bitmaps: Box<[Bitmap]>,
}

/// The effects of single tokens on the completion of a state.
#[derive(Debug)]
pub(super) struct Levels(Box<[Level]>);

/// A completion after some tokens, if one is found.
struct Ending {
    text: Option<EndingText>,
    tokens: Vec<TokenId>,
    bitmaps: Vec<Bitmap>,
}

/// The most bytes of a character that remain when a token ends within it: those of `\u0000` after
/// its first two.
const REST_OF_CHARACTER: usize = 4;
/// The same where any escape may come: those of `\ud83d\ude00` after its first one.
const REST_OF_ESCAPE: usize = 11;

impl Masker {
    /// The completion of a state; `None` if the search takes too long.
    pub fn completion(
        &self,
        automaton: &Automaton,
        state: StateId,
    ) -> Result<Option<Arc<Completion>>> {
        if let Some(known) = self.completions.with(state.0, Arc::clone) {
            return Ok(Some(known));
        }
        let Some(ending) = automaton.completing().shortest(automaton.threads(state))? else {
            return Ok(None);
        };
        let completion = Arc::new(Completion::new(&self.vocabulary, [].into(), ending));
        self.make_room(completion.memory_bytes());
        self.completions.set(state.0, Arc::new(completion.clone()));
        Ok(Some(completion))
    }

    /// Returns a number of tokens that completes the text after any allowed token of a state.
    pub fn most_after(&self, automaton: &Automaton, state: StateId) -> Result<usize> {
        if let Some(known) = self.known_most_after(state) {
            return Ok(known);
        }
        let threads = automaton.threads(state);
        let mut most = 0;
        for (_, stack) in automaton.token_exits(threads)? {
            let length = automaton.completing().length(automaton.starts(stack)?)?;
            most = length.map_or(usize::MAX, |length| most.max(length));
        }
        let successors = match self.add_exits(automaton, threads)? {
            Some((within, successors)) => {
                most = most.max(within);
                successors
            }
            None => self.successors(automaton, threads)?,
        };
        for Ending { text, .. } in self.endings(automaton, threads, successors)? {
            most = text.map_or(usize::MAX, |text| most.max(text.len()));
        }
        let most = most.saturating_add(usize::from(!self.vocabulary.eos().is_empty()));
        self.make_room(std::mem::size_of::<usize>() * 4);
        self.most_after.set(state.0, Arc::new(most));
        Ok(most)
    }

    /// [`Self::most_after`], if cached.
    pub fn known_most_after(&self, state: StateId) -> Option<usize> {
        self.most_after.with(state.0, |&known| known)
    }

    /// Overwrites a row with the tokens after which the text can still end within `left` further
    /// tokens.
    pub fn fill_within(
        &self,
        automaton: &Automaton,
        state: StateId,
        left: usize,
        row: &mut [u32],
    ) -> Result<()> {
        row.fill(0);
        if automaton.is_accepting(state) {
            set_bits(row, self.vocabulary.eos());
        }
        for level in self.levels(automaton, state)?.0.iter().filter(|level| level.left <= left) {
            match &level.tokens {
                Inner::Few(tokens) => set_bits(row, tokens),
                Inner::Many(bitmap) => {
                    add_bitmap(row, bitmap);
                }
            }
            level.bitmaps.iter().for_each(|bitmap| add_bitmap(row, bitmap));
        }
        if automaton.threads(state).iter().any(|thread| automaton.has_history(thread.stack)) {
            // Earlier items exclude more than the targets of tokens show.
            let mut may_come = vec![0; row.len()];
            self.compute(automaton, state)?.fill(&mut may_come);
            row.iter_mut().zip(may_come).for_each(|(word, may_come)| *word &= may_come);
        }
        Ok(())
    }

    fn levels(&self, automaton: &Automaton, state: StateId) -> Result<Arc<Levels>> {
        if let Some(known) = self.levels.with(state.0, Arc::clone) {
            return Ok(known);
        }
        let vocabulary = &self.vocabulary;
        let threads = automaton.threads(state);
        let successors = self.successors(automaton, threads)?;
        let mut endings = self.endings(automaton, threads, successors)?;
        for (set, stack) in automaton.token_exits(threads)? {
            let text = automaton.completing().shortest(automaton.starts(stack)?)?;
            let ranges = automaton.token_set(set).iter();
            let tokens = ranges.flat_map(|&(first, last)| (first..=last).map(TokenId)).collect();
            endings.push(Ending { text, tokens, bitmaps: Vec::new() });
        }
        let mut by_count: BTreeMap<usize, (Vec<TokenId>, Vec<Bitmap>)> = BTreeMap::new();
        for Ending { text, tokens, bitmaps } in endings {
            if let Some(text) = text {
                let completion = Completion::new(vocabulary, [].into(), text);
                let level = by_count.entry(completion.tokens(vocabulary).len()).or_default();
                level.0.extend(tokens);
                level.1.extend(bitmaps);
            }
        }
        let levels = by_count.into_iter().map(|(left, (tokens, bitmaps))| {
            let tokens = Inner::of(vocabulary, tokens);
            Level { left, tokens, bitmaps: bitmaps.into() }
        });
        let levels = Arc::new(Levels(levels.collect()));
        self.make_room(levels.memory_bytes());
        self.levels.set(state.0, Arc::new(levels.clone()));
        Ok(levels)
    }

    /// Completions after tokens, and these tokens.
    fn endings(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
        successors: Successors,
    ) -> Result<Vec<Ending>> {
        let mut endings = Vec::with_capacity(successors.found.len());
        let rivals = threads.iter().map(|thread| automaton.items().rivals(thread));
        let rivals = rivals.collect::<Result<Vec<_>, _>>()?;
        for mut found in successors.found {
            if found.tokens.is_empty() && found.bitmaps.is_empty() {
                continue;
            }
            let has_history = found.threads.iter().any(|t| automaton.has_history(t.stack));
            let ended = match has_history {
                true => automaton.completing().ended_items(threads, &found.threads),
                false => SmallVec::new(),
            };
            let shared = automaton.completing().shared(&found.threads, &found.left, &ended)?;
            let Some(shared) = shared else {
                let Found { tokens, bitmaps, .. } = found;
                endings.push(Ending { text: None, tokens, bitmaps });
                continue;
            };
            if found.is_forgetful() {
                let in_strings = automaton.completing().are_within_strings(threads);
                let is_doubtful = |token: &TokenId| {
                    let text = self.vocabulary.text(*token);
                    // An item may end in it, and the next one begin.
                    let crosses = || text.contains(&b',') && (!in_strings || text.contains(&b'"'));
                    let is_near = || rivals.iter().any(|r| !automaton.items().leaves(r, text));
                    has_history && (crosses() || is_near()) || shared.is_doubtful(text)
                };
                for token in found.take(is_doubtful) {
                    if let Some(after) = automaton.walk(threads, self.vocabulary.text(token))? {
                        let text = automaton.completing().shortest(&after)?;
                        endings.push(Ending { text, tokens: vec![token], bitmaps: Vec::new() });
                    }
                }
            }
            let Found { tokens, bitmaps, .. } = found;
            endings.push(Ending { text: Some(shared.ending), tokens, bitmaps });
        }
        Ok(endings)
    }

    /// If a state is in free text: a number of tokens that suffices after the tokens that stay in
    /// it, and the successors of the others. `None` for any other state.
    fn add_exits(
        &self,
        automaton: &Automaton,
        threads: &[Thread],
    ) -> Result<Option<(usize, Successors)>> {
        let [thread] = threads else { return Ok(None) };
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(None) };
        let (lexeme, state) = (automaton.lexeme(index), thread.lex_state());
        if !is_unrecorded(thread) || lexeme.free_text(state).is_none() {
            return Ok(None);
        }
        let mask = self.lexeme_masks.get(&self.vocabulary, lexeme, state)?;
        if !are_listed(&mask) {
            return Ok(None);
        }
        let Some(length) = automaton.completing().length(threads)? else { return Ok(None) };
        let mut successors = Successors::default();
        self.add_listed_exits(automaton, thread, &mask, true, &mut successors)?;
        if automaton.escaping().is_some() {
            self.read_escaped_exits(automaton, threads, &mut successors)?;
            return Ok(Some((length + REST_OF_ESCAPE, successors)));
        }
        Ok(Some((length + REST_OF_CHARACTER, successors)))
    }
}

fn add_bitmap(row: &mut [u32], bitmap: &[u32]) {
    row.iter_mut().zip(bitmap).for_each(|(word, more)| *word |= more);
}

impl Levels {
    fn memory_bytes(&self) -> usize {
        let level = |level: &Level| {
            let tokens = match &level.tokens {
                Inner::Few(tokens) => tokens.len(),
                Inner::Many(bitmap) => bitmap.len(),
            };
            let owned = level.bitmaps.iter().filter(|bitmap| Arc::strong_count(bitmap) == 1);
            let bitmaps = owned.map(|bitmap| bitmap.len()).sum::<usize>();
            std::mem::size_of::<Level>() + (tokens + bitmaps) * 4
        };
        self.0.iter().map(level).sum::<usize>() + 64
    }
}
