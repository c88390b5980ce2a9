//! The states that tokens lead to within a lexeme against a walk of every token.

use std::collections::{BTreeMap, BTreeSet};

use super::lexeme_mask::Inner;
use super::tests::{lexeme, pattern, states, PATTERNS};
use super::token_set::bits;
use super::LexemeMaskStore;
use ffwd_regular::expr::{LexState, Lexeme, Spelling};
use ffwd_regular::regex::{Ast, CharClass};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

type ByState = BTreeMap<LexState, BTreeSet<TokenId>>;

/// Tokens as of a real vocabulary, and some that end within a character.
fn with_unfinished() -> Vocabulary {
    let whole = vocabulary(51, 400);
    let whole = (0..whole.width() as u32).map(|id| whole.text(TokenId(id)).to_vec());
    let mut texts: Vec<Vec<u8>> = whole.collect();
    for before in ["", "a", "ab\"", "né", "\\", "€", "xx"] {
        for character in ["é", "€", "😀", "日"] {
            let text = [before, character].concat();
            texts
                .extend((1..character.len()).map(|cut| text.as_bytes()[..text.len() - cut].into()));
        }
    }
    texts.sort();
    texts.dedup();
    let mut texts: Vec<Option<&[u8]>> = texts.iter().map(|text| Some(&text[..])).collect();
    texts.push(None);
    Vocabulary::new(&texts, &[TokenId(texts.len() as u32 - 1)], None).unwrap()
}

/// `None` if the lexeme may have ended within a token.
fn by_brute_force(vocabulary: &Vocabulary, lexeme: &Lexeme, start: LexState) -> Option<ByState> {
    let mut found = ByState::new();
    for token in (0..vocabulary.width() as u32).map(TokenId) {
        let text = vocabulary.text(token);
        let mut state = start;
        for (at, &byte) in text.iter().enumerate() {
            let Some(next) = lexeme.next(state, byte).unwrap() else { break };
            match at + 1 == text.len() {
                true => {
                    found.entry(next).or_default().insert(token);
                }
                false if next.is_final() => break,
                false if next.accepts() => return None,
                false => {}
            }
            state = next;
        }
    }
    Some(found)
}

fn compare(vocabulary: &Vocabulary, lexeme: &Lexeme, seed: u8, what: &str) -> usize {
    let store = LexemeMaskStore::new(1 << 24);
    let mut known = 0;
    for state in states(lexeme, &mut seeded(seed), 4, 12) {
        if state.accepts() {
            continue;
        }
        let found = store.inside(vocabulary, lexeme, state).unwrap().map(|inside| {
            let mut found = ByState::new();
            for (to, tokens) in inside.groups() {
                let group = found.entry(*to).or_default();
                match &**tokens {
                    Inner::Few(tokens) => group.extend(tokens.iter()),
                    Inner::Many(bitmap) => group.extend(bits(bitmap)),
                }
            }
            found.retain(|_, tokens| !tokens.is_empty());
            found
        });
        known += usize::from(found.is_some());
        assert_eq!(found, by_brute_force(vocabulary, lexeme, state), "{what}, {state:?}");
    }
    known
}

#[test]
fn the_states_within_lexemes_are_what_brute_force_finds() {
    let vocabulary = with_unfinished();
    let mut known = 0;
    for (number, text) in PATTERNS.iter().enumerate() {
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            known += compare(&vocabulary, &lexeme(spelling, [pattern(text)]), number as u8, text);
        }
    }
    assert!(known > 200, "{known}");
}

/// Strings of characters of one kind, which share their groups of tokens.
#[test]
fn the_states_within_free_texts_are_what_brute_force_finds() {
    let vocabulary = with_unfinished();
    let longest = vocabulary.max_token_bytes() as u32;
    let of_kind = |text: &str| match pattern(text) {
        Ast::Class(class) => class,
        other => panic!("{other:?}"),
    };
    let mut known = 0;
    let kinds = [CharClass::any(), of_kind("[a-e]"), of_kind(r"[^\x00-\x1f]"), of_kind("[é€]")];
    for kind in kinds {
        for (min, max) in [
            (0, None),
            (1, None),
            (0, Some(3)),
            (2, Some(7)),
            (5, Some(5)),
            (0, Some(longest + 3)),
            (longest + 2, None),
            (200, Some(70_000)),
        ] {
            let text = Ast::repeat(Ast::Class(kind.clone()), min, max);
            let lexeme = lexeme(Spelling::JsonString, [text]);
            assert!(lexeme.free_text(lexeme.inside()).is_some());
            let what = format!("{min} to {max:?}");
            known += compare(&vocabulary, &lexeme, min as u8, &what);
        }
    }
    assert!(known > 200, "{known}");
}
