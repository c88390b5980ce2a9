//! Parts of a mask that are collected apart, and how they are added.

use std::ops::Range;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::mask::doubt::{Doubt, Doubts};
use crate::mask::token_set::{bits, clear_bits, TokenMaskBuilder};
use ffwd_automaton::Spare;
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// Adds the collected tokens without those below some nodes, which are sorted siblings.
pub(super) fn add_without(
    builder: &mut TokenMaskBuilder,
    mut collected: TokenMaskBuilder,
    trie: &ByteTrie,
    nodes: &[NodeId],
    vocabulary: &Vocabulary,
) {
    if nodes.is_empty() || collected.as_tokens().is_some_and(<[TokenId]>::is_empty) {
        builder.add_all(collected);
        return;
    }
    let listed = if trie.id() == vocabulary.trie().id() {
        // Adjacent ranges are merged.
        let mut ranges: SmallVec<[Range<usize>; 16]> = SmallVec::new();
        for &node in nodes {
            let own = trie.places_below(node);
            match ranges.last_mut() {
                Some(last) if last.end == own.start => last.end = own.end,
                _ => ranges.push(own),
            }
        }
        collected.remove_where(|token| {
            let place = vocabulary.place_in_trie(token);
            let after = ranges.partition_point(|range| range.start <= place);
            after > 0 && ranges[after - 1].contains(&place)
        })
    } else {
        let below = nodes.iter().flat_map(|&node| trie.tokens_below(node).iter().copied());
        let below: FxHashSet<TokenId> = below.collect();
        collected.remove_where(|token| below.contains(&token))
    };
    if listed {
        builder.add_all(collected);
        return;
    }
    let mut row = vec![0; vocabulary.mask_words()];
    builder.doubtful.extend_from_slice(&collected.doubtful);
    builder.rivalled.add_all(&collected.rivalled);
    collected.build().fill(&mut row);
    for &node in nodes {
        clear_bits(&mut row, trie.tokens_below(node));
    }
    let count: u32 = row.iter().map(|word| word.count_ones()).sum();
    if count as usize <= vocabulary.mask_words() / 4 {
        builder.added.extend(bits(&row));
    } else {
        builder.add_bitmap(&row.into());
    }
}

/// Adds the continuations after an item with which later ones are compared. Tokens that may depend
/// on the item are doubtful only after an unknown item, unless the array requires a repetition.
pub(super) fn add_compared(
    builder: &mut TokenMaskBuilder,
    after: TokenMaskBuilder,
    spare: Spare,
    doubts: Doubts<'_>,
    has_history: bool,
) {
    if spare == Spare::None {
        builder.doubtful.extend(doubts.found());
    } else {
        let may_come = after.to_set();
        let may_come = |doubt: &Doubt| may_come.contains(&doubt.token);
        builder.doubtful.extend(doubts.found().into_iter().filter(may_come));
    }
    match has_history {
        true => builder.add_rivalled(after),
        false => builder.add_all(after),
    }
}
