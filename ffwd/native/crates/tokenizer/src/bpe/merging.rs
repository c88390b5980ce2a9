//! Byte-pair encoding by its definition: the most urgent pair merges, the leftmost of several,
//! until none is left.
//!
//! It finds the splits of tokens, and is the fastest encoder for long texts with long tokens.

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

/// Merges the symbols of a text until nothing merges. Returns the last merge with its two parts.
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
    // A doubly linked list over the offsets; a merged symbol stays at the offset of its left part.
    let count = symbols.len() as u32;
    let mut next: Vec<u32> =
        (1..=count).map(|place| if place == count { NONE } else { place }).collect();
    let mut previous: Vec<u32> = (0..count).map(|place| place.wrapping_sub(1)).collect();
    // For each place the merge with the symbol behind it.
    let mut merges: Vec<Option<Merge>> =
        symbols.windows(2).map(|pair| merge(pair[0], pair[1])).collect();
    merges.push(None);
    // The rank of a merge and its offset. An entry is valid as long as the current merge at the
    // offset has this rank, even if another pair had it when the entry was made.
    let entry = |place: u32, merge: Option<Merge>| {
        merge.map(|merge| Reverse(u64::from(merge.rank) << 32 | u64::from(place)))
    };
    let mut heap: BinaryHeap<Reverse<u64>> =
        (0..).zip(&merges).filter_map(|(place, &merge)| entry(place, merge)).collect();
    let mut last = None;
    while let Some(Reverse(top)) = heap.pop() {
        let (rank, left) = ((top >> 32) as u32, top as u32);
        let Some(best) = merges[left as usize].filter(|merge| merge.rank == rank) else { continue };
        let right = next[left as usize];
        let (left_symbol, right_symbol) = (symbols[left as usize], symbols[right as usize]);
        last = Some((left_symbol.token, right_symbol.token, best));
        let merged = Symbol { token: best.token, end: right_symbol.end, ..left_symbol };
        symbols[left as usize] = merged;
        symbols[right as usize].token = TokenId(NONE);
        merges[right as usize] = None;
        let after = next[right as usize];
        next[left as usize] = after;
        merges[left as usize] = if after == NONE {
            None
        } else {
            previous[after as usize] = left;
            merge(merged, symbols[after as usize])
        };
        heap.extend(entry(left, merges[left as usize]));
        let before = previous[left as usize];
        if before != NONE {
            merges[before as usize] = merge(symbols[before as usize], merged);
            heap.extend(entry(before, merges[before as usize]));
        }
    }
    symbols.retain(|symbol| symbol.token.0 != NONE);
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_find_the_most_urgent_pair_agree() {
        // Ranks that depend on both sides, so that nearly every merge changes what is around it.
        let merge = |left: Symbol, right: Symbol| {
            let mixed = (left.token.0 * 31 + right.token.0 * 17) % 101;
            let length = right.end - left.start;
            (!mixed.is_multiple_of(3) && length < 9)
                .then_some(Merge { rank: mixed, token: TokenId(mixed) })
        };
        for seed in 0..200u32 {
            let symbols: Vec<Symbol> = (0..seed % 90)
                .map(|at| {
                    let token = TokenId((at * at + seed * 7) % 13);
                    Symbol { token, start: at, end: at + 1 }
                })
                .collect();
            let (mut scanned, mut heaped) = (symbols.clone(), symbols);
            assert_eq!(merge_by_scanning(&mut scanned, merge), merge_by_heap(&mut heaped, merge));
            assert_eq!(scanned, heaped);
        }
    }
}
