//! Tokens in which one key ends and a later, possibly equal one begins. Whether such a token is
//! allowed can depend on the earlier key, while masks are computed for all keys at once.

use ffwd_automaton::punctuation::index;
use ffwd_automaton::TextId;
use ffwd_automaton::{Automaton, Thread, ThreadLexeme};
use ffwd_regular::expr::json_text::closing_quote;

/// Returns whether the key that a token ends always differs from the one that begins in it, so that
/// a mask for all keys is valid. Returns `false` in doubt.
pub fn keys_differ(automaton: &Automaton, thread: &Thread, token: &[u8]) -> bool {
    let Some(json) = automaton.json() else { return false };
    if thread.transcript != TextId::NONE {
        return false;
    }
    let node = match thread.lexeme {
        ThreadLexeme::Key => Some(json.keys.node(thread.key_node())),
        _ => None,
    };
    if thread.text == TextId::NONE {
        return node.is_some_and(|node| ends_a_name(json.keys.written(&node), token));
    }
    let others = match thread.lexeme {
        ThreadLexeme::Lexeme(lexeme) => Some(lexeme),
        _ => node.and_then(|node| node.base).map(|base| base.lexeme),
    };
    let mut key = match (thread.text, &node) {
        (TextId::EMPTY, Some(node)) => json.keys.written(node).to_vec(),
        (text, _) => json.keys.texts.bytes(text),
    };
    // Infinitely many keys of "any string" differ from the earlier ones.
    if others != Some(index::ANY_STRING) || !is_inside(&key) {
        return false;
    }
    let Some(quote) = closing_quote(token) else { return false };
    let Some(later) = later_key(&token[quote + 1..]) else { return false };
    if later.is_empty() {
        return true;
    }
    key.extend_from_slice(&token[..quote]);
    !key.get(1..).is_some_and(|key| key.starts_with(later))
}

/// Returns whether a token ends the name that has begun with some bytes, and begins one key at most.
/// Only declared names are allowed there, and a mask is computed for each of them. So it is exact
/// unless a key both begins and ends in the token.
fn ends_a_name(written: &[u8], token: &[u8]) -> bool {
    let later = closing_quote(token).and_then(|quote| later_key(&token[quote + 1..]));
    is_inside(written) && later.is_some()
}

/// Whether a quote may end the name that has begun with some bytes: it stands neither before the
/// opening quote nor within an escape.
fn is_inside(written: &[u8]) -> bool {
    let escapes = written.iter().rev().take_while(|&&byte| byte == b'\\').count();
    !written.is_empty() && escapes % 2 == 0
}

/// Returns the text of the only later key, if there is no other and it has not ended.
fn later_key(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(open) = bytes[at..].iter().position(|&byte| byte == b'"') {
        let open = at + open;
        let before = bytes[..open].trim_ascii_end().last();
        let inside = &bytes[open + 1..];
        match (closing_quote(inside), before) {
            (None, Some(b',')) => return Some(inside),
            (Some(close), Some(b':')) => at = open + 1 + close + 1,
            // A key that has ended, an item, or something outside JSON.
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_key_is_found_if_it_is_the_only_one() {
        for (bytes, expected) in [
            (&b":\"\",\""[..], Some(&b""[..])),
            (b": 1, \"ab", Some(b"ab")),
            (b":\"x\\\"\" , \"a\\\"", Some(b"a\\\"")),
            (b":1,\"a\":", None),
            (b":1,\"a\":2,\"b", None),
            (b":[\"x\",\"y", None),
            (b":{\"y", None),
            (b":1", None),
        ] {
            assert_eq!(later_key(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_token_ends_a_name_and_begins_one_key_at_most() {
        for (written, token, expected) in [
            ("\"a", "\":\"\",\"", true),
            ("\"", "a\":1,\"b", true),
            ("\"a\\\\", "\":1,\"b", true),
            // Within an escape, and before the opening quote.
            ("\"a\\", "\":1,\"b", false),
            ("", "\":\"\",\"", false),
            // A key that begins and ends in the token.
            ("\"a", "\":1,\"b\":2,\"b", false),
            ("\"a", "\":{\"b\":2,\"b", false),
            ("\"a", "b", false),
        ] {
            let found = ends_a_name(written.as_bytes(), token.as_bytes());
            assert_eq!(found, expected, "{written} {token}");
        }
    }

    #[test]
    fn a_quote_ends_no_name_before_it_or_within_an_escape() {
        for (written, expected) in [
            ("", false),
            ("\"", true),
            ("\"a", true),
            ("\"a\\", false),
            ("\"a\\\\", true),
            ("\"a\\\\\\", false),
            ("\"a\\\"", true),
        ] {
            assert_eq!(is_inside(written.as_bytes()), expected, "{written}");
        }
    }
}
