//! A model's vocabulary: the bytes of each token, and the trie over them, without any grammar.

mod fewest;
mod places;
mod sorting;
mod summary;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod trie;

use std::fmt;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use thiserror::Error;

pub(crate) use sorting::{sorted_by_length, sorted_by_text};

pub use places::{NodeSet, Places, Staying};
pub use summary::{Summary, Utf8Place};
pub use trie::{ByteTrie, Descent, NodeId};

/// A token of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The id as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The most ids of a vocabulary: far more than any model has, and small enough for masks.
const MAX_WIDTH: usize = 1 << 24;

/// Why tokens form no vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VocabularyError {
    /// No token has text.
    #[error("the vocabulary has no text tokens")]
    NoText,
    /// Without an end token no sequence could end.
    #[error("no end-of-sequence token was given: pass at least one id in eos_token_ids")]
    NoEos,
    /// An end token that is not below the width, and the width.
    #[error("the end-of-sequence token {0} is outside the width of {1} ids")]
    EosOutOfRange(TokenId, usize),
    /// The width is less than the number of tokens.
    #[error("the width of {width} ids is smaller than the {tokens} tokens given")]
    TooNarrow {
        /// The given number of ids.
        width: usize,
        /// The number of tokens given.
        tokens: usize,
    },
    /// The width is beyond a fixed bound.
    #[error("the width of {0} ids is more than the {MAX_WIDTH} that a vocabulary may have")]
    TooWide(usize),
    /// The system has no memory for tables of this width.
    #[error("there is not enough memory for a width of {0} ids")]
    Memory(usize),
    /// This number of tokens is too long in total.
    #[error("the {0} tokens have more than the 16,777,216 bytes that a vocabulary may have")]
    TooLarge(usize),
    /// Bytes of UTF-8 without a token of their own, ascending.
    #[error(
        "no token encodes the byte{} {}: text that needs {} could never be written, so masks would \
         run into dead ends",
        if .0.len() == 1 { "" } else { "s" },
        list_bytes(.0),
        if .0.len() == 1 { "it" } else { "them" }
    )]
    MissingBytes(Vec<u8>),
}

fn list_bytes(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(8).map(|byte| format!("0x{byte:02X}")).collect();
    let more = bytes.len().saturating_sub(8);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

/// The tokens of a model: their bytes, and the ones that end a sequence.
#[derive(Debug)]
pub struct Vocabulary {
    /// The bytes of token `i` are `bytes[offsets[i]..offsets[i + 1]]`; empty without text.
    bytes: Vec<u8>,
    offsets: Vec<u32>,
    eos: Vec<TokenId>,
    width: usize,
    max_token_bytes: usize,
    two_keys: Vec<TokenId>,
    summaries: Vec<Summary>,
    places: Places,
    /// Bit `i % 32` of word `i / 32` for each token `i` that is text.
    texts: Box<[u32]>,
    /// Every token that is text, the longest first.
    by_length: Vec<TokenId>,
    /// For each token its place among the tokens of the trie.
    place_in_trie: Vec<u32>,
    /// Tokens by their names, those of special tokens above all.
    names: FxHashMap<Box<str>, TokenId>,
    trie: ByteTrie,
    with_backslash: OnceLock<WithBackslash>,
}

/// The tokens whose text contains a backslash.
#[derive(Debug)]
pub struct WithBackslash {
    /// Bit `i % 32` of word `i / 32` for each of them.
    pub row: Box<[u32]>,
    /// All of them by their bytes.
    pub trie: ByteTrie,
    /// Those with a quote, in which a string may end.
    pub quoted: ByteTrie,
    /// Those without.
    pub unquoted: ByteTrie,
}

/// Whether bytes can contain the end of a JSON key and the start of a later one: a quote and a
/// colon, then a comma and a quote.
fn may_span_two_keys(text: &[u8]) -> bool {
    let quote = text.iter().position(|&byte| byte == b'"');
    let colon = quote.and_then(|at| Some(at + memchr::memchr(b':', &text[at..])?));
    let comma = colon.and_then(|at| Some(at + memchr::memchr(b',', &text[at..])?));
    comma.is_some_and(|at| text[at..].contains(&b'"'))
}

/// Text may be any UTF-8, which consists of these bytes.
fn is_utf8_byte(byte: u8) -> bool {
    !matches!(byte, 0xC0 | 0xC1 | 0xF5..=0xFF)
}

impl Vocabulary {
    /// `tokens[i]` has the bytes of token `i`, `None` if it has no text (control, padding, unused).
    /// `width` is the number of logits of the model, at least the number of tokens.
    pub fn new(
        tokens: &[Option<&[u8]>],
        eos: &[TokenId],
        width: Option<usize>,
    ) -> Result<Self, VocabularyError> {
        let width = width.unwrap_or(tokens.len());
        if width < tokens.len() {
            return Err(VocabularyError::TooNarrow { width, tokens: tokens.len() });
        }
        if width > MAX_WIDTH {
            return Err(VocabularyError::TooWide(width));
        }
        if eos.is_empty() {
            return Err(VocabularyError::NoEos);
        }
        if let Some(&outside) = eos.iter().find(|id| id.index() >= width) {
            return Err(VocabularyError::EosOutOfRange(outside, width));
        }
        let mut eos = eos.to_vec();
        eos.sort_unstable();
        eos.dedup();
        // The width is a bare number, so its memory is reserved fallibly.
        let mut offsets = Vec::new();
        let mut place_in_trie = Vec::new();
        let mut texts = Vec::new();
        let words = width.div_ceil(32);
        offsets
            .try_reserve_exact(width + 1)
            .and_then(|()| place_in_trie.try_reserve_exact(width))
            .and_then(|()| texts.try_reserve_exact(words))
            .map_err(|_| VocabularyError::Memory(width))?;
        place_in_trie.resize(width, u32::MAX);
        texts.resize(words, 0);
        let mut bytes = Vec::new();
        offsets.push(0);
        let mut single = [false; 256];
        for (id, token) in tokens.iter().enumerate() {
            if let (Some(text), false) = (token, eos.contains(&TokenId(id as u32))) {
                bytes.extend_from_slice(text);
                if let &&[byte] = text {
                    single[usize::from(byte)] = true;
                }
            }
            if bytes.len() >= 1 << 24 {
                return Err(VocabularyError::TooLarge(tokens.len()));
            }
            offsets.push(bytes.len() as u32);
        }
        offsets.resize(width + 1, bytes.len() as u32);
        if bytes.is_empty() {
            return Err(VocabularyError::NoText);
        }
        let missing: Vec<u8> =
            (0..=255).filter(|&byte| is_utf8_byte(byte) && !single[usize::from(byte)]).collect();
        if !missing.is_empty() {
            return Err(VocabularyError::MissingBytes(missing));
        }
        let text = |id: usize| &bytes[offsets[id] as usize..offsets[id + 1] as usize];
        let max_token_bytes = (0..width).map(|id| text(id).len()).max().unwrap_or(0);
        let of = |token: TokenId| text(token.index());
        let texts_alone = || (0..width as u32).map(TokenId).filter(|&token| !of(token).is_empty());
        let sorted: Vec<(&[u8], TokenId)> =
            sorted_by_text(texts_alone(), of).into_iter().map(|token| (of(token), token)).collect();
        let trie = ByteTrie::from_sorted(&sorted);
        let two_keys = (0..width)
            .filter(|&id| may_span_two_keys(text(id)))
            .map(|id| TokenId(id as u32))
            .collect();
        let summaries = trie.summaries();
        let places = Places::new(&trie);
        for &(_, token) in &sorted {
            texts[token.index() / 32] |= 1 << (token.0 % 32);
        }
        let mut by_length = sorted_by_length(texts_alone(), of);
        // The longest first, and those of one length by their ids.
        by_length.reverse();
        by_length.chunk_by_mut(|&a, &b| of(a).len() == of(b).len()).for_each(<[TokenId]>::reverse);
        // Tokens that are no text have none.
        for (place, token) in trie.tokens_below(NodeId::ROOT).iter().enumerate() {
            place_in_trie[token.index()] = place as u32;
        }
        Ok(Self {
            trie,
            place_in_trie,
            summaries,
            places,
            texts: texts.into(),
            by_length,
            bytes,
            offsets,
            eos,
            width,
            max_token_bytes,
            two_keys,
            names: FxHashMap::default(),
            with_backslash: OnceLock::new(),
        })
    }

    /// The same with names, such as `<|im_end|>`, by which grammars can name tokens.
    pub fn with_names(mut self, names: impl IntoIterator<Item = (String, TokenId)>) -> Self {
        let width = self.width;
        let known = names.into_iter().filter(|(_, token)| token.index() < width);
        self.names.extend(known.map(|(name, token)| (name.into(), token)));
        self
    }

    /// The names of tokens, in any order.
    pub fn names(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.names.iter().map(|(name, &token)| (&**name, token))
    }

    /// The token of a name.
    pub fn named(&self, name: &str) -> Option<TokenId> {
        self.names.get(name).copied()
    }

    /// The number of logits of the model.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many 32-bit words a bitmask row has.
    pub fn mask_words(&self) -> usize {
        self.width.div_ceil(32)
    }

    /// The tokens that end a sequence, sorted.
    pub fn eos(&self) -> &[TokenId] {
        &self.eos
    }

    /// Whether a token ends a sequence.
    #[inline]
    pub fn is_eos(&self, token: TokenId) -> bool {
        self.eos.contains(&token)
    }

    /// Returns the bytes of a token; empty for one without text or outside the vocabulary.
    #[inline]
    pub fn text(&self, token: TokenId) -> &[u8] {
        match (self.offsets.get(token.index()), self.offsets.get(token.index() + 1)) {
            (Some(&start), Some(&end)) => &self.bytes[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The length of the longest token.
    pub fn max_token_bytes(&self) -> usize {
        self.max_token_bytes
    }

    /// The few tokens in which one key of a JSON object may end and a later one begin.
    pub fn tokens_with_two_keys(&self) -> &[TokenId] {
        &self.two_keys
    }

    /// The tokens in which an escape of a string may begin.
    pub fn with_backslash(&self) -> &WithBackslash {
        self.with_backslash.get_or_init(|| {
            let mut row: Box<[u32]> = vec![0; self.mask_words()].into();
            let all = self.trie.tokens_below(NodeId::ROOT).iter();
            let sorted: Vec<(&[u8], TokenId)> = all
                .map(|&token| (self.text(token), token))
                .filter(|(text, _)| text.contains(&b'\\'))
                .collect();
            sorted.iter().for_each(|(_, token)| row[token.index() / 32] |= 1 << (token.0 % 32));
            let (quoted, unquoted): (Vec<_>, Vec<_>) =
                sorted.iter().partition(|(text, _)| text.contains(&b'"'));
            let [trie, quoted, unquoted] =
                [&sorted, &quoted, &unquoted].map(|tokens| ByteTrie::from_sorted(tokens));
            WithBackslash { row, trie, quoted, unquoted }
        })
    }

    /// Returns the bytes that occur below a node of the trie.
    #[inline]
    pub fn below(&self, node: NodeId) -> Summary {
        self.summaries[node.index()]
    }

    /// Returns the nodes of the trie by the byte before them.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Bit `i % 32` of word `i / 32` for each token `i` that is text.
    pub fn texts(&self) -> &[u32] {
        &self.texts
    }

    /// Returns the tokens of more than this many bytes.
    pub fn longer_than(&self, bytes: usize) -> &[TokenId] {
        let end = self.by_length.partition_point(|&token| self.text(token).len() > bytes);
        &self.by_length[..end]
    }

    /// Returns a length that at most this many tokens exceed.
    pub fn length_of_all_but(&self, tokens: usize) -> usize {
        self.by_length.get(tokens).map_or(0, |&token| self.text(token).len())
    }

    /// The tokens that are text, by their bytes.
    pub fn trie(&self) -> &ByteTrie {
        &self.trie
    }

    /// Returns the index of a token in the trie's order; those below a node are a run.
    #[inline]
    pub fn place_in_trie(&self, token: TokenId) -> usize {
        self.place_in_trie[token.index()] as usize
    }

    /// About how many bytes of memory the tables hold.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + (self.offsets.capacity() + self.summaries.capacity() + self.by_length.capacity()) * 4
            + self.place_in_trie.capacity() * 4
            + self.texts.len() * 4
            + self.places.memory_bytes()
            + self.trie.memory_bytes()
    }
}
