//! Items that came, and keys that came, against plain sets of texts.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::json::history::Histories;
use crate::json::pointer::{is_apart, Further, Pointer};
use crate::json::used_keys::{UsedId, UsedKeys};
use ffwd_json_schema::{SchemaOptions, SchemaSet};
use ffwd_regular::regex::Decimal;

fn any_schema() -> SchemaSet {
    SchemaSet::parse("true", SchemaOptions::new(|_| Ok((false, 0)))).unwrap()
}

/// The set of some items.
fn history(set: &SchemaSet, histories: &Histories, items: &[&str]) -> UsedId {
    let add =
        |history, item: &&str| histories.with(set, history, item.as_bytes()).unwrap().unwrap();
    items.iter().fold(UsedId::EMPTY, add)
}

/// Numbers of few digits.
fn numbers(length: usize) -> Vec<String> {
    let mut texts = vec![String::new()];
    for _ in 0..length {
        let longer =
            texts.iter().flat_map(|text| ["-", ".", "0", "1", "2"].map(|c| format!("{text}{c}")));
        texts.extend(longer.collect::<Vec<_>>());
        texts.sort_unstable();
        texts.dedup();
    }
    texts.retain(|text| Decimal::parse(text).is_ok());
    texts
}

#[test]
fn numbers_are_used_if_they_are_equal() {
    let (set, histories) = (any_schema(), Histories::new().unwrap());
    let items = ["1", "0", "-2", "12", "1.2", "0.01"];
    let all = history(&set, &histories, &items);
    let values: Vec<Decimal> = items.iter().map(|item| Decimal::parse(item).unwrap()).collect();
    for text in numbers(5) {
        let number = Decimal::parse(&text).unwrap();
        let pointer = Pointer::new(&histories, all, text.as_bytes()).unwrap();
        assert_eq!(pointer.is_used(&histories), values.contains(&number), "{text}");
    }
}

/// A beginning that is apart from all items becomes none of them; any other beginning can.
#[test]
fn beginnings_of_numbers_are_apart_if_no_item_goes_on_so() {
    let (set, histories) = (any_schema(), Histories::new().unwrap());
    let items = ["1", "0", "-2", "12", "1.2", "0.01"];
    let all = history(&set, &histories, &items);
    let values: Vec<Decimal> = items.iter().map(|item| Decimal::parse(item).unwrap()).collect();
    let mut leading: BTreeSet<String> = BTreeSet::new();
    let mut beginnings: BTreeSet<String> = BTreeSet::new();
    for text in numbers(7) {
        let is_item = values.contains(&Decimal::parse(&text).unwrap());
        for end in 1..=text.len().min(3) {
            beginnings.insert(text[..end].to_owned());
            if is_item {
                leading.insert(text[..end].to_owned());
            }
        }
    }
    assert!(beginnings.len() > 50);
    for text in &beginnings {
        let apart = is_apart(&histories, all, text.as_bytes());
        assert_eq!(apart, !leading.contains(text), "{text}");
    }
}

#[test]
fn numbers_share_digits_if_an_exponent_makes_them_equal() {
    let (set, histories) = (any_schema(), Histories::new().unwrap());
    for items in [&["1", "0", "-2", "12", "1.2", "0.01"][..], &["1200", "-0.021", "20.01"], &[]] {
        let all = history(&set, &histories, items);
        let values: BTreeSet<Decimal> =
            items.iter().map(|item| Decimal::parse(item).unwrap()).collect();
        let mut shared = 0;
        for text in numbers(5) {
            let equals = |exponent: i32| {
                values.contains(&Decimal::parse(&format!("{text}e{exponent}")).unwrap())
            };
            let expected = (-9..=9).any(equals);
            shared += usize::from(expected);
            assert_eq!(histories.share_digits(all, text.as_bytes()), expected, "{text} {items:?}");
        }
        assert_eq!(shared > 20, !items.is_empty());
    }
}

#[test]
fn strings_are_compared_byte_by_byte() {
    let (set, histories) = (any_schema(), Histories::new().unwrap());
    let all = history(&set, &histories, &[r#""ab""#, r#""a""#, "null", "true"]);
    let after = |text: &str| {
        let (first, rest) = text.as_bytes().split_first().unwrap();
        let mut at = Pointer::new(&histories, all, &[*first])?;
        for &byte in rest {
            match at.next(&histories, byte) {
                Further::Apart | Further::Exponents(_) => return None,
                Further::At(next) => at = next,
            }
        }
        Some(at.is_used(&histories))
    };
    for used in [r#""ab""#, r#""a""#, "null", "true"] {
        assert_eq!(after(used), Some(true), "{used}");
    }
    for begun in [r#"""#, r#""a"#, r#""ab"#, "n", "nul", "t"] {
        assert_eq!(after(begun), Some(false), "{begun}");
    }
    for apart in [r#""b"#, r#""abc"#, r#""""#, "f", "na"] {
        assert_eq!(after(apart), None, "{apart}");
    }
}

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { failure_persistence: None, rng_seed, cases: 200, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    /// The trie of keys that came against the set of them.
    #[test]
    fn keys_that_came_are_a_set(
        keys in prop::collection::vec(prop::collection::vec(0..3u8, 0..5), 0..12),
    ) {
        let used = UsedKeys::new().unwrap();
        let mut set = UsedId::EMPTY;
        let mut expected: BTreeSet<Vec<u8>> = BTreeSet::new();
        for key in &keys {
            set = used.with(set, key).unwrap();
            expected.insert(key.clone());
            prop_assert_eq!(used.count(set) as usize, expected.len());
        }
        // Whatever their order, and however often.
        let again = keys.iter().rev().chain(&keys);
        let again = again.fold(UsedId::EMPTY, |set, key| used.with(set, key).unwrap());
        prop_assert_eq!(again, set);
        let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
        let mut pending = vec![(set, Vec::new())];
        while let Some((node, path)) = pending.pop() {
            if used.ends(node) {
                found.insert(path.clone());
            }
            for &(byte, child) in used.children(node) {
                prop_assert_eq!(used.child(node, byte), Some(child));
                pending.push((child, [&path[..], &[byte]].concat()));
            }
        }
        prop_assert_eq!(found, expected);
    }
}
