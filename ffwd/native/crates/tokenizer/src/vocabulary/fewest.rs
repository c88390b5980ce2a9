//! The fewest tokens that encode a text.

use super::trie::NodeId;
use super::{TokenId, Vocabulary};

impl Vocabulary {
    /// Returns the fewest tokens that encode a text, whatever the tokenizer would produce. The
    /// choice with the longest first tokens wins. Returns none for a text with bytes that no UTF-8
    /// has.
    pub fn fewest_tokens(&self, text: &[u8]) -> Vec<TokenId> {
        let trie = self.trie();
        // For each offset, how many tokens encode the rest, and the first of them.
        let mut rest: Vec<(u32, Option<TokenId>)> = vec![(u32::MAX, None); text.len() + 1];
        rest[text.len()] = (0, None);
        for start in (0..text.len()).rev() {
            let mut node = NodeId::ROOT;
            for (at, &byte) in text.iter().enumerate().skip(start) {
                let Some(child) = trie.child(node, byte) else { break };
                node = child;
                let count = rest[at + 1].0.saturating_add(1);
                if let Some(&token) = trie.tokens_at(node).first() {
                    if count <= rest[start].0 && count < u32::MAX {
                        rest[start] = (count, Some(token));
                    }
                }
                if trie.is_leaf(node) {
                    break;
                }
            }
        }
        let mut tokens = Vec::with_capacity(rest[0].0.min(1 << 16) as usize);
        let mut at = 0;
        while let Some(token) = rest[at].1 {
            tokens.push(token);
            at += self.text(token).len();
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn no_fewer_tokens_spell_a_text() {
        let vocabulary = testing::vocabulary(7, 300);
        let mut text = Vec::new();
        for seed in 0..200u32 {
            // Any combination of tokens.
            let token = TokenId(seed.wrapping_mul(2_654_435_761) % vocabulary.width() as u32);
            text.extend_from_slice(vocabulary.text(token));
            let tokens = vocabulary.fewest_tokens(&text);
            let spelled: Vec<u8> =
                tokens.iter().flat_map(|&token| vocabulary.text(token).to_vec()).collect();
            assert_eq!(spelled, text);
            // Forward: the offsets that this many tokens reach.
            let mut reached = vec![false; text.len() + 1];
            reached[0] = true;
            for _ in 1..tokens.len() {
                let mut next = vec![false; text.len() + 1];
                for start in (0..text.len()).filter(|&start| reached[start]) {
                    for id in 0..vocabulary.width() as u32 {
                        let token = vocabulary.text(TokenId(id));
                        if !token.is_empty() && text[start..].starts_with(token) {
                            next[start + token.len()] = true;
                        }
                    }
                }
                reached = next;
                assert!(!reached[text.len()], "{text:?}");
            }
            if text.len() > 24 {
                text.clear();
            }
        }
    }
}
