//! The tokens within JSON strings whose characters are of one kind, by the state they lead to. It
//! depends only on the number of whole characters and on the bytes after these.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::free_text::{first_character, run};
use super::inside::Inside;
use super::lexeme_mask::{Inner, LexemeMask};
use super::token_set::bits;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::{LexState, Lexeme};
use ffwd_tokenizer::vocabulary::{NodeId, TokenId, Vocabulary};

/// Tokens by the number of whole characters and the bytes after these, which are of an unfinished
/// character or the closing quote.
type Group = (u32, Box<[u8]>, Arc<Inner>);

/// The tokens that stay within a string or end with it.
#[derive(Debug)]
pub(super) struct FreeGroups {
    /// Any character of the kind; empty if no token has a whole one.
    character: Box<[u8]>,
    /// Sorted by the number of characters.
    groups: Box<[Group]>,
}

impl FreeGroups {
    /// From the mask of a string of any number of characters of the kind.
    pub fn new(vocabulary: &Vocabulary, unbounded: &LexemeMask) -> Result<Self, LimitExceeded> {
        let inner: Box<[TokenId]> = match &unbounded.inner {
            Inner::Few(tokens) => tokens.clone(),
            Inner::Many(bitmap) => bits(bitmap).collect(),
        };
        let ends = unbounded.exits.iter().flat_map(|exit| {
            let grafts = exit.grafts.iter().filter(|&&(_, with_node)| with_node);
            let grafted = grafts.flat_map(|&(node, _)| vocabulary.trie().tokens_at(node));
            exit.rests.tokens_at(NodeId::ROOT).iter().chain(grafted)
        });
        let mut character: &[u8] = &[];
        let mut found: FxHashMap<(u32, &[u8]), Vec<TokenId>> = FxHashMap::default();
        for &token in inner.iter().chain(ends) {
            meter::charge(1)?;
            let mut count = 0;
            let mut rest = vocabulary.text(token);
            while !matches!(rest, [] | [b'"', ..]) {
                let Some((first, others)) = rest.split_at_checked(first_character(rest)) else {
                    break;
                };
                (character, count, rest) = (first, count + 1, others);
            }
            found.entry((count, rest)).or_default().push(token);
        }
        let mut groups: Vec<Group> = Vec::with_capacity(found.len());
        for ((count, rest), mut tokens) in found {
            // A mask may list tokens that end with the string among its inner ones, too.
            tokens.sort_unstable();
            tokens.dedup();
            groups.push((count, rest.into(), Arc::new(Inner::of(vocabulary, tokens))));
        }
        groups.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        Ok(Self { character: character.into(), groups: groups.into() })
    }

    /// The same by state, from a state inside such a string, whose length may be bounded.
    pub fn inside(&self, lexeme: &Lexeme, from: LexState) -> Result<Inside, LimitExceeded> {
        let (mut from, mut read) = (from, 0);
        let mut found = Vec::with_capacity(self.groups.len());
        for (count, rest, tokens) in &self.groups {
            while read < *count {
                let Some(next) = run(lexeme, from, &self.character)? else {
                    return Ok(Inside::of(found));
                };
                (from, read) = (next, read + 1);
            }
            meter::charge(1 + rest.len())?;
            if let Some(to) = run(lexeme, from, rest)? {
                found.push((to, tokens.clone()));
            }
        }
        Ok(Inside::of(found))
    }

    pub fn memory_bytes(&self) -> usize {
        let group = |(_, rest, tokens): &Group| match &**tokens {
            Inner::Few(tokens) => 96 + rest.len() + tokens.len() * 4,
            Inner::Many(bitmap) => 96 + rest.len() + bitmap.len() * 4,
        };
        self.groups.iter().map(group).sum()
    }
}
