//! Ten fixed workloads, whose instructions are counted by valgrind: `make instructions`.
//!
//! Each one is a function whose name begins with `workload_`, and callgrind counts only while such
//! a function runs. Everything is made from fixed seeds, on one thread. The functions have no
//! closures and no type parameters, so no other symbol contains their names. Each passes its name
//! to a black box, or equal functions would be folded into one.

mod schemas;
mod vocabulary;

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use ffwd_automaton::{Whitespace, WhitespaceMode};
use ffwd_engine::engine::{Compiled, Engine, EngineConfig};
use ffwd_engine::fast_forward::{default_method, fast_forward_tokens, FastForward};
use ffwd_engine::matcher::{Beginning, Matcher};
use ffwd_tokenizer::canonical::Canonicality;
use ffwd_tokenizer::tokenizer::{EncodeOptions, Tokenizer};
use ffwd_tokenizer::vocabulary::TokenId;

use vocabulary::Tokens;

type Outcome = Result<usize, Box<dyn Error>>;

/// A grammar, and the tokens of a document that it takes.
struct Text {
    compiled: Arc<Compiled>,
    tokens: Vec<TokenId>,
}

fn engine(tokens: &Tokens) -> Result<Arc<Engine>, Box<dyn Error>> {
    let engine = Engine::new(tokens.vocabulary()?, None, EngineConfig::default());
    let canonicality = Canonicality::new(tokens.tokenizer.clone()).map(Arc::new);
    Ok(Arc::new(engine.with_tokenizer(tokens.tokenizer.clone(), canonicality)))
}

fn compile(engine: &Arc<Engine>, schema: &str) -> Result<Arc<Compiled>, Box<dyn Error>> {
    let mode = WhitespaceMode::Flexible { max_run: 64 };
    Ok(Arc::new(engine.compile_json_schema(schema, Whitespace { mode })?))
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<TokenId>, Box<dyn Error>> {
    Ok(tokenizer.encode(text.as_bytes(), &EncodeOptions::default())?)
}

/// Compile + first mask.
fn first_mask(engine: &Arc<Engine>, schema: &str) -> Outcome {
    let matcher = Matcher::new(compile(engine, schema)?)?;
    let mut row = vec![0; engine.vocabulary().mask_words()];
    matcher.fill_bitmask(&mut row)?;
    Ok(ones(&row))
}

/// Mask + accept for each token of each document.
fn read(texts: &[Text], beginning: &Beginning) -> Outcome {
    let mut set = 0;
    for text in texts {
        let mut matcher = Matcher::beginning(text.compiled.clone(), beginning)?;
        let mut row = vec![0; text.compiled.engine.vocabulary().mask_words()];
        for &token in &text.tokens {
            matcher.fill_bitmask(&mut row)?;
            set += usize::from(row[token.index() / 32] >> (token.index() % 32) & 1 == 1);
            accept(&mut matcher, token)?;
        }
        matcher.fill_bitmask(&mut row)?;
        set += ones(&row);
        if !matcher.is_accepting() {
            return Err("a document is not accepted".into());
        }
    }
    Ok(set)
}

fn accept(matcher: &mut Matcher, token: TokenId) -> Result<(), Box<dyn Error>> {
    match matcher.accept(token)? {
        true => Ok(()),
        false => Err(format!("token {token} of a document is refused").into()),
    }
}

fn ones(row: &[u32]) -> usize {
    row.iter().map(|word| word.count_ones() as usize).sum()
}

#[inline(never)]
fn workload_compile_small(engine: &Arc<Engine>, schema: &str) -> Outcome {
    black_box("compile_small");
    first_mask(engine, schema)
}

#[inline(never)]
fn workload_compile_large(engine: &Arc<Engine>, schema: &str) -> Outcome {
    black_box("compile_large");
    first_mask(engine, schema)
}

#[inline(never)]
fn workload_compile_enum(engine: &Arc<Engine>, schema: &str) -> Outcome {
    black_box("compile_enum");
    first_mask(engine, schema)
}

/// One mask within a string, from the vocabulary's trie.
#[inline(never)]
fn workload_string_mask(matcher: &Matcher, row: &mut [u32]) -> Outcome {
    black_box("string_mask");
    matcher.fill_bitmask(row)?;
    Ok(ones(row))
}

#[inline(never)]
fn workload_masks_cold(texts: &[Text]) -> Outcome {
    black_box("masks_cold");
    read(texts, &Beginning::default())
}

#[inline(never)]
fn workload_masks_warm(texts: &[Text]) -> Outcome {
    black_box("masks_warm");
    read(texts, &Beginning::default())
}

#[inline(never)]
fn workload_canonical_masks(texts: &[Text]) -> Outcome {
    black_box("canonical_masks");
    read(texts, &Beginning { canonical: true, ..Beginning::default() })
}

/// Forced tokens at each place of the documents.
#[inline(never)]
fn workload_forced_tokens(texts: &[Text]) -> Outcome {
    black_box("forced_tokens");
    let mut forced = 0;
    for text in texts {
        let mut matcher = Matcher::new(text.compiled.clone())?;
        let options = FastForward { max_tokens: None, method: default_method(&matcher) };
        for &token in &text.tokens {
            forced += fast_forward_tokens(&matcher, &options)?.len();
            accept(&mut matcher, token)?;
        }
    }
    Ok(forced)
}

#[inline(never)]
fn workload_encode(tokenizer: &Tokenizer, text: &str) -> Outcome {
    black_box("encode");
    Ok(encode(tokenizer, text)?.len())
}

/// At each place: a fork, a draft of 16 tokens validated, one token accepted; now and then eight
/// tokens taken back and accepted again.
#[inline(never)]
fn workload_operations(texts: &[Text]) -> Outcome {
    black_box("operations");
    let mut taken = 0;
    for text in texts {
        let mut matcher = Matcher::new(text.compiled.clone())?;
        for (place, &token) in text.tokens.iter().enumerate() {
            let draft = &text.tokens[place..(place + 16).min(text.tokens.len())];
            taken += black_box(matcher.clone()).validate(draft)?;
            accept(&mut matcher, token)?;
            if place % 8 == 7 {
                matcher.rollback(8)?;
                for &token in &text.tokens[place - 7..=place] {
                    accept(&mut matcher, token)?;
                }
            }
        }
    }
    Ok(taken)
}

/// The first mask within a string of an engine that has none yet.
fn string_mask(engine: &Arc<Engine>) -> Outcome {
    let schema = r#"{"type": "string", "pattern": "^[A-Za-z][\\w .,:-]*$", "maxLength": 80}"#;
    let mut matcher = Matcher::new(compile(engine, schema)?)?;
    let quote = engine.vocabulary().trie().find(b"\"").ok_or("no token spells a quote")?;
    let quote = *engine.vocabulary().trie().tokens_at(quote).first().ok_or("no quote")?;
    accept(&mut matcher, quote)?;
    let mut row = vec![0; engine.vocabulary().mask_words()];
    workload_string_mask(&matcher, &mut row)
}

/// Grammars compiled for one engine, and the documents that are read with them.
fn texts(engine: &Arc<Engine>, tokens: &Tokens) -> Result<Vec<Text>, Box<dyn Error>> {
    let mut texts = Vec::new();
    for (schema, document) in schemas::documents() {
        let compiled = compile(engine, &schema)?;
        texts.push(Text { compiled, tokens: encode(&tokens.tokenizer, &document)? });
    }
    Ok(texts)
}

fn main() -> Result<(), Box<dyn Error>> {
    let tokens = Tokens::new()?;
    let small = schemas::small();
    let large = schemas::large();
    let listed = schemas::listed();
    let prose = schemas::prose(100_000);
    // Each has its own engine, so that none finds what another has built.
    let mut found = vec![
        ("string_mask", string_mask(&engine(&tokens)?)?),
        ("compile_small", workload_compile_small(&engine(&tokens)?, &small)?),
        ("compile_large", workload_compile_large(&engine(&tokens)?, &large)?),
        ("compile_enum", workload_compile_enum(&engine(&tokens)?, &listed)?),
    ];
    let engine = engine(&tokens)?;
    let texts = texts(&engine, &tokens)?;
    found.push(("masks_cold", workload_masks_cold(&texts)?));
    found.push(("masks_warm", workload_masks_warm(&texts)?));
    found.push(("canonical_masks", workload_canonical_masks(&texts)?));
    found.push(("forced_tokens", workload_forced_tokens(&texts)?));
    found.push(("operations", workload_operations(&texts)?));
    found.push(("encode", workload_encode(&tokens.tokenizer, &prose)?));
    // The results are printed, so that a changed workload is noticed.
    for (name, size) in found {
        println!("{name} {size}");
    }
    Ok(())
}
