//! Encoders by dynamic programming over the places of a text: exactly, and with the fewest
//! tokens; and the longest token at each place.

use super::table::BpeTable;
use crate::vocabulary::TokenId;

const NONE: TokenId = TokenId(u32::MAX);

impl BpeTable {
    /// For each place the last token of the encoding of the text up to there, by merges. A token is
    /// the last one exactly if it may follow the last token of the place where it begins.
    pub(super) fn encode_by_table(&self, text: &[u8], out: &mut Vec<TokenId>) {
        let mut last = vec![NONE; text.len() + 1];
        for at in 0..text.len() {
            if at > 0 && last[at] == NONE {
                // Within a character.
                continue;
            }
            let mut found = false;
            self.reachable_prefixes(&text[at..], |length, token| {
                found = true;
                let place = &mut last[at + length];
                if *place == NONE && (at == 0 || self.may_follow(last[at], token)) {
                    last[at + length] = token;
                }
            });
            if !found {
                last[at + 1] = self.byte_token(text[at]);
            }
        }
        self.read_back(&last, out);
    }

    /// Appends the fewest tokens that encode a text, which usually differ from the tokenizer's. All
    /// tokens count, whether or not merges reach them.
    pub(super) fn encode_minimally(&self, text: &[u8], out: &mut Vec<TokenId>) {
        let mut last = vec![NONE; text.len() + 1];
        let mut counts = vec![u32::MAX; text.len() + 1];
        counts[0] = 0;
        for at in 0..text.len() {
            if counts[at] == u32::MAX {
                continue;
            }
            let count = counts[at] + 1;
            let mut relax = |length: usize, token| {
                if count < counts[at + length] {
                    counts[at + length] = count;
                    last[at + length] = token;
                }
            };
            self.prefixes(&text[at..], &mut relax);
            relax(1, self.byte_token(text[at]));
        }
        self.read_back(&last, out);
    }

    /// Takes the longest token repeatedly, which usually differs from the model's own tokens.
    pub(super) fn encode_greedily(&self, text: &[u8], out: &mut Vec<TokenId>) {
        let mut at = 0;
        while at < text.len() {
            let mut longest = None;
            self.prefixes(&text[at..], |length, token| {
                // Merges reach the first of several tokens with the same bytes.
                if longest.is_none_or(|(longest, _)| length > longest) {
                    longest = Some((length, token));
                }
            });
            let (length, token) = longest.unwrap_or((1, self.byte_token(text[at])));
            out.push(token);
            at += length;
        }
    }

    fn read_back(&self, last: &[TokenId], out: &mut Vec<TokenId>) {
        let first = out.len();
        let mut at = last.len() - 1;
        while at > 0 {
            out.push(last[at]);
            at -= self.length(last[at]);
        }
        out[first..].reverse();
    }
}
