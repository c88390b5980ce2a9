//! Random bytes that the tests share.

use proptest::prelude::*;

use super::TextStart;
use crate::vocabulary::TokenId;

pub fn start(strip_first_space: bool) -> TextStart {
    TextStart { strip_first_space, ..TextStart::default() }
}

/// Text of several scripts, cut anywhere, with bytes in between that no character has: many are the
/// beginnings of characters that do not go on.
pub fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::sample::select(vec!["a", " ", "é", "世", "界", "\u{FFFD}", "👩‍👩‍👧", "龘靐齉"])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => proptest::sample::select(vec![
            0x80u8, 0xBF, 0xC0, 0xC2, 0xC3, 0xE0, 0xA0, 0x9F, 0xED, 0xEF, 0xBB, 0xF0, 0x90, 0xF4, 0x8F,
            0xF5, 0xFF
        ])
        .prop_map(|byte| vec![byte]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    (proptest::collection::vec(piece, 0..4), 0..3usize, 0..3usize).prop_map(
        |(pieces, head, tail)| {
            let bytes = pieces.concat();
            let end = bytes.len().saturating_sub(tail);
            bytes[head.min(end)..end].to_vec()
        },
    )
}

/// The options for the start of a text, including the first token's bytes.
pub fn any_start() -> impl Strategy<Value = TextStart> {
    (any::<bool>(), any::<bool>(), proptest::option::of(any_bytes())).prop_map(
        |(strip_first_space, strip_every_first_space, first)| TextStart {
            strip_first_space,
            strip_every_first_space,
            first_tokens: first.into_iter().map(|bytes| (TokenId(0), bytes.into())).collect(),
        },
    )
}
