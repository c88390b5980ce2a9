//! JSON strings whose characters are of one kind. If their length is bounded, or a pattern must
//! match in them, their masks are derived from that of the unbounded string, without another walk.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::lexeme_mask::{Inner, LexemeMask};
use super::rest_tries::RestTries;
use super::token_set::{bits, Bitmap};
use super::walk::Collected;
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::expr::json_text::closing_quote;
use ffwd_regular::expr::lexeme::FreeText;
use ffwd_regular::expr::{LexState, Lexeme};
use ffwd_tokenizer::vocabulary::{NodeId, TokenId, Vocabulary};

/// Returns the number of characters of a JSON string that start within these bytes.
fn characters_begun(bytes: &[u8]) -> u32 {
    let mut count = 0;
    let mut at = 0;
    while at < bytes.len() {
        count += 1;
        at += first_character(&bytes[at..]);
    }
    count
}

/// The number of bytes of the character of a JSON string that begins with these bytes. They may
/// have only its first ones.
#[inline]
pub(super) fn first_character(bytes: &[u8]) -> usize {
    match bytes[0] {
        b'\\' if bytes.get(1) == Some(&b'u') => 6,
        b'\\' => 2,
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// The number of characters of a JSON string that start in each token, and the tokens by it.
#[derive(Debug)]
pub(super) struct Lengths {
    of: Box<[u32]>,
    pub(super) longest: u32,
    at_most: Mutex<FxHashMap<u32, Bitmap>>,
}

impl Lengths {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let of: Box<[u32]> = (0..vocabulary.width() as u32)
            .map(|id| characters_begun(vocabulary.text(TokenId(id))))
            .collect();
        let longest = of.iter().copied().max().unwrap_or(0);
        Self { of, longest, at_most: Mutex::default() }
    }

    fn at_most(&self, characters: u32) -> Bitmap {
        let words = || {
            self.of.chunks(32).map(|chunk| {
                chunk
                    .iter()
                    .enumerate()
                    .fold(0, |word, (bit, &count)| word | u32::from(count <= characters) << bit)
            })
        };
        self.at_most.lock().entry(characters).or_insert_with(|| words().collect()).clone()
    }
}

/// The inside of a JSON string of any number of characters of one kind, from which those of a
/// bounded number are derived without another walk.
#[derive(Debug)]
pub(super) struct FreeBasis {
    pub(super) unbounded: Arc<LexemeMask>,
    pub(super) lengths: Arc<Lengths>,
    /// The exit tokens, sorted: the text after the quote, the token, the number of characters
    /// before the quote.
    exits: Vec<(Vec<u8>, TokenId, u32)>,
}

impl FreeBasis {
    pub(super) fn new(
        vocabulary: &Vocabulary,
        lengths: Arc<Lengths>,
        unbounded: Arc<LexemeMask>,
    ) -> Self {
        // Every token whose first quote closes the string from the inside.
        let mut exits = Vec::new();
        for group in &unbounded.exits {
            let grafted = group
                .grafts
                .iter()
                .flat_map(|&(node, _)| vocabulary.trie().tokens_below(node).iter().copied());
            let copied = group.rests.tokens_below(NodeId::ROOT).iter().copied();
            for token in copied.chain(grafted) {
                let text = vocabulary.text(token);
                if let Some(quote) = closing_quote(text) {
                    let before = characters_begun(&text[..quote]);
                    exits.push((text[quote + 1..].to_vec(), token, before));
                }
            }
        }
        exits.sort_unstable();
        Self { unbounded, lengths, exits }
    }

    pub(super) fn bounded(
        &self,
        tries: &RestTries,
        vocabulary: &Vocabulary,
        free: FreeText,
    ) -> LexemeMask {
        let inner = match free.max {
            Some(max) if max < self.lengths.longest => match &self.unbounded.inner {
                Inner::Few(tokens) => {
                    let short = |token: &TokenId| self.lengths.of[token.index()] <= max;
                    Inner::Few(tokens.iter().copied().filter(short).collect())
                }
                Inner::Many(all) => {
                    let short = self.lengths.at_most(max);
                    let both: Bitmap =
                        all.iter().zip(short.iter()).map(|(all, short)| all & short).collect();
                    let count: u32 = both.iter().map(|word| word.count_ones()).sum();
                    if count as usize <= vocabulary.mask_words() / 4 {
                        Inner::Few(bits(&both).collect())
                    } else {
                        Inner::Many(both)
                    }
                }
            },
            _ => self.unbounded.inner.clone(),
        };
        let max = free.max.unwrap_or(u32::MAX);
        let rests = self
            .exits
            .iter()
            .filter(|&&(_, _, characters)| free.min <= characters && characters <= max)
            .map(|(rest, token, _)| (rest.as_slice(), *token))
            .collect();
        let mut exits = Collected::new(1);
        exits.rests = rests;
        let exits = vec![exits.build(tries)];
        LexemeMask { inner, exits }
    }
}

impl FreeBasis {
    /// The mask of a state that any characters may continue. Inner tokens are those of any string;
    /// exits are those whose characters before the quote complete the text.
    pub(super) fn searching(
        &self,
        tries: &RestTries,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<LexemeMask, LimitExceeded> {
        let mut exits: Vec<Collected<'_>> = Vec::new();
        for (rest, token, _) in &self.exits {
            let text = vocabulary.text(*token);
            let end = run(lexeme, state, &text[..text.len() - rest.len()])?;
            if let Some(end) = end.filter(|end| end.is_final()) {
                Collected::group(&mut exits, lexeme.accept(end)).rests.push((rest, *token));
            }
        }
        let exits = exits.into_iter().map(|group| group.build(tries)).collect();
        Ok(LexemeMask { inner: self.unbounded.inner.clone(), exits })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let exits: usize = self.exits.iter().map(|(rest, _, _)| rest.capacity() + 40).sum();
        self.unbounded.memory_bytes() + exits
    }
}

/// The state after a run of bytes.
pub(super) fn run(
    lexeme: &Lexeme,
    state: LexState,
    bytes: &[u8],
) -> Result<Option<LexState>, LimitExceeded> {
    let mut state = state;
    for &byte in bytes {
        match lexeme.next(state, byte)? {
            Some(next) => state = next,
            None => return Ok(None),
        }
    }
    Ok(Some(state))
}
