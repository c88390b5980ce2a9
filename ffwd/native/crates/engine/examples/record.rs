//! Writes a JSON record token by token: forced text first, otherwise the lowest allowed token.
//!
//! With the path of a JSON Schema, a tokenizer of single bytes and a token that ends the output:
//!
//! ```sh
//! cargo run --manifest-path ffwd/native/Cargo.toml -p ffwd-engine --example record -- schema.json
//! ```
//!
//! The same program in C is `crates/capi/examples/record.c`.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use ffwd_engine::engine::{Engine, EngineConfig};
use ffwd_engine::fast_forward::forced_bytes;
use ffwd_engine::mask::bits;
use ffwd_engine::matcher::{Beginning, Matcher};
use ffwd_grammar::{Whitespace, WhitespaceMode};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

const END: TokenId = TokenId(256);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: record SCHEMA")?;
    let record = write_record(&std::fs::read_to_string(path)?)?;
    std::io::stdout().write_all(&record)?;
    Ok(())
}

/// The text, with a line break at its end.
fn write_record(schema: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let texts: Vec<Option<&[u8]>> =
        bytes.iter().map(|byte| Some(&byte[..])).chain([None]).collect();
    let vocabulary = Vocabulary::new(&texts, &[END], None)?;
    let engine = Arc::new(Engine::new(vocabulary, None, EngineConfig::default()));

    let compact = Whitespace { mode: WhitespaceMode::Compact };
    let grammar = Arc::new(engine.compile_json_schema(schema, compact)?);
    let beginning = Beginning { max_tokens: Some(1000), ..Beginning::default() };
    let mut matcher = Matcher::beginning(grammar, &beginning)?;
    let mut mask = vec![0; engine.vocabulary().mask_words()];
    let mut record = Vec::new();
    while !matcher.is_terminated() {
        // The limits of the grammar bound these calls; a schema may be a stranger's.
        let forced = matcher.bounded(|matcher| forced_bytes(matcher, 100))?;
        let tokens: Vec<TokenId> = if forced.is_empty() {
            matcher.bounded(|matcher| matcher.fill_bitmask(&mut mask))?;
            bits(&mask).take(1).collect()
        } else {
            forced.iter().map(|&byte| TokenId(byte.into())).collect()
        };
        if !matcher.bounded_mut(|matcher| matcher.accept_all(&tokens))? {
            return Err("an allowed token was refused".into());
        }
        record.extend(tokens.iter().filter_map(|token| u8::try_from(token.0).ok()));
    }
    record.push(b'\n');
    Ok(record)
}
