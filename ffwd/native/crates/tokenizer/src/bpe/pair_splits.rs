//! The splits of all tokens from the shortest to the longest, without encoding any text.
//!
//! A merge of `left` and `right` is the split of its token exactly if both are reachable, and
//! `right` may follow `left` by the merges of shorter tokens. Then encoding the token's text gives
//! these two, and they merge last. Every other merge across the border makes a shorter token, so
//! the pair test of [`may_follow`] knows it already. At most one pair passes, because the encoding
//! without the token's own merges is unique.
//!
//! This is for a base of bytes and tokens with different texts; [`find_splits`] is for all others,
//! and what this is compared with.
//!
//! [`find_splits`]: super::merge_rules::find_splits

use rustc_hash::FxHashMap;

use super::pair::may_follow;
use super::pair_map::PairMap;
use super::spec::{Base, BpeError, BpeSpec, Merges, MAX_MERGES};
use super::splits::Splits;
use super::texts::Texts;
use crate::vocabulary::TokenId;

/// The splits with their levels, and the merges by their parts; `None` where this way is not
/// possible.
///
/// `sorted`: all tokens by their texts; `by_length`: from the shortest to the longest.
pub(super) fn find_splits_by_pairs(
    texts: &Texts,
    spec: &BpeSpec,
    sorted: &[TokenId],
    by_length: &[TokenId],
) -> Result<Option<(Splits, PairMap)>, BpeError> {
    let same = |pair: &[TokenId]| texts.get(pair[0]) == texts.get(pair[1]);
    if spec.base != Base::Bytes || sorted.windows(2).any(same) {
        return Ok(None);
    }
    let rules = match &spec.merges {
        Merges::Listed(list) => Candidates::Listed(Listed::new(texts, list)?),
        Merges::Ranked(tokens) => Candidates::Ranked(Ranked::new(texts, tokens, sorted)?),
    };
    let mut splits = Splits::unreachable(texts);
    for byte in 0..=255 {
        splits.set_base(texts.byte_token(byte));
    }
    splits.begin_in_order();
    let mut pairs = PairMap::with_room(by_length.len());
    for &token in by_length {
        if texts.get(token).len() < 2 {
            continue;
        }
        let split = rules.find(texts, token, |left, right| {
            splits.is_reachable(left)
                && splits.is_reachable(right)
                && may_follow(&splits, &pairs, left, right)
        });
        if let Some((left, right, rank)) = split {
            splits.set_in_order(token, left, right, rank);
            pairs.insert(&splits, token);
        }
    }
    splits.finish_in_order();
    Ok(Some((splits, pairs)))
}

enum Candidates<'a> {
    Listed(Listed),
    Ranked(Ranked<'a>),
}

impl Candidates<'_> {
    /// The pair of a token that is a split, with the rank of its merge.
    fn find(
        &self,
        texts: &Texts,
        token: TokenId,
        is_split: impl Fn(TokenId, TokenId) -> bool,
    ) -> Option<(TokenId, TokenId, u32)> {
        match self {
            Self::Listed(listed) => listed.find(token, is_split),
            Self::Ranked(ranked) => ranked.find(texts, token, is_split),
        }
    }
}

fn known(texts: &Texts, token: TokenId) -> Result<&[u8], BpeError> {
    match texts.get(token) {
        [] => Err(BpeError::UnknownToken(token)),
        text => Ok(text),
    }
}

/// The listed merges by their tokens.
struct Listed {
    /// Those of token `i` are `merges[starts[i]..starts[i + 1]]`, the most urgent first.
    starts: Vec<u32>,
    merges: Vec<(TokenId, TokenId, u32)>,
}

impl Listed {
    fn new(texts: &Texts, list: &[(TokenId, TokenId, TokenId)]) -> Result<Self, BpeError> {
        if list.len() > MAX_MERGES {
            return Err(BpeError::TooManyMerges);
        }
        let mut starts = vec![0u32; texts.width() + 2];
        for &(left, right, merged) in list {
            let first = known(texts, left)?;
            let second = known(texts, right)?;
            if known(texts, merged)?.strip_prefix(first) != Some(second) {
                return Err(BpeError::WrongMerge { left, right, merged });
            }
            starts[merged.index() + 2] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut merges = vec![(TokenId(0), TokenId(0), 0); list.len()];
        for (rank, &(left, right, merged)) in (1..).zip(list) {
            let free = &mut starts[merged.index() + 1];
            merges[*free as usize] = (left, right, rank);
            *free += 1;
        }
        Ok(Self { starts, merges })
    }

    fn find(
        &self,
        token: TokenId,
        is_split: impl Fn(TokenId, TokenId) -> bool,
    ) -> Option<(TokenId, TokenId, u32)> {
        let start = self.starts[token.index()] as usize;
        let end = self.starts[token.index() + 1] as usize;
        let of_token = &self.merges[start..end];
        let found = of_token.iter().find(|&&(left, right, _)| is_split(left, right))?;
        // For a pair that is listed twice, the last position counts.
        let last = of_token.iter().rev().find(|merge| merge.0 == found.0 && merge.1 == found.1);
        last.copied()
    }
}

/// Tokens by their texts, where any two of them merge that together are a token.
struct Ranked<'a> {
    ranks: Vec<u32>,
    tokens: FxHashMap<&'a [u8], TokenId>,
    /// The longest token that is a proper prefix of a token.
    prefixes: Vec<Option<TokenId>>,
}

impl<'a> Ranked<'a> {
    fn new(texts: &'a Texts, listed: &[TokenId], sorted: &[TokenId]) -> Result<Self, BpeError> {
        if listed.len() > MAX_MERGES {
            return Err(BpeError::TooManyMerges);
        }
        let mut ranks = vec![0; texts.width()];
        let mut tokens = FxHashMap::default();
        tokens.reserve(listed.len());
        for (rank, &token) in (1..).zip(listed) {
            let text = known(texts, token)?;
            tokens.entry(text).or_insert(token);
            if ranks[token.index()] == 0 {
                ranks[token.index()] = rank;
            }
        }
        let mut prefixes = vec![None; texts.width()];
        each_prefix(texts, sorted, |_| true, |token, prefix| prefixes[token.index()] = prefix);
        Ok(Self { ranks, tokens, prefixes })
    }

    fn find(
        &self,
        texts: &Texts,
        token: TokenId,
        is_split: impl Fn(TokenId, TokenId) -> bool,
    ) -> Option<(TokenId, TokenId, u32)> {
        let rank = self.ranks[token.index()];
        if rank == 0 {
            return None;
        }
        let text = texts.get(token);
        let mut prefix = self.prefixes[token.index()];
        while let Some(left) = prefix {
            let rest = &text[texts.get(left).len()..];
            // A byte token need not be listed.
            let right = match *rest {
                [byte] => Some(texts.byte_token(byte)),
                _ => self.tokens.get(rest).copied(),
            };
            if let Some(right) = right.filter(|&right| is_split(left, right)) {
                return Some((left, right, rank));
            }
            prefix = self.prefixes[left.index()];
        }
        None
    }
}

/// Calls back with each token, and the longest other token that its text begins with, of those
/// that `counts` accepts. `sorted`: tokens by their texts, all different.
pub(super) fn each_prefix(
    texts: &Texts,
    sorted: &[TokenId],
    counts: impl Fn(TokenId) -> bool,
    mut found: impl FnMut(TokenId, Option<TokenId>),
) {
    // The tokens that the last text begins with, the shortest first.
    let mut open: Vec<TokenId> = Vec::new();
    for &token in sorted {
        let text = texts.get(token);
        while open.last().is_some_and(|&prefix| !text.starts_with(texts.get(prefix))) {
            open.pop();
        }
        found(token, open.last().copied());
        if counts(token) {
            open.push(token);
        }
    }
}
