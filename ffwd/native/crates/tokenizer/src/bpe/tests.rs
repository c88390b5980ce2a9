use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::testing::*;
use super::*;
use crate::vocabulary::TokenId;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(4),
        cases,
        ..Default::default()
    }
}

/// Any tokens of a few letters, in any order: most are reached by no merge, and some come before
/// their parts.
fn any_ranked() -> impl Strategy<Value = BpeSpec> {
    let text = prop::collection::vec(prop::sample::select(b"ab\xC3\xA9".to_vec()), 2..6);
    prop::collection::btree_set(text, 0..14).prop_flat_map(|texts| {
        Just(texts.into_iter().collect::<Vec<_>>()).prop_shuffle().prop_map(|texts| {
            let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
            ranked(&texts)
        })
    })
}

/// Merges of any two earlier tokens. Several merges make some tokens, and some tokens have the same
/// text.
fn any_listed() -> impl Strategy<Value = BpeSpec> {
    let picks = prop::collection::vec((any::<u16>(), any::<u16>()), 0..14);
    (picks, any::<bool>(), any::<u64>()).prop_map(|(picks, share, order)| {
        let mut spec = ranked(&[]);
        let mut usable: Vec<TokenId> = b"abc".iter().map(|&b| TokenId(u32::from(b))).collect();
        let mut merges: Vec<(TokenId, TokenId, TokenId)> = Vec::new();
        for (left, right) in picks {
            let left = usable[usize::from(left) % usable.len()];
            let right = usable[usize::from(right) % usable.len()];
            let text = [&*spec.pieces[left.index()].1, &*spec.pieces[right.index()].1].concat();
            let same = spec.pieces.iter().find(|(_, piece)| share && **piece == text[..]);
            let merged = same.map_or(TokenId(spec.pieces.len() as u32), |(token, _)| *token);
            if same.is_none() {
                spec.pieces.push((merged, text.into()));
                usable.push(merged);
            }
            merges.push((left, right, merged));
        }
        // In half of the cases the merges are not in the order in which the tokens were made.
        if order % 2 == 0 && !merges.is_empty() {
            let turn = (order / 2) as usize % merges.len();
            merges.rotate_left(turn);
        }
        spec.merges = Merges::Listed(merges);
        spec
    })
}

fn any_of_characters() -> impl Strategy<Value = BpeSpec> {
    let text =
        prop::collection::vec(prop::sample::select(vec!["a", "b", "é", "€", "😀", "ü"]), 2..5);
    prop::collection::btree_set(text, 0..12).prop_flat_map(|texts| {
        Just(texts.into_iter().map(|text| text.concat()).collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(|texts| {
                let texts: Vec<&str> = texts.iter().map(|text| &text[..]).collect();
                of_characters("abé€", &texts)
            })
    })
}

fn any_spec() -> impl Strategy<Value = BpeSpec> {
    (prop_oneof![any_ranked(), any_listed(), any_of_characters()], any::<bool>()).prop_map(
        |(mut spec, whole_pieces)| {
            spec.whole_pieces = whole_pieces;
            spec
        },
    )
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop::sample::select(vec!["a", "b", "c", "aa", "ab", "é", "€", "😀", "ü"]);
    prop_oneof![
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat().into_bytes()),
        prop::collection::vec(prop::sample::select(b"abc\xC3\xA9\xE2\x82\xAC\xFF".to_vec()), 0..40),
    ]
}

/// Every pair of tokens that spell letters of the tests.
fn some_tokens(spec: &BpeSpec) -> Vec<TokenId> {
    let bytes =
        b"abc\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xBC".iter().map(|&byte| TokenId(u32::from(byte)));
    bytes.chain(spec.pieces.iter().map(|(token, _)| *token).filter(|token| token.0 > 255)).collect()
}

/// Returns the fewest tokens that make up a text, found by trying all. The minimal encoding must
/// have as many.
fn fewest(table: &BpeTable, definition: &BpeSpec, text: &[u8]) -> usize {
    let mut fewest = vec![usize::MAX; text.len() + 1];
    fewest[0] = 0;
    for end in 1..=text.len() {
        for start in 0..end {
            let spelled = &text[start..end];
            let is_token = spelled.len() == 1
                || definition.pieces.iter().any(|(_, piece)| **piece == *spelled);
            if is_token && fewest[start] != usize::MAX {
                fewest[end] = fewest[end].min(fewest[start] + 1);
            }
        }
    }
    let mut tokens = Vec::new();
    table.encode_piece_by(Method::Minimal, text, &mut tokens);
    assert_eq!(
        tokens.iter().flat_map(|&token| table.text(token)).copied().collect::<Vec<_>>(),
        text
    );
    assert_eq!(tokens.len(), fewest[text.len()]);
    tokens.len()
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn the_inexact_encoders_do_what_they_say(spec in any_spec(), text in any_text()) {
        let table = BpeTable::new(spec.clone()).unwrap();
        let least = fewest(&table, &spec, &text);
        let mut greedy = Vec::new();
        table.encode_piece_by(Method::Greedy, &text, &mut greedy);
        prop_assert!(least <= greedy.len());
        let mut rest = &text[..];
        for &token in &greedy {
            let longest = spec.pieces.iter().map(|(_, piece)| &**piece).filter(|piece| rest.starts_with(piece)).map(<[u8]>::len).max();
            prop_assert!(rest.starts_with(table.text(token)));
            prop_assert_eq!(table.text(token).len(), longest.unwrap_or(1));
            rest = &rest[table.text(token).len()..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn the_tokens_that_a_text_begins_with_are_all_found(spec in any_spec(), text in any_text()) {
        let table = BpeTable::new(spec.clone()).unwrap();
        let mut found = Vec::new();
        table.prefixes(&text, |length, token| found.push((length, token)));
        prop_assert!(found.is_sorted_by_key(|&(length, _)| length));
        found.sort_unstable();
        let pieces = spec.pieces.iter().filter(|(_, piece)| text.starts_with(piece));
        let mut expected: Vec<_> = pieces.map(|(token, piece)| (piece.len(), *token)).collect();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        let whole = table.whole_piece(&text);
        let definition = Definition::new(&spec).encode(&text);
        prop_assert_eq!(whole, Some(definition).filter(|tokens| tokens.len() == 1 && !text.is_empty() && !table.is_byte_fallback(tokens[0])).map(|tokens| tokens[0]));
    }

    #[test]
    fn the_tokens_of_whole_pieces_are_those_that_are_looked_up(
        mut spec in any_spec(),
        whole_pieces: bool,
    ) {
        spec.whole_pieces = whole_pieces;
        let table = BpeTable::new(spec)?;
        let tokens = (0..table.width() as u32).map(TokenId);
        let is_found = |&token: &TokenId| {
            let text = table.text(token);
            !text.is_empty() && table.whole_piece(text) == Some(token)
        };
        prop_assert_eq!(table.whole_piece_tokens(), tokens.filter(is_found).collect::<Vec<_>>());
    }

    #[test]
    fn splits_are_the_same_by_pairs_and_by_merging(spec in any_spec()) {
        let (table, slow) = (BpeTable::new(spec.clone())?, BpeTable::new_by_merging(&spec)?);
        prop_assert_eq!(table.width(), slow.width());
        for token in (0..table.width() as u32).map(TokenId) {
            prop_assert_eq!(table.facts(token), slow.facts(token), "{:?}", table.text(token));
            let rows = (table.forbidden_after(token), slow.forbidden_after(token));
            prop_assert_eq!(rows.0, rows.1);
        }
    }

    #[test]
    fn a_piece_is_encoded_as_defined(spec in any_spec(), text in any_text()) {
        let definition = Definition::new(&spec);
        let table = BpeTable::new(spec).unwrap();
        let mut tokens = Vec::new();
        table.encode_piece(&text, &mut tokens);
        prop_assert_eq!(&tokens, &definition.encode(&text));
        prop_assert_eq!(table.count_piece(&text), tokens.len());
        for method in [Method::Backtracking, Method::Table, Method::Heap] {
            let mut by_method = vec![TokenId(7)];
            table.encode_piece_by(method, &text, &mut by_method);
            prop_assert_eq!(&by_method[1..], &tokens[..], "{:?}", method);
        }
    }

    #[test]
    fn a_pair_stands_if_it_is_the_encoding_of_what_it_spells(spec in any_spec()) {
        let definition = Definition::new(&spec);
        let table = BpeTable::new(spec.clone()).unwrap();
        let tokens = some_tokens(&spec);
        for &left in &tokens {
            let alone = definition.merge(table.text(left)) == [left];
            prop_assert_eq!(table.is_reachable(left), alone, "{}", left);
            for &right in &tokens {
                let text = [table.text(left), table.text(right)].concat();
                let expected = definition.merge(&text) == [left, right];
                prop_assert_eq!(table.pair(left, right), expected, "{} {}", left, right);
            }
            let mut row = table.forbidden_after(left).to_vec();
            row.sort_unstable();
            let reachable = (0..table.width() as u32).map(TokenId).filter(|&t| table.is_reachable(t));
            let expected: Vec<TokenId> =
                reachable.filter(|&right| !table.pair(left, right)).collect();
            prop_assert_eq!(row, expected, "after {}", left);
        }
    }

    #[test]
    fn growing_and_cut_pieces_are_encoded_like_whole_ones(spec in any_spec(), text in any_text()) {
        let definition = Definition::new(&spec);
        let table = BpeTable::new(spec).unwrap();
        let mut appender = PieceAppender::new();
        appender.extend(&table, &text);
        let mut prepender = PiecePrepender::new();
        prepender.extend(&table, &text);
        let intervals = PieceIntervals::new(&table, &text);
        for length in 0..=text.len() {
            let mut tokens = Vec::new();
            let expected = definition.encode(&text[..length]);
            appender.tokens_of_prefix(&table, length, &mut tokens);
            prop_assert_eq!(&tokens, &expected);
            prop_assert_eq!(appender.count_of_prefix(&table, length), expected.len());
            tokens.clear();
            let expected = definition.encode(&text[text.len() - length..]);
            prepender.tokens_of_suffix(&table, length, &mut tokens);
            prop_assert_eq!(&tokens, &expected);
            prop_assert_eq!(prepender.count_of_suffix(length), expected.len());
            for start in 0..length {
                let expected = definition.encode(&text[start..length]).len();
                prop_assert_eq!(intervals.count(&table, start..length), expected);
                let spaced = [b" ", &text[start..length]].concat();
                let expected = definition.encode(&spaced).len();
                prop_assert_eq!(intervals.count_after_space(&table, start..length), expected);
            }
        }
    }

    #[test]
    fn pieces_may_be_shortened_and_grow_again(spec in any_spec(), first in any_text(), then in any_text(), kept in any::<prop::sample::Index>()) {
        let table = BpeTable::new(spec).unwrap();
        let (mut appender, mut prepender) = (PieceAppender::new(), PiecePrepender::new());
        appender.extend(&table, &first);
        prepender.extend(&table, &first);
        let kept = kept.index(first.len() + 1);
        appender.truncate(kept);
        prepender.truncate(kept);
        prop_assert_eq!((appender.len(), prepender.len()), (kept, kept));
        appender.extend(&table, &then);
        prepender.extend(&table, &then);
        let appended = [&first[..kept], &then].concat();
        let prepended = [&then, &first[first.len() - kept..]].concat();
        prop_assert_eq!(appender.count(&table), table.count_piece(&appended));
        prop_assert_eq!(prepender.count(), table.count_piece(&prepended));
        appender.truncate(0);
        prepender.truncate(0);
        prop_assert_eq!((appender.count(&table), prepender.count()), (0, 0));
    }
}

fn texts_of(table: &BpeTable, tokens: &[TokenId]) -> Vec<String> {
    tokens.iter().map(|&token| String::from_utf8_lossy(table.text(token)).into_owned()).collect()
}

/// The example of `docs/bpe.md`, which is that of the README of the crate `bpe`.
#[test]
fn one_more_letter_changes_all_tokens_but_the_first() {
    let tokens = ["ab", "cb", "ac", "bb", "cbb", "acbb"].map(str::as_bytes);
    let table = BpeTable::new(ranked(&tokens)).unwrap();
    let prefixes: [&[&str]; 7] =
        [&[], &["a"], &["ab"], &["ab", "a"], &["ab", "ac"], &["ab", "a", "cb"], &["ab", "acbb"]];
    let mut appender = PieceAppender::new();
    appender.extend(&table, b"abacbb");
    for (length, expected) in prefixes.iter().enumerate() {
        let text = &b"abacbb"[..length];
        for method in [Method::Backtracking, Method::Table, Method::Heap] {
            let mut tokens = Vec::new();
            table.encode_piece_by(method, text, &mut tokens);
            assert_eq!(texts_of(&table, &tokens), *expected, "{method:?}");
        }
        let mut tokens = Vec::new();
        appender.tokens_of_prefix(&table, length, &mut tokens);
        assert_eq!(texts_of(&table, &tokens), *expected);
    }
    // `ac` may follow `ab`, and `c` may not follow `a`.
    let find = |text: &str| table.whole_piece(text.as_bytes()).unwrap();
    assert!(table.pair(find("ab"), find("ac")));
    assert!(!table.pair(find("a"), find("c")));
    // The next letter turns `a` `cb` into `a` `cbb`, and that into `acbb`.
    assert!(table.pair(find("a"), find("cb")));
    assert!(!table.pair(find("cb"), find("b")));
    assert_eq!(table.split(find("acbb")), Some((find("a"), find("cbb"))));
}

#[test]
fn what_is_no_encoding_is_refused_by_name() {
    let good = ranked(&[b"ab"]);
    let error = |change: &dyn Fn(&mut BpeSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        BpeTable::new(spec).err()
    };
    let (a, b, ab) = (TokenId(97), TokenId(98), TokenId(256));
    let piece = |id: u32, text: &[u8]| (TokenId(id), Box::from(text));
    assert_eq!(error(&|_| ()), None);
    assert_eq!(error(&|spec| spec.byte_tokens[200] = None), Some(BpeError::NoByteToken(200)));
    assert_eq!(
        error(&|spec| spec.pieces.push(piece(1 << 22, b"x"))),
        Some(BpeError::IdTooLarge(TokenId(1 << 22)))
    );
    assert_eq!(
        error(&|spec| spec.pieces.push(piece(u32::MAX, b"x"))),
        Some(BpeError::IdTooLarge(TokenId(u32::MAX)))
    );
    assert_eq!(error(&|spec| spec.pieces.push(piece(256, b"x"))), Some(BpeError::TwiceGiven(ab)));
    assert_eq!(
        error(&|spec| spec.pieces.push(piece(300, b""))),
        Some(BpeError::Empty(TokenId(300)))
    );
    let unknown = TokenId(257);
    assert_eq!(
        error(&|spec| spec.merges = Merges::Ranked(vec![unknown])),
        Some(BpeError::UnknownToken(unknown))
    );
    assert_eq!(
        error(&|spec| spec.merges = Merges::Listed(vec![(a, unknown, ab)])),
        Some(BpeError::UnknownToken(unknown))
    );
    let wrong = BpeError::WrongMerge { left: b, right: a, merged: ab };
    assert_eq!(error(&|spec| spec.merges = Merges::Listed(vec![(b, a, ab)])), Some(wrong));
    assert_eq!(
        error(&|spec| spec.pieces.push((TokenId(300), vec![b'x'; 1 << 24].into()))),
        Some(BpeError::TooManyBytes)
    );
    // A byte token beside characters is no part of a merge.
    let mut spec = of_characters("ab", &["ab"]);
    spec.merges = Merges::Ranked(vec![TokenId(7)]);
    assert_eq!(BpeTable::new(spec).err(), Some(BpeError::UnknownToken(TokenId(7))));
}

#[test]
fn ids_may_have_gaps_and_texts_several_tokens() {
    let mut spec = ranked(&[b"ab"]);
    spec.pieces.push((TokenId(5000), Box::from(*b"ab")));
    spec.pieces.push((TokenId(4000), Box::from(*b"zz")));
    spec.whole_pieces = true;
    let table = BpeTable::new(spec).unwrap();
    assert_eq!(table.width(), 5001);
    assert_eq!(table.text(TokenId(4500)), b"");
    let mut found = Vec::new();
    table.prefixes(b"abc", |length, token| found.push((length, token.0)));
    assert_eq!(found, [(1, 97), (2, 256), (2, 5000)]);
    assert_eq!(table.whole_piece(b"ab"), Some(TokenId(256)));
    // Nothing merges into `zz`: only a piece that is nothing else is this token.
    assert!(!table.is_reachable(TokenId(4000)));
    assert_eq!(table.whole_piece(b"zz"), Some(TokenId(4000)));
    let mut tokens = Vec::new();
    table.encode_piece(b"zzz", &mut tokens);
    assert_eq!(tokens, [TokenId(122); 3]);
    assert!(table.memory_bytes() < 1 << 20);
}

#[test]
fn a_character_without_a_piece_is_spelled_by_byte_tokens() {
    let mut spec = of_characters("ab€", &["ab", "é€"]);
    spec.whole_pieces = false;
    let table = BpeTable::new(spec).unwrap();
    let encode = |text: &str| {
        let mut tokens = Vec::new();
        table.encode_piece(text.as_bytes(), &mut tokens);
        tokens.iter().map(|token| token.0).collect::<Vec<_>>()
    };
    assert_eq!(encode("abéab€"), [259, 0xC3, 0xA9, 259, 258]);
    // No merge leads to a piece with a character that has none itself.
    assert_eq!(encode("é€"), [0xC3, 0xA9, 258]);
    assert!(!table.is_reachable(TokenId(260)));
    assert!(table.is_byte_fallback(TokenId(0xC3)) && !table.is_byte_fallback(TokenId(258)));
    // The byte of a character with a piece is of use only where it is a part of another.
    assert!(!table.is_reachable(TokenId(u32::from(b'a'))));
    assert!(table.is_reachable(TokenId(u32::from(b'c'))));
    assert!(table.is_character("€".as_bytes()) && !table.is_character("é".as_bytes()));
    assert!(!table.is_character(b"ab"));
}
