//! One row of logits under one mask.

use super::lane::Lane;

/// Writes `blocked` to each logit whose token the mask does not allow.
///
/// Token `t` is bit `t % 32` of `words[t / 32]`. Logits from `vocab_size` on, or past the end of the
/// mask, are the padding of a model's output layer: no token, so not allowed. Bits past the last
/// logit mean nothing.
///
/// Words of a mask are mostly all zeros or all ones, so blocks of eight are looked at together:
/// nothing is read or written where all is allowed, nothing is read where nothing is. That leaves
/// the writing itself, which no way of filling memory was seen to do faster.
pub fn mask_row<T: Lane>(logits: &mut [T], words: &[u32], vocab_size: usize, blocked: T) {
    let covered = words.len().saturating_mul(32);
    let (tokens, padding) = logits.split_at_mut(vocab_size.min(covered).min(logits.len()));
    padding.fill(blocked);
    let (groups, partial) = tokens.as_chunks_mut::<32>();
    let (words, partial_words) = words.split_at(groups.len());

    let (group_blocks, group_rest) = groups.as_chunks_mut::<8>();
    let (word_blocks, word_rest) = words.as_chunks::<8>();
    for (groups, words) in group_blocks.iter_mut().zip(word_blocks) {
        if words.iter().fold(u32::MAX, |all, word| all & word) == u32::MAX {
            continue;
        }
        if words.iter().fold(0, |any, word| any | word) == 0 {
            groups.as_flattened_mut().fill(blocked);
            continue;
        }
        mask_groups(groups, words, blocked);
    }
    mask_groups(group_rest, word_rest, blocked);

    if let Some(word) = partial_words.first() {
        for (bit, logit) in partial.iter_mut().enumerate() {
            if word >> bit & 1 == 0 {
                *logit = blocked;
            }
        }
    }
}

#[inline(always)]
fn mask_groups<T: Lane>(groups: &mut [[T; 32]], words: &[u32], blocked: T) {
    for (group, &word) in groups.iter_mut().zip(words) {
        let first = !word;
        let second = first & first.wrapping_sub(1);
        let third = second & second.wrapping_sub(1);
        if third == 0 {
            // At most two are not allowed: writing these touches fewer lines than blending.
            for bits in [first, second] {
                if let Some(logit) = group.get_mut(bits.trailing_zeros() as usize) {
                    *logit = blocked;
                }
            }
        } else if word == 0 {
            group.fill(blocked);
        } else {
            T::blend(group, word, blocked);
        }
    }
}
