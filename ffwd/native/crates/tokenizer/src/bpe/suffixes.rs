//! The tokens that a text ends with, kept up to date from byte to byte: the automaton of Aho and
//! Corasick over the trie of the tokens.

use super::texts::Texts;
use super::trie::{Slot, Trie};
use crate::vocabulary::TokenId;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Suffixes {
    /// For each place of the trie that of the longest proper suffix of its text in the trie.
    shorter_place: Vec<Slot>,
    /// For each byte which ones come after it within a token.
    inside: Box<[[u64; 4]; 256]>,
    /// For each node the longest reachable token that ends its text.
    longest: Vec<u32>,
    /// For each reachable token the longest other one that ends it.
    shorter_token: Vec<u32>,
}

impl Suffixes {
    /// Builds the automaton for a trie that lacks some tokens, which count as unreachable.
    pub fn new(texts: &Texts, trie: &Trie) -> Self {
        let mut suffixes = Self {
            shorter_place: vec![Slot::ROOT; trie.places()],
            inside: Box::new([[0; 4]; 256]),
            longest: vec![NONE; trie.places()],
            shorter_token: vec![NONE; texts.width()],
        };
        let mut growing: Vec<(&[u8], Slot)> = texts
            .tokens()
            .filter(|(_, text)| trie.find(text).is_some())
            .map(|(_, text)| (text, Slot::ROOT))
            .collect();
        let mut seen = vec![false; trie.places()];
        // All prefixes of one length, and then those that are one byte longer.
        for depth in 0.. {
            growing.retain_mut(|(text, place)| {
                let Some(&byte) = text.get(depth) else { return false };
                let Some(child) = trie.child_at(*place, byte) else { return false };
                if !std::mem::replace(&mut seen[child.index()], true) {
                    suffixes.add(trie, *place, byte, child);
                }
                *place = child;
                true
            });
            if growing.is_empty() {
                return suffixes;
            }
        }
        suffixes
    }

    fn add(&mut self, trie: &Trie, parent: Slot, byte: u8, child: Slot) {
        let shorter = if parent == Slot::ROOT {
            Slot::ROOT
        } else {
            let before = trie.at(parent).label();
            self.inside[usize::from(before)][usize::from(byte) / 64] |= 1 << (byte % 64);
            self.step(trie, self.shorter_place[parent.index()], byte).0
        };
        self.shorter_place[child.index()] = shorter;
        let below = self.longest[shorter.index()];
        self.longest[child.index()] = match trie.at(child).reachable_token() {
            Some(token) => {
                self.shorter_token[token.index()] = below;
                token.0
            }
            None => below,
        };
    }

    /// Returns the node of the longest suffix in the trie after one more byte, and whether it
    /// extends the previous node's text without dropping its start.
    #[inline]
    pub fn step(&self, trie: &Trie, place: Slot, byte: u8) -> (Slot, bool) {
        let mut from = place;
        let before = trie.at(place).label();
        if self.inside[usize::from(before)][usize::from(byte) / 64] >> (byte % 64) & 1 == 0 {
            // All suffixes end with the same byte, so only the empty one continues.
            from = Slot::ROOT;
        }
        loop {
            if let Some(child) = trie.child_at(from, byte) {
                return (child, from == place);
            }
            if from == Slot::ROOT {
                return (Slot::ROOT, false);
            }
            from = self.shorter_place[from.index()];
        }
    }

    /// Returns the longest reachable token that ends a text.
    #[inline]
    pub fn longest(&self, place: Slot) -> Option<TokenId> {
        let longest = self.longest[place.index()];
        (longest != NONE).then_some(TokenId(longest))
    }

    /// The longest reachable token that a reachable token ends with, other than itself.
    #[inline]
    pub fn shorter(&self, token: TokenId) -> Option<TokenId> {
        let shorter = self.shorter_token[token.index()];
        (shorter != NONE).then_some(TokenId(shorter))
    }

    pub fn memory_bytes(&self) -> usize {
        let places = self.shorter_place.capacity() + self.longest.capacity();
        (places + self.shorter_token.capacity()) * 4 + std::mem::size_of_val(&*self.inside)
    }
}
