//! Tokens that a text is never encoded as.

use super::options::{EncodeOptions, PartOptions};
use super::Tokenizer;
use crate::vocabulary::TokenId;

/// Tokens of a vocabulary that the model may know and the tokenizer does not write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnusedTokens {
    /// No merges lead to them. Where whole pieces are looked up, texts may have them even so.
    pub unmerged: Vec<TokenId>,
    /// Their own text is encoded as other tokens.
    pub rewritten: Vec<TokenId>,
}

impl Tokenizer {
    /// The tokens that are not what their own text is encoded as, in the order of their ids.
    ///
    /// One that is part of a character only is judged by its merges alone, for what it is cut from
    /// depends on the text around it. One that spells the same as another is not named for that.
    pub fn unused_tokens(&self) -> UnusedTokens {
        let options = EncodeOptions {
            part: PartOptions { dummy_space: false, ..PartOptions::default() },
            ..EncodeOptions::default()
        };
        let mut unused = UnusedTokens::default();
        for token in (0..self.table.width() as u32).map(TokenId) {
            let text = self.table.text(token);
            if text.is_empty() || self.table.is_byte_fallback(token) {
                continue;
            }
            let merged = self.table.is_reachable(token);
            if !merged {
                unused.unmerged.push(token);
            }
            let written = if std::str::from_utf8(text).is_err() {
                merged
            } else {
                let is_one = |tokens: Vec<TokenId>| matches!(&tokens[..], &[one] if self.table.text(one) == text);
                self.encode(text, &options).is_ok_and(is_one)
            };
            if !written {
                unused.rewritten.push(token);
            }
        }
        unused
    }
}
