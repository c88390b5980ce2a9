use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::testing::{encode_greedily, vocabulary, vocabulary_of};
use super::*;

fn short_texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    // Few letters and many strings, so that they share prefixes and some stand twice.
    prop::collection::vec(
        prop::collection::vec(prop::sample::select(b"ab\xC3".to_vec()), 0..6),
        0..60,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), cases: 200, ..Default::default() })]

    #[test]
    fn a_trie_is_a_map_from_prefixes_to_tokens(texts in short_texts()) {
        let mut sorted: Vec<(Vec<u8>, TokenId)> =
            texts.iter().enumerate().map(|(id, text)| (text.clone(), TokenId(id as u32))).collect();
        sorted.sort();
        let trie = ByteTrie::from_sorted(&sorted);
        let mut below: BTreeMap<Vec<u8>, Vec<TokenId>> = BTreeMap::from([(Vec::new(), Vec::new())]);
        for (text, token) in &sorted {
            for length in 0..=text.len() {
                below.entry(text[..length].to_vec()).or_default().push(*token);
            }
        }
        prop_assert_eq!(trie.len(), below.len());
        prop_assert_eq!(trie.is_empty(), texts.is_empty());
        // Depth-first order is the order of the prefixes.
        for (index, (prefix, tokens)) in below.iter().enumerate() {
            let node = NodeId(index as u32);
            prop_assert_eq!(trie.find(prefix), Some(node));
            prop_assert_eq!(trie.byte(node), prefix.last().copied().unwrap_or(0));
            prop_assert_eq!(trie.tokens_below(node), &tokens[..]);
            let here: Vec<TokenId> =
                sorted.iter().filter(|(text, _)| text == prefix).map(|&(_, token)| token).collect();
            prop_assert_eq!(trie.tokens_at(node), &here[..]);
            let children: Vec<u8> = trie.children(node).map(|(byte, _)| byte).collect();
            let expected: Vec<u8> = below
                .keys()
                .filter(|key| key.len() == prefix.len() + 1 && key.starts_with(prefix))
                .map(|key| key[prefix.len()])
                .collect();
            prop_assert_eq!(children, expected);
            let subtree = below.keys().filter(|key| key.starts_with(prefix)).count();
            prop_assert_eq!(trie.after(node), NodeId((index + subtree) as u32));
        }
        prop_assert_eq!(trie.find(b"c"), None);
    }

    #[test]
    fn a_token_in_which_a_key_ends_twice_is_listed(
        pieces in prop::collection::vec(prop::sample::select(vec!["\"", ":", ",", "a", " ", "1"]), 0..9)
    ) {
        let text = pieces.concat();
        let spans = ["a\":", "\":1,\"", "\": 1, \""];
        if spans[1..].iter().any(|span| text.contains(span)) {
            prop_assert!(may_span_two_keys(text.as_bytes()));
        }
        if text.matches('"').count() < 2 || !text.contains(':') || !text.contains(',') {
            prop_assert!(!may_span_two_keys(text.as_bytes()));
        }
    }
}

#[test]
fn the_tokens_below_a_node_have_no_bytes_that_its_summary_lacks() {
    let vocabulary = vocabulary(3, 400);
    let trie = vocabulary.trie();
    for index in 0..trie.len() as u32 {
        let node = NodeId(index);
        let mut expected = Summary::default();
        let mut ill_formed = false;
        for child in index + 1..trie.after(node).0 {
            let byte = trie.byte(NodeId(child));
            let group = if byte.is_ascii() { Summary::of_ascii(byte) } else { Summary::MULTIBYTE };
            expected = expected.union(group);
        }
        // Every string below, to its end.
        let mut pending: Vec<(NodeId, Option<Utf8Place>)> = vec![(node, Some(Utf8Place::BOUNDARY))];
        while let Some((node, place)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                let next = place.and_then(|place| place.next(byte));
                ill_formed |= next.is_none();
                pending.push((child, next));
            }
        }
        if ill_formed {
            expected = expected.union(Summary::ILL_FORMED);
        }
        assert_eq!(vocabulary.below(node), expected, "node {index}");
    }
}

#[test]
fn a_vocabulary_says_what_each_token_spells() {
    let tokens: [Option<&[u8]>; 2] = [Some(b"zz"), None];
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let all: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).chain(tokens).collect();
    let vocabulary = Vocabulary::new(&all, &[TokenId(259), TokenId(257)], Some(300)).unwrap();
    assert_eq!(vocabulary.width(), 300);
    assert_eq!(vocabulary.mask_words(), 10);
    assert_eq!(vocabulary.eos(), &[TokenId(257), TokenId(259)]);
    assert_eq!(vocabulary.text(TokenId(7)), &[7]);
    assert_eq!(vocabulary.text(TokenId(256)), b"zz");
    assert_eq!(vocabulary.max_token_bytes(), 2);
    for silent in [257, 258, 299, 300, u32::MAX] {
        assert_eq!(vocabulary.text(TokenId(silent)), b"");
    }
}

#[test]
fn an_end_token_spells_nothing() {
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let mut all: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
    all.push(Some(b"</s>"));
    let vocabulary = Vocabulary::new(&all, &[TokenId(256)], None).unwrap();
    assert_eq!(vocabulary.text(TokenId(256)), b"");
    assert_eq!(vocabulary.trie().find(b"</"), None);
}

#[test]
fn what_is_wrong_with_a_vocabulary_is_named() {
    let bytes: Vec<[u8; 1]> = (0..=255u8).map(|byte| [byte]).collect();
    let all: Vec<Option<&[u8]>> = bytes.iter().map(|byte| Some(&byte[..])).collect();
    let end = [TokenId(256)];
    let error = |tokens: &[Option<&[u8]>], eos: &[TokenId], width| {
        Vocabulary::new(tokens, eos, width).err().unwrap()
    };
    assert_eq!(error(&all, &[], None), VocabularyError::NoEos);
    assert_eq!(error(&all, &end, None), VocabularyError::EosOutOfRange(TokenId(256), 256));
    assert_eq!(
        error(&all, &end, Some(255)),
        VocabularyError::TooNarrow { width: 255, tokens: 256 }
    );
    assert_eq!(error(&all, &end, Some(1 << 60)), VocabularyError::TooWide(1 << 60));
    assert_eq!(error(&[None], &[TokenId(0)], None), VocabularyError::NoText);
    // A lone end token leaves no text either: its own is not written.
    assert_eq!(error(&[Some(b"a")], &[TokenId(0)], None), VocabularyError::NoText);
    let mut holes = all.clone();
    holes[usize::from(b'"')] = None;
    holes[usize::from(b'x')] = Some(b"xx");
    // Bytes that UTF-8 never has may be missing.
    holes[0xFF] = None;
    let missing = error(&holes, &end, Some(300));
    assert_eq!(missing, VocabularyError::MissingBytes(vec![b'"', b'x']));
    assert!(missing.to_string().contains("0x22, 0x78"), "{missing}");
    let long = vec![b'a'; 1 << 23];
    let mut large = all;
    large.extend([Some(&long[..]), Some(&long[..])]);
    assert_eq!(error(&large, &[TokenId(299)], Some(300)), VocabularyError::TooLarge(258));
}

#[test]
fn the_toy_tokenizer_takes_the_longest_token() {
    let vocabulary = vocabulary_of(&["ab", "abc", "bcd"]);
    let texts = |text: &str| -> Vec<String> {
        encode_greedily(&vocabulary, text.as_bytes())
            .into_iter()
            .map(|token| String::from_utf8(vocabulary.text(token).to_vec()).unwrap())
            .collect()
    };
    assert_eq!(texts("abcd"), ["abc", "d"]);
    assert_eq!(texts("xabbcd"), ["x", "ab", "bcd"]);
}
