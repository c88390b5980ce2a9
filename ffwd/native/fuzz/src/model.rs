//! The `model` of a tokenizer.json: read, compiled, and used.

use std::sync::Arc;

use ffwd_tokenizer::bpe::BpeTable;
use ffwd_tokenizer::tokenizer::{
    read_model, EncodeOptions, Normalizer, Tokenizer, TokenizerParts, Writing,
};
use ffwd_tokenizer::vocabulary::TokenId;

use crate::driver::split;

pub fn run(data: &[u8]) {
    let (json, mut driver) = split(data);
    let writing = match driver.below(2) {
        0 => Writing::ByteLevel,
        _ => Writing::Characters(vec![("▁".to_owned(), " ".to_owned())]),
    };
    let exclude: Vec<TokenId> =
        (0..driver.below(3)).map(|_| TokenId(u32::from(driver.byte()))).collect();
    // Most models that fuzzing makes lack most bytes.
    let missing = (!driver.once_in(4)).then_some(TokenId(1 << 12));
    let spec = match read_model(json, &writing, &exclude, missing) {
        Ok(spec) => spec,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let table = match BpeTable::new(spec) {
        Ok(table) => Arc::new(table),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let parts = TokenizerParts {
        table,
        stages: Vec::new(),
        specials: Vec::new(),
        normalizer: Normalizer { compose: false, replaced: Vec::new() },
        dummy_space: None,
        limits: Vec::new(),
        vocab_size: None,
    };
    let Ok(tokenizer) = Tokenizer::new(parts) else { return };
    for text in [driver.rest(), json, "aab é▁ 😀".as_bytes()] {
        match tokenizer.encode(text, &EncodeOptions::default()) {
            Ok(tokens) => assert_eq!(tokenizer.decode(&tokens).as_deref(), Ok(text)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
