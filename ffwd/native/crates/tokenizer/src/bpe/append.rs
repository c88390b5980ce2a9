//! The encoding of a piece that grows at its end, known after every byte.
//!
//! The encoding of a prefix has exactly one last token: the prefix ends with it, and it may follow
//! the last token of the text before it. The last tokens of all prefixes therefore give the
//! encoding of each, and shortening the piece only drops some of them.

use super::table::BpeTable;
use super::trie::Slot;
use crate::vocabulary::TokenId;

/// The encoding of a prefix.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    /// The longest suffix that begins a token.
    suffix: Slot,
    /// The last token of the encoding by merges.
    last: TokenId,
    /// The number of its tokens and, in the lowest bit, whether the suffix is all of the prefix.
    count: u32,
}

impl Prefix {
    #[inline]
    fn count(self) -> u32 {
        self.count >> 1
    }

    #[inline]
    fn is_whole(self) -> bool {
        self.count & 1 != 0
    }

    /// The token that is all of the prefix, if whole pieces are looked up.
    #[inline]
    fn whole(self, table: &BpeTable) -> Option<TokenId> {
        table.whole_token_at(self.suffix).filter(|_| self.is_whole())
    }
}

/// A piece that grows at its end. Each call needs the table of the first one.
#[derive(Clone, Debug, Default)]
pub struct PieceAppender {
    prefixes: Vec<Prefix>,
}

impl PieceAppender {
    /// The empty piece.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of the piece in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Appends a byte to the piece.
    pub fn push(&mut self, table: &BpeTable, byte: u8) {
        let (suffixes, trie) = (table.suffixes(), table.trie());
        let before = self.prefixes.last().copied().unwrap_or(Prefix {
            suffix: Slot::ROOT,
            last: table.byte_token(byte),
            count: 1,
        });
        let (suffix, is_longer) = suffixes.step(trie, before.suffix, byte);
        let is_whole = is_longer && before.is_whole();
        let length = self.prefixes.len() + 1;
        let mut candidate = suffixes.longest(suffix);
        let (last, count) = loop {
            // No token of a piece ends here: a byte that no piece has, or a character has begun.
            let Some(token) = candidate else {
                break (table.byte_token(byte), before.count() + 1);
            };
            match (length - table.length(token)).checked_sub(1) {
                None => break (token, 1),
                Some(index) => {
                    let prefix = self.prefixes[index];
                    if table.may_follow(prefix.last, token) {
                        break (token, prefix.count() + 1);
                    }
                }
            }
            candidate = suffixes.shorter(token);
        };
        self.prefixes.push(Prefix { suffix, last, count: count << 1 | u32::from(is_whole) });
    }

    pub(crate) fn extend(&mut self, table: &BpeTable, text: &[u8]) {
        self.prefixes.reserve(text.len());
        for &byte in text {
            self.push(table, byte);
        }
    }

    /// Keeps the first bytes of the piece only.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.prefixes.truncate(length);
    }

    /// How many tokens the piece has.
    #[inline]
    pub fn count(&self, table: &BpeTable) -> usize {
        self.count_of_prefix(table, self.len())
    }

    /// How many tokens the first bytes of the piece have, encoded alone.
    #[inline]
    pub(crate) fn count_of_prefix(&self, table: &BpeTable, length: usize) -> usize {
        match length.checked_sub(1).and_then(|index| self.prefixes.get(index)) {
            Some(prefix) if prefix.whole(table).is_some() => 1,
            Some(prefix) => prefix.count() as usize,
            None => 0,
        }
    }

    /// The last token of the encoding of each prefix by merges, and how many tokens it has.
    pub(super) fn lasts(&self) -> impl Iterator<Item = (TokenId, u32)> + '_ {
        self.prefixes.iter().map(|prefix| (prefix.last, prefix.count()))
    }

    /// Appends the tokens of the first bytes of the piece, encoded alone.
    #[cfg(test)]
    pub(crate) fn tokens_of_prefix(&self, table: &BpeTable, length: usize, out: &mut Vec<TokenId>) {
        let mut rest = &self.prefixes[..length.min(self.len())];
        if let Some(token) = rest.last().and_then(|prefix| prefix.whole(table)) {
            out.push(token);
            return;
        }
        let first = out.len();
        while let Some(prefix) = rest.last() {
            out.push(prefix.last);
            rest = &rest[..rest.len() - table.length(prefix.last)];
        }
        out[first..].reverse();
    }
}
