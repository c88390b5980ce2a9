//! One row of logits under one mask.

use super::lane::Lane;

/// Writes `blocked` to each logit whose token the mask does not allow.
///
/// Token `t` is bit `t % 32` of `words[t / 32]`. Logits from `vocab_size` on, or past the end of the
/// mask, are the padding of a model's output layer: no token, so not allowed. Bits past the last
/// logit mean nothing.
///
/// Most words of a mask are all zeros or all ones, so blocks of eight are tested together. A block
/// that is all allowed is neither read nor written; one without allowed tokens is not read.
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
        let mut open = 0u32;
        for (at, &word) in words.iter().enumerate() {
            open |= u32::from(word != u32::MAX) << at;
        }
        if open == 0xFF {
            for (group, &word) in groups.iter_mut().zip(words) {
                mask_group(group, word, blocked);
            }
            continue;
        }
        // Testing each word for being one of the few would mispredict a branch for each of them.
        while open != 0 {
            let at = open.trailing_zeros() as usize % 8;
            mask_group(&mut groups[at], words[at], blocked);
            open &= open - 1;
        }
    }
    for (group, &word) in group_rest.iter_mut().zip(word_rest) {
        mask_group(group, word, blocked);
    }

    if let Some(word) = partial_words.first() {
        for (bit, logit) in partial.iter_mut().enumerate() {
            if word >> bit & 1 == 0 {
                *logit = blocked;
            }
        }
    }
}

/// Writes a row of `source` as [`mask_row`] masks it, and reads only what may be allowed.
pub fn mask_copy<T: Lane>(
    logits: &mut [T],
    source: &[T],
    words: &[u32],
    vocab_size: usize,
    blocked: T,
) {
    // Small enough to stay in the nearest cache until they are masked.
    const PART: usize = 64;
    let mut words = words.chunks(PART);
    let parts = logits.chunks_mut(32 * PART).zip(source.chunks(32 * PART));
    for (at, (logits, source)) in parts.enumerate() {
        let words = words.next().unwrap_or_default();
        if words.iter().fold(0, |any, word| any | word) != 0 {
            logits.copy_from_slice(source);
        }
        mask_row(logits, words, vocab_size.saturating_sub(at * 32 * PART), blocked);
    }
}

/// Whether every logit of a masked row is `blocked`. Only allowed tokens are examined, up to the
/// first with another logit.
pub fn is_starved<T: Lane>(logits: &[T], words: &[u32], blocked: T) -> bool {
    !logits.chunks(32).zip(words).filter(|(_, &word)| word != 0).any(|(group, &word)| {
        group.iter().enumerate().any(|(bit, logit)| word >> bit & 1 == 1 && *logit != blocked)
    })
}

#[inline(always)]
fn mask_group<T: Lane>(group: &mut [T; 32], allowed: u32, blocked: T) {
    let mut left = !allowed;
    let but_one = left & left.wrapping_sub(1);
    if but_one & but_one.wrapping_sub(1) == 0 {
        // At most two are not allowed: writing these touches fewer lines than blending.
        while left != 0 {
            group[left.trailing_zeros() as usize % 32] = blocked;
            left &= left - 1;
        }
    } else if allowed == 0 {
        group.fill(blocked);
    } else {
        T::blend(group, allowed, blocked);
    }
}
