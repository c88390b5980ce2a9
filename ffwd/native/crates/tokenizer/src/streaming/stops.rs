//! The stops of a text: tokens, and strings that are searched incrementally.

use std::sync::Arc;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous;
use aho_corasick::{nfa::contiguous, Anchored, MatchKind};
use rustc_hash::FxHashMap;

use super::decoder::Decoder;
use super::error::StopError;
use crate::vocabulary::TokenId;
use ffwd_bounds::error::LimitExceeded;

/// The most bytes that all stop strings of a request may have together: the search for them takes a
/// few dozen times as much memory.
pub(crate) const MAX_STRING_BYTES: usize = 1 << 16;

/// Stops. Hidden ones are not shown, visible ones end the text.
#[derive(Clone, Debug, Default)]
pub struct StopOptions {
    /// Hidden tokens.
    pub tokens: Vec<TokenId>,
    /// Hidden strings.
    pub strings: Vec<String>,
    /// Visible tokens.
    pub visible_tokens: Vec<TokenId>,
    /// Visible strings.
    pub visible_strings: Vec<String>,
}

/// The reason of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A stop token.
    Token(TokenId),
    /// A stop string; it may span several tokens.
    String(Arc<str>),
}

/// A token that stops, and what is reported.
#[derive(Clone, Debug)]
pub struct StopToken {
    pub stop: Stop,
    pub visible: bool,
}

/// A string that was found: the number of its bytes, which are the last ones read.
#[derive(Clone, Debug)]
pub struct StopString {
    pub text: Arc<str>,
    pub visible: bool,
}

/// Stop tokens and strings, prepared for the search. Immutable.
#[derive(Debug)]
pub struct Stops {
    tokens: FxHashMap<TokenId, StopToken>,
    strings: Vec<StopString>,
    search: Option<Search>,
}

#[derive(Debug)]
struct Search {
    automaton: contiguous::NFA,
    start: StateID,
    /// The length of the stop string's prefix, for each state but the first.
    depths: FxHashMap<StateID, usize>,
}

/// The state of the search: the prefix of a stop string that ends the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchState(Option<StateID>);

/// A stop string that ends in some text.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub string: &'a StopString,
    /// Its end in the text that was just read.
    pub end: usize,
}

impl Stops {
    /// If special tokens are skipped, a stop string that is the name of one stops at that token: it
    /// would never occur in the text.
    pub fn new(
        decoder: &Decoder,
        skip_special_tokens: bool,
        options: StopOptions,
    ) -> Result<Self, StopError> {
        let strings = checked_strings(options.strings, options.visible_strings)?;
        let mut tokens = FxHashMap::default();
        for (list, visible) in [(options.tokens, false), (options.visible_tokens, true)] {
            for token in list {
                decoder.token(token)?;
                let stop = StopToken { stop: Stop::Token(token), visible };
                if tokens.insert(token, stop).is_some_and(|other| other.visible != visible) {
                    return Err(StopError::TokenHiddenAndVisible { token });
                }
            }
        }
        if skip_special_tokens && !strings.is_empty() {
            let by_text: FxHashMap<&[u8], &StopString> =
                strings.iter().map(|string| (string.text.as_bytes(), string)).collect();
            for (token, name) in decoder.specials() {
                if let Some(string) = by_text.get(name) {
                    tokens.entry(token).or_insert_with(|| StopToken {
                        stop: Stop::String(Arc::clone(&string.text)),
                        visible: string.visible,
                    });
                }
            }
        }
        let search = if strings.is_empty() { None } else { Some(Search::new(&strings)?) };
        Ok(Self { tokens, strings, search })
    }

    #[inline]
    pub(crate) fn token(&self, token: TokenId) -> Option<&StopToken> {
        if self.tokens.is_empty() {
            return None;
        }
        self.tokens.get(&token)
    }

    pub(crate) fn start(&self) -> SearchState {
        SearchState(self.search.as_ref().map(|search| search.start))
    }

    /// Reads up to the end of the first stop string, which is the one that ends first. So a caller
    /// can stop there without the later text, and the result does not depend on tokens. If several
    /// end together, the longest counts, which starts first.
    #[inline]
    pub(crate) fn read(&self, state: &mut SearchState, text: &str) -> Option<Found<'_>> {
        let (Some(search), SearchState(Some(state))) = (&self.search, state) else {
            return None;
        };
        for (index, &byte) in text.as_bytes().iter().enumerate() {
            *state = search.automaton.next_state(Anchored::No, *state, byte);
            if search.automaton.is_match(*state) {
                let automaton = &search.automaton;
                let string = (0..automaton.match_len(*state))
                    .map(|at| &self.strings[automaton.match_pattern(*state, at).as_usize()])
                    .max_by_key(|string| string.text.len())?;
                return Some(Found { string, end: index + 1 });
            }
        }
        None
    }

    /// How many bytes at the end of what was read may become a stop string.
    #[inline]
    pub(crate) fn held(&self, state: SearchState) -> usize {
        match (&self.search, state) {
            (Some(search), SearchState(Some(state))) if state != search.start => {
                search.depths.get(&state).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

impl Search {
    fn new(strings: &[StopString]) -> Result<Self, StopError> {
        let too_many = |_| LimitExceeded::new("stop_string_bytes", MAX_STRING_BYTES);
        let trie = noncontiguous::Builder::new()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(strings.iter().map(|string| string.text.as_bytes()))
            .map_err(too_many)?;
        let automaton = contiguous::Builder::new()
            .prefilter(false)
            .build_from_noncontiguous(&trie)
            .map_err(too_many)?;
        let start = automaton
            .start_state(Anchored::No)
            .map_err(|_| LimitExceeded::new("stop_string_bytes", MAX_STRING_BYTES))?;
        let mut depths = FxHashMap::default();
        for string in strings {
            let mut state = start;
            for (index, &byte) in string.text.as_bytes().iter().enumerate() {
                state = automaton.next_state(Anchored::No, state, byte);
                depths.insert(state, index + 1);
            }
        }
        Ok(Self { automaton, start, depths })
    }
}

/// Every string once, the hidden ones first.
fn checked_strings(
    hidden: Vec<String>,
    visible: Vec<String>,
) -> Result<Vec<StopString>, StopError> {
    let mut strings: Vec<StopString> = Vec::with_capacity(hidden.len() + visible.len());
    let mut known: FxHashMap<Arc<str>, bool> = FxHashMap::default();
    let mut total = 0;
    for (list, name, shown) in [(hidden, "stop", false), (visible, "visible stop", true)] {
        for (index, text) in list.into_iter().enumerate() {
            if text.is_empty() {
                return Err(StopError::Empty { list: name, index });
            }
            total += text.len();
            if total > MAX_STRING_BYTES {
                return Err(LimitExceeded::new("stop_string_bytes", MAX_STRING_BYTES).into());
            }
            let text: Arc<str> = text.into();
            match known.insert(Arc::clone(&text), shown) {
                None => strings.push(StopString { text, visible: shown }),
                Some(before) if before == shown => {}
                Some(_) => {
                    return Err(StopError::HiddenAndVisible { text: text.to_string(), index })
                }
            }
        }
    }
    Ok(strings)
}
