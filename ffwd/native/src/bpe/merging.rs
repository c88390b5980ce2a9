//! Byte-pair encoding as it is defined: of the pairs that merge, the most urgent one does, the
//! leftmost of several, until none does.
//!
//! This is how the splits of the tokens are found, and the encoder that is fastest where a text
//! is long and its tokens are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::vocabulary::TokenId;

/// A token's occurrence in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub token: TokenId,
    pub start: u32,
    pub end: u32,
}

/// A merge: its rank, and the token that it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merge {
    pub rank: u32,
    pub token: TokenId,
}

/// Up to here, looking through all pairs for the most urgent one is faster than a heap.
const SHORT: usize = 40;

/// Merges the symbols of a text until nothing merges. Gives the last merge, with its two parts.
pub(super) fn merge_symbols(
    symbols: &mut Vec<Symbol>,
    merge: impl Fn(Symbol, Symbol) -> Option<Merge>,
) -> Option<(TokenId, TokenId, Merge)> {
    if symbols.len() <= SHORT {
        merge_by_scanning(symbols, merge)
    } else {
        merge_by_heap(symbols, merge)
    }
}

fn merge_by_scanning(
    symbols: &mut Vec<Symbol>,
    merge: impl Fn(Symbol, Symbol) -> Option<Merge>,
) -> Option<(TokenId, TokenId, Merge)> {
    let mut merges: Vec<Option<Merge>> =
        symbols.windows(2).map(|pair| merge(pair[0], pair[1])).collect();
    let mut last = None;
    loop {
        let best = merges
            .iter()
            .enumerate()
            .filter_map(|(at, merge)| merge.map(|merge| (merge.rank, at, merge)))
            .min_by_key(|&(rank, at, _)| (rank, at));
        let Some((_, at, best)) = best else { return last };
        last = Some((symbols[at].token, symbols[at + 1].token, best));
        symbols[at].token = best.token;
        symbols[at].end = symbols[at + 1].end;
        symbols.remove(at + 1);
        merges.remove(at);
        if at > 0 {
            merges[at - 1] = merge(symbols[at - 1], symbols[at]);
        }
        if at < merges.len() {
            merges[at] = merge(symbols[at], symbols[at + 1]);
        }
    }
}

const NONE: u32 = u32::MAX;

fn merge_by_heap(
    symbols: &mut Vec<Symbol>,
    merge: impl Fn(Symbol, Symbol) -> Option<Merge>,
) -> Option<(TokenId, TokenId, Merge)> {
    // A doubly linked list over the places; a merged symbol stays in the place of its left part.
    let count = symbols.len() as u32;
    let mut next: Vec<u32> =
        (1..=count).map(|place| if place == count { NONE } else { place }).collect();
    let mut previous: Vec<u32> = (0..count).map(|place| place.wrapping_sub(1)).collect();
    let mut heap: BinaryHeap<Reverse<(u32, u32, u32, TokenId)>> = BinaryHeap::new();
    // A symbol only ever grows, so an entry is out of date exactly if the end of the right part,
    // or the beginning of the right part, is no longer what it was when the entry was made. With
    // the length of a pair its merge is given, so the end and the merged token tell.
    let entry = |symbols: &[Symbol], left: u32, right: u32| {
        let merged = merge(symbols[left as usize], symbols[right as usize])?;
        Some(Reverse((merged.rank, left, symbols[right as usize].end, merged.token)))
    };
    let entries: Vec<_> = (1..count).filter_map(|right| entry(symbols, right - 1, right)).collect();
    heap.extend(entries);
    let mut last = None;
    while let Some(Reverse((rank, left, end, token))) = heap.pop() {
        let right = next[left as usize];
        if right == NONE || symbols[left as usize].token.0 == NONE {
            continue;
        }
        let (left_symbol, right_symbol) = (symbols[left as usize], symbols[right as usize]);
        if right_symbol.end != end {
            continue;
        }
        // The same span may have become two other parts, whose merge has an entry of its own.
        if merge(left_symbol, right_symbol) != Some(Merge { rank, token }) {
            continue;
        }
        last = Some((left_symbol.token, right_symbol.token, Merge { rank, token }));
        symbols[left as usize] = Symbol { token, start: left_symbol.start, end };
        symbols[right as usize].token = TokenId(NONE);
        let after = next[right as usize];
        next[left as usize] = after;
        if after != NONE {
            previous[after as usize] = left;
            heap.extend(entry(symbols, left, after));
        }
        let before = previous[left as usize];
        if before != NONE {
            heap.extend(entry(symbols, before, left));
        }
    }
    symbols.retain(|symbol| symbol.token.0 != NONE);
    last
}
