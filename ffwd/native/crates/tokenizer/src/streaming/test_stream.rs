//! Streams against their slow twins: the decoding of all tokens, and a search in the whole text.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::testing::{any_bytes, any_start, start};
use super::{
    DecodeStream, Decoder, Output, Sequence, Stop, StopDecoder, StopError, StopOptions, Stops,
    TextStart, MAX_STRING_BYTES,
};
use crate::vocabulary::TokenId;
use ffwd_bounds::error::LimitExceeded;

fn decoder<T: AsRef<[u8]>>(tokens: &[T], special: &[u32], strip: bool) -> Arc<Decoder> {
    beginning(tokens, special, start(strip))
}

fn beginning<T: AsRef<[u8]>>(tokens: &[T], special: &[u32], start: TextStart) -> Arc<Decoder> {
    let table: Vec<Option<&T>> = tokens.iter().map(Some).collect();
    let special: Vec<TokenId> = special.iter().copied().map(TokenId).collect();
    Arc::new(Decoder::new(&table, &special, start).unwrap())
}

fn all(decoder: &Decoder) -> Vec<TokenId> {
    (0..decoder.vocab_size() as u32).map(TokenId).collect()
}

fn stops(decoder: &Decoder, hidden: &[&str], visible: &[&str]) -> Arc<Stops> {
    let strings = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    let options = StopOptions {
        strings: strings(hidden),
        visible_strings: strings(visible),
        ..StopOptions::default()
    };
    Arc::new(Stops::new(decoder, true, options).unwrap())
}

/// Returns the text that is shown of all tokens, and what stopped it.
fn shown(decoder: &Arc<Decoder>, stops: &Arc<Stops>) -> (String, Option<Stop>) {
    let stream = DecodeStream::new(Arc::clone(decoder), true);
    let mut stopping = StopDecoder::new(stream, Arc::clone(stops));
    let mut out = String::new();
    let mut take = |output: Output<'_>| match output {
        Output::Text(text) | Output::StoppedWithText(text) => out.push_str(text),
        Output::Held | Output::Stopped => {}
    };
    for token in all(decoder) {
        take(stopping.step(token).unwrap());
    }
    take(stopping.flush());
    let stop = stopping.stopped().cloned();
    (out, stop)
}

/// The same by looking at every end of the whole text.
fn shown_by_search(text: &str, hidden: &[&str], visible: &[&str]) -> (String, Option<Stop>) {
    for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
        let strings = hidden.iter().map(|s| (s, false)).chain(visible.iter().map(|s| (s, true)));
        let found =
            strings.filter(|(s, _)| text[..end].ends_with(**s)).max_by_key(|(s, _)| s.len());
        if let Some((string, is_visible)) = found {
            let shown = if is_visible { end } else { end - string.len() };
            return (text[..shown].to_owned(), Some(Stop::String((*string).into())));
        }
    }
    (text.to_owned(), None)
}

#[test]
fn held_text_is_not_lost() {
    let text = "世界 龘靐齉";
    for size in 1..5 {
        let tokens: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let decoder = decoder(&tokens, &[], false);
        let mut stream = DecodeStream::new(Arc::clone(&decoder), true);
        let mut out = String::new();
        for token in all(&decoder) {
            out.push_str(stream.step(token).unwrap());
        }
        assert_eq!(stream.flush(), "");
        assert_eq!(out, text);
    }
}

#[test]
fn a_genuine_replacement_character_passes_at_once() {
    let decoder = decoder(&["\u{FFFD}", "a"], &[], false);
    let mut stream = DecodeStream::new(decoder, true);
    assert_eq!(stream.step(TokenId(0)).unwrap(), "\u{FFFD}");
}

#[test]
fn bytes_are_replaced_as_soon_as_they_are_malformed() {
    let decoder =
        decoder(&[&b"\xE4\xB8"[..], b"\x96\xFF", b"\xE0\x80", b"ab\xF0", b"c\xC2"], &[], false);
    let mut stream = DecodeStream::new(decoder, true);
    assert_eq!(stream.step(TokenId(0)).unwrap(), "");
    assert_eq!(stream.step(TokenId(1)).unwrap(), "世\u{FFFD}");
    assert_eq!(stream.step(TokenId(2)).unwrap(), "\u{FFFD}\u{FFFD}");
    assert_eq!(stream.step(TokenId(3)).unwrap(), "ab");
    assert_eq!(stream.step(TokenId(4)).unwrap(), "\u{FFFD}c");
    assert_eq!(stream.flush(), "\u{FFFD}");
    assert_eq!(stream.flush(), "");
}

#[test]
fn a_prompt_decides_about_the_first_space() {
    let decoder = decoder(&["<s>", " a", " b"], &[0], true);
    let mut stream = DecodeStream::new(decoder, true);
    for (prompt, expected) in [(&[][..], "b"), (&[0][..], "b"), (&[0, 1], " b"), (&[1, 0], "b")] {
        let prompt: Vec<TokenId> = prompt.iter().copied().map(TokenId).collect();
        stream.after(&prompt).unwrap();
        assert_eq!(stream.step(TokenId(2)).unwrap(), expected);
        assert_eq!(stream.step(TokenId(2)).unwrap(), " b");
    }
}

#[test]
fn a_batch_with_an_unknown_token_changes_nothing() {
    let decoder = decoder(&["a"], &[], false);
    let mut stream = DecodeStream::new(decoder, true);
    assert!(stream.step_batch(&[TokenId(0), TokenId(1)]).is_err());
    assert_eq!(stream.step_batch(&[TokenId(0), TokenId(0)]).unwrap(), "aa");
}

#[test]
fn the_stop_that_ends_first_wins() {
    for (hidden, text, expected, by) in [
        (&["world", "hello"][..], "say hello world", "say ", "hello"),
        (&["abcd", "bc"], "abcd", "a", "bc"),
        (&["bc", "abc"], "xabc", "x", "abc"),
        (&["ab", "abc"], "xabc", "x", "ab"),
        (&["aab"], "aaab", "a", "aab"),
        (&["界齉"], "世界齉", "世", "界齉"),
    ] {
        for size in 1..=text.len() {
            let tokens: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let decoder = decoder(&tokens, &[], false);
            let found = shown(&decoder, &stops(&decoder, hidden, &[]));
            assert_eq!(
                found,
                (expected.to_owned(), Some(Stop::String(by.into()))),
                "{text} {size}"
            );
        }
    }
}

#[test]
fn no_more_is_held_than_may_become_a_stop() {
    let decoder = decoder(&["ab", "abx", "a", "b"], &[], false);
    let stops = stops(&decoder, &["abab!"], &[]);
    let mut stopping = StopDecoder::new(DecodeStream::new(Arc::clone(&decoder), true), stops);
    assert_eq!(stopping.step(TokenId(0)).unwrap(), Output::Held);
    assert_eq!(stopping.step(TokenId(0)).unwrap(), Output::Held);
    assert_eq!(stopping.held(), "abab");
    assert_eq!(stopping.step(TokenId(2)).unwrap(), Output::Text("ab"));
    assert_eq!(stopping.held(), "aba");
    assert_eq!(stopping.step(TokenId(3)).unwrap(), Output::Held);
    assert_eq!(stopping.step(TokenId(1)).unwrap(), Output::Text("abababx"));
    assert_eq!(stopping.step(TokenId(2)).unwrap(), Output::Held);
    assert_eq!(stopping.flush(), Output::Text("a"));
    assert_eq!(stopping.flush(), Output::Held);
}

#[test]
fn stop_tokens_stop_where_they_begin() {
    let decoder = decoder(&["<end>", "a<", "b", "\u{4E16}", "<eos>"], &[0, 4], false);
    let options = StopOptions {
        tokens: vec![TokenId(0)],
        visible_tokens: vec![TokenId(2)],
        strings: vec!["<b".to_owned(), "<eos>".to_owned()],
        ..StopOptions::default()
    };
    let stops = Arc::new(Stops::new(&decoder, true, options).unwrap());
    let mut stopping = StopDecoder::new(DecodeStream::new(decoder, true), stops);
    for (stop, expected, by) in [
        (0, Output::StoppedWithText("<"), Stop::Token(TokenId(0))),
        (2, Output::StoppedWithText("<b"), Stop::Token(TokenId(2))),
        (4, Output::StoppedWithText("<"), Stop::String("<eos>".into())),
    ] {
        assert_eq!(stopping.step(TokenId(1)).unwrap(), Output::Text("a"));
        assert_eq!(stopping.step(TokenId(stop)).unwrap(), expected);
        assert_eq!(stopping.stopped(), Some(&by));
        assert_eq!(stopping.step(TokenId(3)).unwrap(), Output::Stopped);
        assert_eq!(stopping.flush(), Output::Stopped);
        assert_eq!(stopping.num_tokens(), 2);
        stopping.reset();
        assert_eq!(stopping.stopped(), None);
    }
}

#[test]
fn stops_that_cannot_be_stopped_at() {
    let decoder = decoder(&["a"], &[], false);
    let strings = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let error = |options| Stops::new(&decoder, true, options).unwrap_err();
    assert_eq!(
        error(StopOptions { strings: strings(&["a", ""]), ..StopOptions::default() }),
        StopError::Empty { list: "stop", index: 1 }
    );
    assert_eq!(
        error(StopOptions {
            strings: strings(&["a"]),
            visible_strings: strings(&["b", "a"]),
            ..StopOptions::default()
        }),
        StopError::HiddenAndVisible { text: "a".to_owned(), index: 1 }
    );
    assert!(matches!(
        error(StopOptions { tokens: vec![TokenId(1)], ..StopOptions::default() }),
        StopError::Token(_)
    ));
    assert!(matches!(
        error(StopOptions {
            strings: vec!["ab".repeat(MAX_STRING_BYTES)],
            ..StopOptions::default()
        }),
        StopError::Limit(LimitExceeded { limit: "stop_string_bytes", .. })
    ));
    assert_eq!(
        error(StopOptions {
            tokens: vec![TokenId(0)],
            visible_tokens: vec![TokenId(0)],
            ..StopOptions::default()
        }),
        StopError::TokenHiddenAndVisible { token: TokenId(0) }
    );
}

#[test]
fn as_many_stop_strings_as_are_allowed() {
    let decoder = decoder(&["a"], &[], false);
    let strings = (0..MAX_STRING_BYTES / 4).map(|at| format!("{at:04x}")).collect();
    Stops::new(&decoder, true, StopOptions { strings, ..StopOptions::default() }).unwrap();
    let strings = vec!["a".repeat(MAX_STRING_BYTES)];
    Stops::new(&decoder, true, StopOptions { strings, ..StopOptions::default() }).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(10), ..ProptestConfig::default() })]

    #[test]
    fn a_stream_is_the_whole_decode(
        tokens in proptest::collection::vec(any_bytes(), 1..10),
        special in proptest::option::of(0..1u32),
        start in any_start(),
        skip: bool,
        batch in 1..4usize,
    ) {
        let decoder = beginning(&tokens, special.as_slice(), start);
        let tokens = all(&decoder);
        let mut stream = DecodeStream::new(Arc::clone(&decoder), skip);
        // The second text begins anew.
        for _ in 0..2 {
            let mut out = String::new();
            for (index, &token) in tokens.iter().enumerate() {
                out.push_str(stream.step(token).unwrap());
                // The output has all that is certain from the bytes so far.
                let bytes = decoder.decode_bytes(&tokens[..=index], skip).unwrap();
                let held = bytes.len() - stream.unfinished().len();
                prop_assert_eq!(&out, &String::from_utf8_lossy(&bytes[..held]));
                prop_assert!(held == bytes.len() || std::str::from_utf8(&bytes[held..]).is_err_and(|e| e.error_len().is_none()));
            }
            out.push_str(stream.flush());
            prop_assert_eq!(out, decoder.decode(&tokens, skip).unwrap());
        }
        let mut out = String::new();
        for tokens in tokens.chunks(batch) {
            out.push_str(stream.step_batch(tokens).unwrap());
        }
        out.push_str(stream.flush());
        prop_assert_eq!(out, decoder.decode(&tokens, skip).unwrap());
    }

    #[test]
    fn the_search_is_that_in_the_whole_text(
        tokens in proptest::collection::vec("[ab世\u{FFFD}]{0,4}", 1..8),
        cut in 1..5usize,
        hidden in proptest::collection::vec("[ab世\u{FFFD}]{1,4}", 0..4),
        visible in proptest::collection::vec("[ab世\u{FFFD}]{1,4}", 0..3),
    ) {
        let text = tokens.concat();
        let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
        let visible: Vec<&str> =
            visible.iter().map(String::as_str).filter(|text| !hidden.contains(text)).collect();
        let expected = shown_by_search(&text, &hidden, &visible);
        let whole = decoder(&tokens, &[], false);
        prop_assert_eq!(&shown(&whole, &stops(&whole, &hidden, &visible)), &expected);
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
        let cut = decoder(&pieces, &[], false);
        prop_assert_eq!(&shown(&cut, &stops(&cut, &hidden, &visible)), &expected);
    }

    #[test]
    fn a_batch_stops_like_its_tokens(
        tokens in proptest::collection::vec("[ab]{0,3}", 1..8),
        hidden in proptest::collection::vec("[ab]{1,4}", 0..3),
        stop_token in 0..8u32,
    ) {
        let decoder = decoder(&tokens, &[], false);
        let known = (stop_token as usize) < tokens.len();
        let options = StopOptions {
            tokens: known.then_some(TokenId(stop_token)).into_iter().collect(),
            strings: hidden,
            ..StopOptions::default()
        };
        let stops = Arc::new(Stops::new(&decoder, true, options).unwrap());
        let (expected, stop) = shown(&decoder, &stops);
        let mut batch = StopDecoder::new(DecodeStream::new(Arc::clone(&decoder), true), stops);
        let mut out = match batch.step_batch(&all(&decoder)).unwrap() {
            Output::Text(text) | Output::StoppedWithText(text) => text.to_owned(),
            Output::Held | Output::Stopped => String::new(),
        };
        prop_assert_eq!(batch.stopped().cloned(), stop);
        if let Output::Text(text) = batch.flush() {
            out.push_str(text);
        }
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn a_sequence_knows_where_its_tokens_are(
        tokens in proptest::collection::vec(any_bytes(), 1..8),
        special in proptest::option::of(0..1u32),
        prompt in 0..8usize,
        start in any_start(),
    ) {
        let decoder = beginning(&tokens, special.as_slice(), start);
        let tokens = all(&decoder);
        let prompt = prompt.min(tokens.len());
        let mut sequence = Sequence::new(Arc::clone(&decoder), true);
        let mut out = String::new();
        for (index, &token) in tokens.iter().enumerate() {
            if index == prompt {
                sequence.end_prompt();
            }
            out.push_str(sequence.append(token).unwrap());
            prop_assert_eq!(sequence.text(), decoder.decode(&tokens[..=index], true).unwrap());
            prop_assert_eq!(sequence.certain_text(), &out);
        }
        if prompt == tokens.len() {
            sequence.end_prompt();
        }
        prop_assert_eq!(sequence.prompt_tokens(), &tokens[..prompt]);
        prop_assert_eq!(sequence.generated_tokens(), &tokens[prompt..]);
        let text = sequence.text();
        prop_assert_eq!(format!("{}{}", sequence.prompt_text(), sequence.generated_text()), text.clone());
        let bytes = decoder.decode_bytes(&tokens, true).unwrap();
        prop_assert_eq!(sequence.bytes(), &bytes);
        let ranges: Vec<_> = sequence.byte_ranges().collect();
        prop_assert_eq!(ranges.iter().map(|range| &bytes[range.clone()]).collect::<Vec<_>>().concat(), bytes.clone());
        // The characters that each byte is of, by another way: which of them end up in the text of
        // the bytes up to it.
        let mut of_byte = vec![];
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                of_byte.extend(vec![at; character.len_utf8()]);
                at += 1;
            }
            if !chunk.invalid().is_empty() {
                of_byte.extend(vec![at; chunk.invalid().len()]);
                at += 1;
            }
        }
        for (range, characters) in ranges.iter().zip(sequence.character_ranges()) {
            match (of_byte.get(range.start), range.is_empty()) {
                (Some(&first), false) => prop_assert_eq!(characters, first..of_byte[range.end - 1] + 1),
                _ => prop_assert!(characters.is_empty() && characters.end <= text.chars().count()),
            }
        }
    }
}
