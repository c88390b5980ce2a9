//! A small vocabulary with everything that is hard about real ones, and an engine for it.

use std::sync::Arc;

use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::Meter;
use ffwd_engine::engine::{CompileError, Compiled, Engine, EngineConfig};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// Chosen for what they cross: the ends of strings, members, escapes, characters, words.
const CROSSING: [&[u8]; 72] = [
    b"\"",
    b"\":",
    b"\",",
    b"\":\"",
    b"\",\"",
    b"{\"",
    b"{\"a",
    b"{\"a\":",
    b"{\"a\":1",
    b"\":1,\"",
    b"\":1,\"a\"",
    b"a\":1,\"a\":",
    b"\"b\":2,\"b\":",
    b"x\":0,\"x\":0",
    b"x\":0,\"y\":0,\"x\":",
    b",\"b\":",
    b"},",
    b"}}",
    b"]}",
    b"[]",
    b"{}",
    b"[[",
    b"],[",
    b"\\u",
    b"\\u00",
    b"\\u001",
    b"\\n\"",
    b"\\\\",
    b"\\\"",
    b"n\\",
    b"\"\"",
    b"\xC3",
    b"\xC3\xA9",
    b"\xA9",
    b"\xA9\"",
    b"a\xE2\x82",
    b"\xAC\":",
    b"\xF0\x9F",
    b"\x98\x80\"",
    b"true",
    b"null,",
    b"-1.5e",
    b", \"",
    b"ab",
    b"abc",
    b"ba",
    b"bb",
    b"aa",
    b"aaa",
    b"aaaa",
    b"a b",
    b" a",
    b"  ",
    b"\n",
    b"\n\n  ",
    b"01",
    b"10",
    b"100",
    b".5",
    b"0.",
    b"1,",
    b"1]",
    b"1}",
    b"name",
    b"the",
    b"<a>",
    b"</a>",
    b"AB",
    b"_x",
    b"x1",
    b"\xE2\x82\xAC",
    b"--",
];

/// The first ids are the bytes.
pub const BYTES: u32 = 256;
/// A token that is no text and has a name.
pub const NAMED: TokenId = TokenId(BYTES + CROSSING.len() as u32);
/// Another one.
pub const OTHER: TokenId = TokenId(NAMED.0 + 1);
/// The tokens that end a text; the second one spells something.
pub const ENDS: [TokenId; 2] = [TokenId(OTHER.0 + 1), TokenId(OTHER.0 + 2)];

fn vocabulary() -> Vocabulary {
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let mut texts: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
    texts.extend(CROSSING.iter().map(|text| Some(*text)));
    texts.extend([None, None, None, Some(&b"<end>"[..])]);
    let width = texts.len() + 3;
    let vocabulary = Vocabulary::new(&texts, &ENDS, Some(width)).expect("fixed tokens");
    let names = [("<|call|>", NAMED), ("</think>", OTHER), ("<|end|>", ENDS[0])];
    vocabulary.with_names(names.map(|(name, token)| (name.to_owned(), token)))
}

/// Compiles as Python does it: within the limits of a server, as calls on texts are then.
pub fn compile<E: Into<CompileError>>(
    work: impl FnOnce(&Arc<Engine>) -> Result<Compiled, E>,
) -> Result<Arc<Compiled>, CompileError> {
    let engine = engine();
    let limits = Limits { memory_bytes: GRAMMAR_BYTES, ..Limits::default() };
    let mut meter = Meter::compiling(&limits, None);
    let compiled = meter.run(|| work(&engine).map_err(Into::into))?;
    Ok(Arc::new(compiled.within(limits)))
}

/// What is built lazily of one grammar.
const GRAMMAR_BYTES: usize = 64 << 20;

/// A new engine, so that what an input does depends on the input alone.
pub fn engine() -> Arc<Engine> {
    let config = EngineConfig {
        lexeme_bytes: 32 << 20,
        lexeme_mask_bytes: 16 << 20,
        grammar_bytes: GRAMMAR_BYTES,
    };
    Arc::new(Engine::new(vocabulary(), None, config))
}
