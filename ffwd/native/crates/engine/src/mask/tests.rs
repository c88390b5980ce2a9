//! Masks of lexeme states against a walk of every token, with and without the clamp of counters.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRng};

use super::lexeme_mask::{Inner, LexemeMask};
use super::slots::Slots;
use super::token_set::{bits, set_bits, TokenList, TokenMaskBuilder};
use super::*;
use ffwd_regular::expr::{LexState, Lexeme, LexemeSpec, Spelling};
use ffwd_regular::regex::{rust_dialect, Ast};
use ffwd_tokenizer::vocabulary::testing::{seeded, vocabulary, vocabulary_of};
use ffwd_tokenizer::vocabulary::{NodeId, TokenId, Vocabulary};

/// The effects of tokens from a state: those that stay inside or end with it; and for each exit the
/// verdict, the token, and its bytes after the end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    pub(super) inner: BTreeSet<TokenId>,
    pub(super) exits: BTreeSet<(u128, Vec<u8>, TokenId)>,
}

impl Kinds {
    /// Nothing begins in the middle of a character, or with a byte that UTF-8 does not have, so such
    /// exits lead nowhere. A token that ends with the lexeme may come like one that stays inside.
    pub(super) fn exit(&mut self, accept: u128, rest: &[u8], token: TokenId) {
        if rest.is_empty() {
            self.inner.insert(token);
        } else if !matches!(rest, [0x80..=0xC1 | 0xF5..=0xFF, ..]) {
            self.exits.insert((accept, rest.to_vec(), token));
        }
    }

    pub(super) fn of_mask(mask: &LexemeMask, vocabulary: &Vocabulary) -> Self {
        let mut kinds = Self::default();
        match &mask.inner {
            Inner::Few(tokens) => kinds.inner.extend(tokens.iter()),
            Inner::Many(bitmap) => kinds.inner.extend(bits(bitmap)),
        }
        let trie = vocabulary.trie();
        for group in &mask.exits {
            for &token in group.rests.tokens_below(NodeId::ROOT) {
                // A token is in the trie of rests where one of its ends leads.
                let text = vocabulary.text(token);
                for from in 1..=text.len() {
                    let node = group.rests.find(&text[from..]);
                    if node.is_some_and(|node| group.rests.tokens_at(node).contains(&token)) {
                        kinds.exit(group.accept, &text[from..], token);
                    }
                }
            }
            for &(node, goes_on) in &group.longest_grafts {
                let depth = depth_of(vocabulary, node);
                for (byte, child) in trie.children(node) {
                    for &token in trie.tokens_below(child) {
                        if !goes_on.contains(byte) {
                            let rest = &vocabulary.text(token)[depth..];
                            kinds.exit(group.accept, rest, token);
                        }
                    }
                }
            }
            let mut below = |node: NodeId, with_node: bool| {
                let here = trie.tokens_at(node);
                let depth = depth_of(vocabulary, node);
                for &token in trie.tokens_below(node) {
                    if with_node || !here.contains(&token) {
                        kinds.exit(group.accept, &vocabulary.text(token)[depth..], token);
                    }
                }
            };
            for &(node, with_node) in &group.grafts {
                below(node, with_node);
            }
            for &top in &group.everywhere {
                for node in top.0..trie.after(top).0 {
                    below(NodeId(node), false);
                }
            }
        }
        kinds
    }

    /// By reading each token byte by byte.
    pub(super) fn by_brute_force(
        lexeme: &Lexeme,
        start: LexState,
        vocabulary: &Vocabulary,
    ) -> Self {
        let mut kinds = Self::default();
        for token in (0..vocabulary.width() as u32).map(TokenId) {
            let text = vocabulary.text(token);
            let mut state = start;
            for (at, &byte) in text.iter().enumerate() {
                let Some(next) = lexeme.next(state, byte).unwrap() else { break };
                let rest = &text[at + 1..];
                if next.accepts() && (next.is_final() || !rest.is_empty()) {
                    kinds.exit(lexeme.accept(next), rest, token);
                }
                if rest.is_empty() && !next.is_final() {
                    kinds.inner.insert(token);
                }
                state = next;
            }
        }
        kinds
    }
}

fn depth_of(vocabulary: &Vocabulary, node: NodeId) -> usize {
    let trie = vocabulary.trie();
    (1..=node.0).filter(|&above| trie.after(NodeId(above)) > node).count()
}

pub(super) fn lexeme(spelling: Spelling, languages: impl IntoIterator<Item = Ast>) -> Lexeme {
    Lexeme::new(LexemeSpec::new(spelling, languages)).unwrap()
}

pub(super) fn pattern(pattern: &str) -> Ast {
    rust_dialect::anchored(pattern).unwrap()
}

/// Some states of a lexeme: the first, and what random bytes lead to.
pub(super) fn states(
    lexeme: &Lexeme,
    rng: &mut TestRng,
    runs: usize,
    length: usize,
) -> BTreeSet<LexState> {
    let mut found = BTreeSet::from([lexeme.start()]);
    for _ in 0..runs {
        let mut state = lexeme.start();
        for _ in 0..length {
            let alive: Vec<LexState> = (0..=255u8)
                .filter_map(|byte| lexeme.next(state, byte).unwrap())
                .filter(|next| !next.is_final())
                .collect();
            if alive.is_empty() {
                break;
            }
            state = alive[rng.random_range(0..alive.len())];
            found.insert(state);
        }
    }
    found
}

pub(super) fn compare(vocabulary: &Vocabulary, lexeme: &Lexeme, rng: &mut TestRng, what: &str) {
    let store = LexemeMaskStore::new(1 << 24);
    for state in states(lexeme, rng, 4, 12) {
        let mask = store.get(vocabulary, lexeme, state).unwrap();
        let found = Kinds::of_mask(&mask, vocabulary);
        let expected = Kinds::by_brute_force(lexeme, state, vocabulary);
        let text = |token: &TokenId| String::from_utf8_lossy(vocabulary.text(*token)).into_owned();
        let differing: Vec<String> =
            found.inner.symmetric_difference(&expected.inner).map(text).collect();
        assert!(differing.is_empty(), "{what}, {state:?}: inner {differing:?}");
        let differing: Vec<String> = found
            .exits
            .symmetric_difference(&expected.exits)
            .map(|(accept, rest, token)| {
                format!("{accept} {} {}", text(token), String::from_utf8_lossy(rest))
            })
            .collect();
        assert!(differing.is_empty(), "{what}, {state:?}: exits {differing:?}");
    }
}

pub(super) const PATTERNS: [&str; 25] = [
    ".*xe",
    "[^é]*",
    r"[\x00-\u{20ab}]*a",
    r"[^😀ab]*:(?s:.*)",
    r"\w+(-\w+)*",
    r"(?s:.*)(\d[a-f]{2}){1,2}(?s:.*)",
    r"(.{1,9}\.){1,7}[a-e]*",
    "(?s:.*)",
    "(?s:.){1,3}",
    "(?s:.){2,}",
    "(?s:.){200}",
    "(?s:.){190,210}",
    "a{40,90}",
    "(ab?){30,70}c{2,50}",
    "((a|bc){2,40}x){1,30}",
    "[^\"]{3,60}",
    "(é|€){0,35}\"",
    "[a-z]*",
    "(a|[a-z]{25})*",
    r"[\x00-\x1f]{1,40}",
    r"(\S+ ){0,50}\S+",
    "true|null|name",
    "(a*b){0,33}(\"|:)*",
    r"-?(0|[1-9]\d*)(\.\d{1,60})?",
    "",
];

#[test]
fn lexeme_masks_are_what_brute_force_finds() {
    let vocabulary = vocabulary(21, 500);
    for spelling in [Spelling::Utf8, Spelling::JsonString] {
        for (number, text) in PATTERNS.iter().enumerate() {
            let lexeme = lexeme(spelling, [pattern(text)]);
            compare(&vocabulary, &lexeme, &mut seeded(number as u8), text);
        }
    }
}

/// Several languages, of which each ending tells a different set.
#[test]
fn verdicts_of_masks_are_what_brute_force_finds() {
    let vocabulary = vocabulary(22, 500);
    for (number, texts) in
        [["a*", "[ab]{2,60}", "(a|b)*c?"], ["(?s:.){2,40}", "(?s:.){39,}", "name|a"]]
            .iter()
            .enumerate()
    {
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let lexeme = lexeme(spelling, texts.map(pattern));
            compare(&vocabulary, &lexeme, &mut seeded(number as u8), &texts.join(" & "));
        }
    }
}

/// Languages that are only observed tell their bits, and keep nothing alive.
#[test]
fn observed_languages_are_told_and_let_nothing_in() {
    let vocabulary = vocabulary(23, 500);
    let cases: [(&[&str], u128); 6] = [
        (&["a{2,60}", "[ab]*"], 1),
        (&["[ab]{2,60}", "(?s:.*)", "a*"], 1),
        (&["(?s:.*)", "a{2,60}", "na(me)?"], 1),
        (&["(?s:.*)name(?s:.*)", "(?s:.){0,40}", "b*"], 1),
        (&["a{3,50}", "b*c", "(?s:.*)"], 0b11),
        (&["true|null", "(?s:.{4,70})"], 1),
    ];
    for (number, (texts, required)) in cases.into_iter().enumerate() {
        for spelling in [Spelling::Utf8, Spelling::JsonString] {
            let languages: Vec<Ast> = texts.iter().map(|text| pattern(text)).collect();
            let observing = Lexeme::new(LexemeSpec {
                required,
                ..LexemeSpec::new(spelling, languages.iter().cloned())
            })
            .unwrap();
            let what = texts.join(" & ");
            compare(&vocabulary, &observing, &mut seeded(number as u8), &what);
            // Every text of the required languages, and no other, with all its bits.
            let all = lexeme(spelling, texts.iter().map(|text| pattern(text)));
            let kept = texts.iter().enumerate().filter(|(at, _)| required >> at & 1 == 1);
            let kept = lexeme(spelling, kept.map(|(_, text)| pattern(text)));
            let mut rng = seeded(number as u8);
            for _ in 0..300 {
                let mut states = Some((observing.start(), all.start(), kept.start()));
                for _ in 0..80 {
                    let Some((state, of_all, of_kept)) = states else { break };
                    let expected = if kept.accept(of_kept) == 0 { 0 } else { all.accept(of_all) };
                    assert_eq!(observing.accept(state), expected, "{what}");
                    let byte = b"aab\"namecul tr"[rng.random_range(0..14)];
                    let next = observing.next(state, byte).unwrap();
                    let kept_next = kept.next(of_kept, byte).unwrap();
                    assert_eq!(next.is_some(), kept_next.is_some(), "{what}");
                    let all_next = all.next(of_all, byte).unwrap();
                    states = next.zip(all_next).zip(kept_next).map(|((a, b), c)| (a, b, c));
                }
            }
        }
    }
}

#[test]
fn the_longest_tokens_come_first() {
    let vocabulary = vocabulary(27, 300);
    for bytes in 0..=vocabulary.max_token_bytes() + 1 {
        let mut longer = vocabulary.longer_than(bytes).to_vec();
        longer.sort_unstable();
        let expected: Vec<TokenId> = (0..vocabulary.width() as u32)
            .map(TokenId)
            .filter(|&token| vocabulary.text(token).len() > bytes)
            .collect();
        assert_eq!(longer, expected, "{bytes}");
    }
}

/// Counters that cannot run out within a token are not told apart, and there the walks end.
#[test]
fn counters_far_from_their_end_share_one_mask() {
    let vocabulary = vocabulary(24, 100);
    let horizon = vocabulary.max_token_bytes() as u32;
    let lexeme = lexeme(Spelling::Utf8, [pattern("[ab]{3000}c")]);
    let store = LexemeMaskStore::new(1 << 24);
    let mut state = lexeme.start();
    for _ in 0..3000 - horizon as usize - 2 {
        let mask = store.get(&vocabulary, &lexeme, state).unwrap();
        assert!(mask.exits.is_empty());
        state = lexeme.next(state, b'a').unwrap().unwrap();
    }
    assert_eq!(store.walks(), 1);
}

/// Every mask inside of a string of any characters comes from one walk.
#[test]
fn free_strings_are_walked_once() {
    let vocabulary = vocabulary(25, 300);
    let store = LexemeMaskStore::new(1 << 24);
    let walks = |min: u32, max: Option<u32>| {
        let any = Ast::Class(ffwd_regular::regex::CharClass::any());
        let lexeme = lexeme(Spelling::JsonString, [Ast::repeat(any, min, max)]);
        let mut state = lexeme.inside();
        for _ in 0..max.unwrap_or(20).min(20) {
            let mask = store.get(&vocabulary, &lexeme, state).unwrap();
            let expected = Kinds::by_brute_force(&lexeme, state, &vocabulary);
            assert_eq!(Kinds::of_mask(&mask, &vocabulary), expected, "{min} {max:?}");
            state = lexeme.next(state, b'a').unwrap().unwrap();
        }
        store.walks()
    };
    for (min, max) in
        [(0, None), (0, Some(1)), (1, Some(1)), (2, Some(9)), (5, None), (0, Some(70))]
    {
        assert_eq!(walks(min, max), 0, "{min} {max:?}");
    }
}

/// The last characters of a string may be in a longer token than any that stays inside, and a
/// token may have more characters than are counted in a byte.
#[test]
fn long_tokens_at_the_end_of_a_string_are_counted() {
    for longest in [8, 254, 255, 256, 300] {
        let run = "a".repeat(longest);
        let vocabulary = vocabulary_of(&[&format!("{run}\""), &run, "aaa", &run[1..]]);
        let longest = longest as u32;
        let mut bounds = vec![(0, Some(5)), (500, None), (longest + 1, None), (1000, Some(1000))];
        for length in longest - 2..=longest + 2 {
            bounds.extend([(0, Some(length)), (length, None), (length, Some(length))]);
        }
        for (min, max) in bounds {
            let any = Ast::Class(ffwd_regular::regex::CharClass::any());
            let lexeme = lexeme(Spelling::JsonString, [Ast::repeat(any, min, max)]);
            let store = LexemeMaskStore::new(1 << 24);
            let mask = store.get(&vocabulary, &lexeme, lexeme.inside()).unwrap();
            let expected = Kinds::by_brute_force(&lexeme, lexeme.inside(), &vocabulary);
            let found = Kinds::of_mask(&mask, &vocabulary);
            assert!(found == expected, "tokens of {longest}, strings of {min} to {max:?}");
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Bitmap(usize),
    Mask(usize, Vec<u32>),
    /// A list without some of its tokens.
    List(usize, Vec<u32>),
    Add(Vec<u32>),
    Remove(Vec<u32>),
}

fn changes(width: u32) -> impl Strategy<Value = Vec<Change>> {
    let ids = || prop::collection::vec(0..width, 0..150);
    prop::collection::vec(
        prop_oneof![
            (0..3usize).prop_map(Change::Bitmap),
            (0..3usize, ids()).prop_map(|(at, ids)| Change::Mask(at, ids)),
            (0..3usize, ids()).prop_map(|(at, ids)| Change::List(at, ids)),
            ids().prop_map(Change::Add),
            ids().prop_map(Change::Remove),
        ],
        0..6,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), cases: 300, ..Default::default() })]

    #[test]
    fn a_built_mask_is_a_set(
        changes in changes(150),
        seeds in prop::collection::vec(prop::collection::vec(0..150u32, 0..100), 3),
        longer in 0..3usize,
    ) {
        const WORDS: usize = 5;
        let ids = |ids: &[u32]| -> Vec<TokenId> { ids.iter().copied().map(TokenId).collect() };
        let bitmaps: Vec<Arc<[u32]>> = seeds
            .iter()
            .map(|seed| {
                let mut bitmap = vec![0; WORDS];
                set_bits(&mut bitmap, &ids(seed));
                bitmap.into()
            })
            .collect();
        let lists: Vec<TokenList> =
            bitmaps.iter().map(|bitmap| bits(bitmap).collect()).collect();
        let mut builder = TokenMaskBuilder::new(WORDS);
        let mut expected: BTreeSet<TokenId> = BTreeSet::new();
        for change in &changes {
            match change {
                Change::Bitmap(at) => {
                    builder.add_bitmap(&bitmaps[*at]);
                    expected.extend(ids(&seeds[*at]));
                }
                Change::Mask(at, added) => {
                    let mut other = TokenMaskBuilder::new(WORDS);
                    other.add_bitmap(&bitmaps[*at]);
                    other.added.extend(ids(added));
                    builder.add_mask(&other.build());
                    expected.extend(ids(&seeds[*at]));
                    expected.extend(ids(added));
                }
                Change::List(at, removed) => {
                    let mut removed = removed.clone();
                    removed.sort_unstable();
                    let mut other = TokenMaskBuilder::new(WORDS);
                    other.add_list(&lists[*at]);
                    other.remove(&ids(&removed));
                    builder.add_all(other);
                    let left = lists[*at].iter().filter(|token| !removed.contains(&token.0));
                    expected.extend(left);
                }
                Change::Add(added) => {
                    builder.added.extend(ids(added));
                    expected.extend(ids(added));
                }
                Change::Remove(removed) => {
                    let mut removed = removed.clone();
                    removed.sort_unstable();
                    builder.remove(&ids(&removed));
                    expected.retain(|token| !removed.contains(&token.0));
                }
            }
        }
        let mask = builder.build();
        let expected: Vec<TokenId> = expected.into_iter().collect();
        prop_assert_eq!(mask.tokens(), expected.clone());
        prop_assert_eq!(mask.is_empty(), expected.is_empty());
        let mut row = vec![u32::MAX; WORDS + longer];
        mask.fill(&mut row);
        prop_assert_eq!(bits(&row).collect::<Vec<_>>(), expected.clone());
        // A row that is too short takes what fits.
        let mut short = vec![u32::MAX; WORDS - 1];
        mask.fill(&mut short);
        let fitting: Vec<TokenId> =
            expected.into_iter().filter(|token| token.0 < 32 * (WORDS as u32 - 1)).collect();
        prop_assert_eq!(bits(&short).collect::<Vec<_>>(), fitting);
        // The shared bitmaps are unchanged.
        for (bitmap, seed) in bitmaps.iter().zip(&seeds) {
            let unchanged: BTreeSet<TokenId> = ids(seed).into_iter().collect();
            prop_assert_eq!(bits(bitmap).collect::<BTreeSet<_>>(), unchanged);
        }
    }

    #[test]
    fn slots_hold_what_was_set_last(
        sets in prop::collection::vec((0..9000u32, any::<u16>()), 0..60),
        asked in prop::collection::vec(0..9000u32, 0..20),
    ) {
        let slots = Slots::default();
        let mut expected = std::collections::BTreeMap::new();
        for &(index, value) in &sets {
            slots.set(index, Arc::new(value));
            expected.insert(index, value);
        }
        for index in asked.iter().chain(expected.keys()) {
            prop_assert_eq!(slots.with(*index, |&value| value), expected.get(index).copied());
        }
        slots.clear();
        for index in expected.keys() {
            prop_assert_eq!(slots.with(*index, |&value| value), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(11), cases: 200, ..Default::default() })]

    #[test]
    fn rests_are_sorted_by_bytes_and_then_by_token(
        rests in prop::collection::vec((prop::collection::vec(0..2u8, 0..12), 0..4u32), 0..40),
    ) {
        let mut sorted: Vec<(&[u8], TokenId)> =
            rests.iter().map(|(rest, token)| (&rest[..], TokenId(*token))).collect();
        let mut expected = sorted.clone();
        super::walk::sort(&mut sorted);
        expected.sort();
        prop_assert_eq!(sorted, expected);
    }
}

#[test]
fn slots_are_read_while_they_are_set() {
    let slots: Slots<u64> = Slots::default();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let slots = &slots;
            scope.spawn(move || {
                for index in 0..2000u32 {
                    slots.set(index, Arc::new(u64::from(index) << 8 | thread));
                    let seen = slots.with(index, |&value| value >> 8);
                    assert_eq!(seen, Some(u64::from(index)));
                }
            });
        }
    });
}
