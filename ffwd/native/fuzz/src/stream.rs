//! Token ids back to text while they come, with stops, against reading all of them at once.

use std::sync::Arc;

use ffwd_tokenizer::streaming::{
    DecodeStream, Decoder, Output, Sequence, Stop, StopDecoder, StopOptions, Stops, TextStart,
};
use ffwd_tokenizer::vocabulary::TokenId;

use crate::driver::Driver;

const TOKENS: [&[u8]; 40] = [
    b"a",
    b"b",
    b"ab",
    b"aa",
    b" ",
    b" a",
    b"  ",
    b"\n",
    b"\xC3",
    b"\xA9",
    b"\xC3\xA9",
    b"\xE2",
    b"\x82",
    b"\xAC",
    b"\xE2\x82",
    b"\x82\xAC",
    b"\xE2\x82\xAC",
    b"\xF0",
    b"\x9F",
    b"\x98",
    b"\x80",
    b"\xF0\x9F",
    b"\x98\x80",
    b"\xF0\x9F\x98\x80",
    b"\xFF",
    b"\xC0",
    b"\xED\xA0",
    b"\x80a",
    b"a\xC3",
    b"</",
    b"a>",
    b"</a>",
    b"<s>",
    b"st",
    b"op",
    b"stop",
    b"sto",
    b"p ",
    b"",
    b"\xEF\xBF\xBD",
];
/// The ids behind those of the tokens: special ones, an id without a token, and none.
const SPECIAL: [&[u8]; 2] = [b"<|end|>", b"stop"];
const STRINGS: [&str; 12] =
    ["stop", "a", "</a>", "aab", "ab", "é", "€", "\u{FFFD}", "<|end|>", "op", "\n", "  "];

pub fn run(data: &[u8]) {
    let mut driver = Driver::new(data);
    let width = TOKENS.len() + SPECIAL.len();
    let mut table: Vec<Option<&[u8]>> =
        TOKENS.iter().chain(&SPECIAL).map(|bytes| Some(*bytes)).collect();
    table.push(None);
    let special = [TokenId(width as u32 - 2), TokenId(width as u32 - 1)];
    let mut start = TextStart {
        strip_first_space: driver.flag(),
        strip_every_first_space: driver.once_in(4),
        ..TextStart::default()
    };
    if driver.once_in(4) {
        start.first_tokens.insert(TokenId(5), b"A".as_slice().into());
    }
    let decoder = Arc::new(Decoder::new(&table, &special, start).expect("fixed tokens"));
    let skip = driver.flag();
    let options = stops(&mut driver);
    let mut tokens = Vec::new();
    while driver.has_more() && tokens.len() < 200 {
        tokens.push(TokenId(u32::from(driver.byte()) % (width as u32 + 2)));
    }
    let known: Vec<TokenId> =
        tokens.iter().copied().filter(|token| token.index() < width).collect();
    // In parts as the driver says, and an unknown id between changes nothing.
    let mut driver = Driver::new(data);
    let whole = decoder.decode(&known, skip).expect("ids that are known");
    assert_eq!(written(&decoder, skip, &tokens, width, &mut driver), whole);
    sequence(&decoder, skip, &known, &whole);
    match Stops::new(&decoder, skip, options.clone()) {
        Ok(stops) => {
            let stops = Arc::new(stops);
            stopping(&decoder, skip, &stops, &known, &options, &mut driver);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn stops(driver: &mut Driver<'_>) -> StopOptions {
    let mut options = StopOptions::default();
    for _ in 0..driver.below(4) {
        let text = (*driver.pick(&STRINGS)).to_owned();
        match driver.flag() {
            true => options.strings.push(text),
            false => options.visible_strings.push(text),
        }
    }
    if driver.once_in(3) {
        options.tokens.push(TokenId(u32::from(driver.byte() % 44)));
    }
    if driver.once_in(6) {
        options.visible_tokens.push(TokenId(u32::from(driver.byte() % 42)));
    }
    options
}

fn written(
    decoder: &Arc<Decoder>,
    skip: bool,
    tokens: &[TokenId],
    width: usize,
    driver: &mut Driver<'_>,
) -> String {
    let mut stream = DecodeStream::new(decoder.clone(), skip);
    let mut text = String::new();
    let mut rest = tokens;
    while !rest.is_empty() {
        let count = 1 + driver.below(rest.len().min(4));
        let (now, later) = rest.split_at(count);
        rest = later;
        if now.iter().all(|token| token.index() < width) && driver.flag() {
            text.push_str(stream.step_batch(now).expect("ids that are known"));
            continue;
        }
        assert_eq!(
            stream.clone().step_batch(now).is_err(),
            now.iter().any(|token| token.index() >= width)
        );
        for &token in now {
            match stream.step(token) {
                Ok(more) => text.push_str(more),
                Err(error) => assert_eq!(error.token(), token),
            }
        }
    }
    text.push_str(stream.flush());
    text
}

fn sequence(decoder: &Arc<Decoder>, skip: bool, tokens: &[TokenId], whole: &str) {
    let mut sequence = Sequence::new(decoder.clone(), skip);
    for &token in tokens {
        sequence.append(token).expect("ids that are known");
    }
    assert_eq!(sequence.text(), whole);
    assert_eq!(sequence.byte_ranges().len(), tokens.len());
    let ends: Vec<usize> = sequence.byte_ranges().map(|range| range.end).collect();
    assert!(ends.is_sorted() && ends.last().copied().unwrap_or(0) == sequence.bytes().len());
}

/// What is shown is the text up to the first stop, as a search in all of the text finds it.
fn stopping(
    decoder: &Arc<Decoder>,
    skip: bool,
    stops: &Arc<Stops>,
    tokens: &[TokenId],
    options: &StopOptions,
    driver: &mut Driver<'_>,
) {
    let one_by_one = shown(
        StopDecoder::new(DecodeStream::new(decoder.clone(), skip), stops.clone()),
        tokens,
        None,
    );
    let in_batches = shown(
        StopDecoder::new(DecodeStream::new(decoder.clone(), skip), stops.clone()),
        tokens,
        Some(driver),
    );
    assert_eq!(one_by_one, in_batches);
    let (text, stop) = one_by_one;
    let whole = decoder.decode(tokens, skip).expect("ids that are known");
    let hidden = &options.strings;
    let visible = &options.visible_strings;
    // Of strings that end together the longest counts, so a visible one may end with a hidden one.
    let shows = match &stop {
        Some(Stop::String(string)) if visible.iter().any(|other| **other == **string) => {
            string.len()
        }
        _ => 0,
    };
    // What a visible stop token spells is shown and not searched.
    let shown = match &stop {
        Some(Stop::Token(token)) if options.visible_tokens.contains(token) => "",
        _ => text.as_str(),
    };
    for string in hidden.iter().chain(visible) {
        let end = shown.find(string.as_str()).map(|at| at + string.len());
        let allowed = end.is_none_or(|end| end == text.len() && string.len() <= shows);
        assert!(allowed, "{string:?} in {text:?}");
    }
    match stop {
        None => assert_eq!(text, whole),
        Some(Stop::Token(token)) => {
            assert!(options.tokens.contains(&token) || options.visible_tokens.contains(&token));
        }
        Some(Stop::String(string)) => {
            assert!(hidden.iter().chain(visible).any(|other| **other == *string));
        }
    }
}

fn shown(
    mut decoder: StopDecoder,
    tokens: &[TokenId],
    mut driver: Option<&mut Driver<'_>>,
) -> (String, Option<Stop>) {
    let mut text = String::new();
    let mut rest = tokens;
    while !rest.is_empty() && decoder.stopped().is_none() {
        let count = driver.as_mut().map_or(1, |driver| 1 + driver.below(rest.len().min(5)));
        let (now, later) = rest.split_at(count);
        rest = later;
        let output = match count {
            1 => decoder.step(now[0]),
            _ => decoder.step_batch(now),
        };
        add(&mut text, output.expect("ids that are known"));
    }
    if decoder.stopped().is_none() {
        add(&mut text, decoder.flush());
    }
    (text, decoder.stopped().cloned())
}

fn add(text: &mut String, output: Output<'_>) {
    match output {
        Output::Text(more) | Output::StoppedWithText(more) => text.push_str(more),
        _ => {}
    }
}
