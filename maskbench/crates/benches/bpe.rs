//! Byte-pair encoding beside the crate `bpe`, with the vocabularies of `bpe-openai`.
//!
//! `cargo bench --manifest-path maskbench/crates/Cargo.toml` prints medians of both in
//! interleaved runs, and how many times as fast we are. Every race checks that both agree.

use std::sync::Arc;

use bpe::appendable_encoder::AppendableEncoder;
use bpe::byte_pair_encoding::BytePairEncoding;
use bpe::interval_encoding::IntervalEncoding;
use bpe::prependable_encoder::PrependableEncoder;
use ffwd_benches_peers::{race, table_of, texts, tokenizer_of, CL100K, O200K};
use ffwd_tokenizer::bpe::{BpeTable, Method, PieceAppender, PieceIntervals, PiecePrepender};
use ffwd_tokenizer::tokenizer::{EncodeOptions, Tokenizer};
use ffwd_tokenizer::vocabulary::TokenId;

fn main() {
    let texts = texts();
    for (name, pattern, peer) in
        [("cl100k", CL100K, bpe_openai::cl100k_base()), ("o200k", O200K, bpe_openai::o200k_base())]
    {
        let table = Arc::new(table_of(&peer.bpe));
        let tokenizer = tokenizer_of(Arc::clone(&table), pattern);
        println!("\n{name}: {:.1} MB", table.memory_bytes() as f64 / 1e6);
        for (name, text) in &texts {
            println!("\n{name}, {} bytes", text.len());
            check(&table, &peer.bpe, text.as_bytes());
            tokenized(&tokenizer, peer, text);
            whole(&table, &peer.bpe, text.as_bytes());
            pieces(&table, peer, text);
            incremental(&table, &peer.bpe, text.as_bytes());
            intervals(&table, &peer.bpe, text.as_bytes());
        }
        println!("\nnothing cuts, nothing ends");
        adversarial(&table, &peer.bpe);
    }
}

fn encode(table: &BpeTable, method: Method, text: &[u8]) -> Vec<TokenId> {
    let mut tokens = Vec::with_capacity(text.len() / 3);
    table.encode_piece_by(method, text, &mut tokens);
    tokens
}

fn check(table: &BpeTable, peer: &BytePairEncoding, text: &[u8]) {
    let expected = peer.encode_via_backtracking(text);
    for method in [Method::Backtracking, Method::Table, Method::Heap] {
        let found = encode(table, method, text);
        assert!(found.iter().map(|token| token.0).eq(expected.iter().copied()), "{method:?}");
    }
}

/// The text as a tokenizer takes it: cut by its pattern, and each piece encoded.
fn tokenized(tokenizer: &Tokenizer, peer: &bpe_openai::Tokenizer, text: &str) {
    let options = EncodeOptions::default();
    let encode = || tokenizer.encode(text.as_bytes(), &options).expect("text can be encoded");
    assert!(encode().iter().map(|token| token.0).eq(peer.encode(text)));
    race(
        "cut and encoded",
        text.len(),
        &mut [("ffwd", &mut || encode().len()), ("bpe", &mut || peer.encode(text).len())],
    );
    race(
        "cut and counted",
        text.len(),
        &mut [
            ("ffwd", &mut || {
                tokenizer.count(text.as_bytes(), &options).expect("text can be encoded")
            }),
            ("bpe", &mut || peer.count(text)),
        ],
    );
    race(
        "cut alone",
        text.len(),
        &mut [
            ("ffwd", &mut || tokenizer.pretokenizer().pieces(text.as_bytes()).count()),
            ("bpe", &mut || peer.split(text).count()),
        ],
    );
}

/// The text as one piece.
fn whole(table: &BpeTable, peer: &BytePairEncoding, text: &[u8]) {
    race(
        "backtracking",
        text.len(),
        &mut [
            ("ffwd", &mut || encode(table, Method::Backtracking, text).len()),
            ("bpe", &mut || peer.encode_via_backtracking(text).len()),
        ],
    );
    race(
        "table",
        text.len(),
        &mut [
            ("ffwd", &mut || encode(table, Method::Table, text).len()),
            ("bpe", &mut || peer.encode_via_table(text).len()),
        ],
    );
    race(
        "heap",
        text.len(),
        &mut [
            ("ffwd", &mut || encode(table, Method::Heap, text).len()),
            ("bpe", &mut || peer.encode_via_bitfield(text).len()),
        ],
    );
    race(
        "minimal (not the model's own)",
        text.len(),
        &mut [
            ("ffwd", &mut || encode(table, Method::Minimal, text).len()),
            ("bpe", &mut || peer.encode_minimal(text).len()),
        ],
    );
    race(
        "greedy (not the model's own)",
        text.len(),
        &mut [
            ("ffwd", &mut || encode(table, Method::Greedy, text).len()),
            ("bpe", &mut || peer.encode_greedy(text).len()),
        ],
    );
    race(
        "counting",
        text.len(),
        &mut [("ffwd", &mut || table.count_piece(text)), ("bpe", &mut || peer.count(text))],
    );
}

/// The pieces that a pre-tokenizer cuts, which is not timed.
fn pieces(table: &BpeTable, peer: &bpe_openai::Tokenizer, text: &str) {
    let pieces: Vec<&[u8]> = peer.split(text).map(str::as_bytes).collect();
    race(
        "pieces",
        text.len(),
        &mut [
            ("ffwd", &mut || {
                let mut tokens = Vec::with_capacity(text.len() / 3);
                pieces.iter().for_each(|piece| table.encode_piece(piece, &mut tokens));
                tokens.len()
            }),
            ("bpe", &mut || {
                let mut tokens = Vec::with_capacity(text.len() / 3);
                pieces
                    .iter()
                    .for_each(|piece| tokens.extend(peer.bpe.encode_via_backtracking(piece)));
                tokens.len()
            }),
        ],
    );
    race(
        "pieces, counted",
        text.len(),
        &mut [
            ("ffwd", &mut || pieces.iter().map(|piece| table.count_piece(piece)).sum()),
            ("bpe", &mut || pieces.iter().map(|piece| peer.bpe.count(piece)).sum()),
        ],
    );
}

fn incremental(table: &BpeTable, peer: &BytePairEncoding, text: &[u8]) {
    race(
        "appending byte by byte",
        text.len(),
        &mut [
            ("ffwd", &mut || {
                let mut appender = PieceAppender::new();
                text.iter().for_each(|&byte| appender.push(table, byte));
                appender.count(table)
            }),
            ("bpe", &mut || {
                let mut appender = AppendableEncoder::new(peer);
                text.iter().for_each(|&byte| appender.push(byte));
                appender.token_count()
            }),
        ],
    );
    race(
        "prepending byte by byte",
        text.len(),
        &mut [
            ("ffwd", &mut || {
                let mut prepender = PiecePrepender::new();
                text.iter().rev().for_each(|&byte| prepender.push(table, byte));
                prepender.count()
            }),
            ("bpe", &mut || {
                let mut prepender = PrependableEncoder::new(peer);
                text.iter().rev().for_each(|&byte| prepender.push(byte));
                prepender.token_count()
            }),
        ],
    );
}

/// 100 intervals of 10,000 bytes.
fn intervals(table: &BpeTable, peer: &BytePairEncoding, text: &[u8]) {
    const LENGTH: usize = 10_000;
    const COUNT: usize = 100;
    if text.len() <= LENGTH {
        return;
    }
    let step = (text.len() - LENGTH) / COUNT;
    let ranges = || (0..COUNT).map(|index| index * step..index * step + LENGTH);
    race(
        "intervals: preparation",
        text.len(),
        &mut [
            ("ffwd", &mut || PieceIntervals::new(table, text).count(table, 0..text.len())),
            ("bpe", &mut || IntervalEncoding::new(peer, text).count(0..text.len())),
        ],
    );
    let (ours, theirs) = (PieceIntervals::new(table, text), IntervalEncoding::new(peer, text));
    race(
        "100 intervals of 10,000 bytes",
        COUNT * LENGTH,
        &mut [
            ("ffwd", &mut || ranges().map(|range| ours.count(table, range)).sum()),
            ("bpe", &mut || ranges().map(|range| theirs.count(range)).sum()),
            ("encoding again", &mut || ranges().map(|range| table.count_piece(&text[range])).sum()),
        ],
    );
}

fn adversarial(table: &BpeTable, peer: &BytePairEncoding) {
    let repeated =
        |unit: &str, length: usize| -> Vec<u8> { unit.bytes().cycle().take(length).collect() };
    let noise = |length: usize| -> Vec<u8> {
        let mut state = 1u64;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    };
    for unit in ["a", " ", "\n", "ab", "="] {
        for length in [100_000, 1_000_000] {
            let text = repeated(unit, length);
            race(
                &format!("{unit:?} x {length}"),
                length,
                &mut [
                    ("ffwd", &mut || encode(table, Method::Backtracking, &text).len()),
                    ("bpe", &mut || peer.encode_via_backtracking(&text).len()),
                ],
            );
        }
    }
    let text = [repeated(" ", 1_000_000), b"a".to_vec()].concat();
    race(
        "a million spaces and a letter",
        text.len(),
        &mut [
            ("ffwd", &mut || encode(table, Method::Backtracking, &text).len()),
            ("bpe", &mut || peer.encode_via_backtracking(&text).len()),
        ],
    );
    for length in [100_000, 1_000_000] {
        let text = noise(length);
        race(
            &format!("random bytes x {length}"),
            length,
            &mut [
                ("ffwd", &mut || encode(table, Method::Backtracking, &text).len()),
                ("bpe", &mut || peer.encode_via_backtracking(&text).len()),
            ],
        );
    }
}
