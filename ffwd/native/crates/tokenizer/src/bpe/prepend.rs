//! The encoding of a piece that grows at its start, known after every byte.
//!
//! It mirrors appending. The encoding of a suffix has exactly one first token: the suffix starts
//! with it, and the first token of the rest may follow it.

use super::table::BpeTable;
use crate::vocabulary::TokenId;

/// The encoding of a suffix.
#[derive(Clone, Copy, Debug)]
struct Suffix {
    /// The first token of the encoding by merges, and how many tokens that has.
    first: TokenId,
    count: u32,
    /// The token that is all of it, if whole pieces are looked up.
    whole: Option<TokenId>,
}

/// A piece that grows at its beginning. Each call needs the table of the first one.
#[derive(Clone, Debug, Default)]
pub struct PiecePrepender {
    /// The piece from its end to its beginning.
    reversed: Vec<u8>,
    suffixes: Vec<Suffix>,
}

impl PiecePrepender {
    /// The empty piece.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of the piece in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.suffixes.len()
    }

    /// Puts a byte before the piece.
    pub fn push(&mut self, table: &BpeTable, byte: u8) {
        self.reversed.push(byte);
        let (mut candidate, whole) = table.begin(self.reversed.iter().rev().copied());
        let length = self.reversed.len();
        let (first, count) = loop {
            let Some(token) = candidate else {
                let after = self.suffixes.last().map_or(0, |suffix| suffix.count);
                break (table.byte_token(byte), after + 1);
            };
            match (length - table.length(token)).checked_sub(1) {
                None => break (token, 1),
                Some(index) => {
                    let suffix = &self.suffixes[index];
                    if table.may_follow(token, suffix.first) {
                        break (token, suffix.count + 1);
                    }
                }
            }
            candidate = table.shorter(token);
        };
        self.suffixes.push(Suffix { first, count, whole });
    }

    /// Puts a text before the piece.
    #[cfg(test)]
    pub(crate) fn extend(&mut self, table: &BpeTable, text: &[u8]) {
        for &byte in text.iter().rev() {
            self.push(table, byte);
        }
    }

    /// Keeps the last bytes of the piece only.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.reversed.truncate(length);
        self.suffixes.truncate(length);
    }

    /// How many tokens the piece has.
    #[inline]
    pub fn count(&self) -> usize {
        self.count_of_suffix(self.len())
    }

    /// How many tokens the last bytes of the piece have, encoded alone.
    #[inline]
    pub(crate) fn count_of_suffix(&self, length: usize) -> usize {
        match length.checked_sub(1).and_then(|index| self.suffixes.get(index)) {
            Some(suffix) if suffix.whole.is_some() => 1,
            Some(suffix) => suffix.count as usize,
            None => 0,
        }
    }

    /// Appends the tokens of the last bytes of the piece, encoded alone.
    #[cfg(test)]
    pub(crate) fn tokens_of_suffix(&self, table: &BpeTable, length: usize, out: &mut Vec<TokenId>) {
        let mut rest = &self.suffixes[..length.min(self.len())];
        if let Some(token) = rest.last().and_then(|suffix| suffix.whole) {
            out.push(token);
            return;
        }
        while let Some(suffix) = rest.last() {
            out.push(suffix.first);
            rest = &rest[..rest.len() - table.length(suffix.first)];
        }
    }
}
