//! With a vocabulary as models have them, see [`realistic`].

use super::testing::*;
use super::*;
use crate::vocabulary::TokenId;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn reachable(table: &BpeTable) -> Vec<TokenId> {
    (0..table.width() as u32).map(TokenId).filter(|&token| table.is_reachable(token)).collect()
}

fn encode(table: &BpeTable, method: Method, text: &[u8]) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    table.encode_piece_by(method, text, &mut tokens);
    tokens
}

#[test]
fn pairs_and_rows_are_as_defined() {
    let spec = realistic();
    let definition = Definition::new(&spec);
    let table = BpeTable::new(spec).unwrap();
    let tokens = reachable(&table);
    let text = encode(&table, Method::Backtracking, &sources());
    let mut random = Random(4);
    let real = std::env::var_os("FFWD_TEST_RANKS").is_some();
    let mut refused = 0;
    for round in 0..if real { 200_000 } else { 20_000 } {
        // Tokens of a text stand side by side in more ways than random ones.
        let pick = |random: &mut Random, from: &[TokenId]| from[random.below(from.len())];
        let left = pick(&mut random, if round % 2 == 0 { &tokens } else { &text });
        let right = pick(&mut random, if round % 4 < 2 { &tokens } else { &text });
        let expected = definition.merge(&[table.text(left), table.text(right)].concat());
        assert_eq!(table.pair(left, right), expected == [left, right], "{left} {right}");
        refused += usize::from(!table.pair(left, right));
    }
    assert!(refused > 100);
    for _ in 0..20 {
        let left = tokens[random.below(tokens.len())];
        let mut row = table.forbidden_after(left).to_vec();
        row.sort_unstable();
        let forbidden = |&right: &TokenId| !table.pair(left, right);
        assert_eq!(row, tokens.iter().copied().filter(forbidden).collect::<Vec<_>>());
    }
}

#[test]
fn each_token_has_the_split_that_its_own_text_has() {
    let spec = realistic();
    let definition = Definition::new(&spec);
    let table = BpeTable::new(spec.clone()).unwrap();
    for (token, text) in &spec.pieces {
        assert_eq!(table.text(*token), &**text);
        assert_eq!(table.is_reachable(*token), definition.merge(text) == [*token], "{token}");
        if let Some((left, right)) = table.split(*token) {
            assert_eq!([table.text(left), table.text(right)].concat(), **text);
            assert!(!table.pair(left, right));
        }
    }
    assert_eq!(table.text(TokenId(u32::MAX)), b"");
    assert!(!table.is_reachable(TokenId(u32::MAX)));
    assert!(!table.pair(TokenId(u32::MAX), TokenId(0)));
    assert_eq!(table.split(TokenId(u32::MAX)), None);
    assert_eq!(table.forbidden_after(TokenId(u32::MAX)).len(), reachable(&table).len());
}

#[test]
fn texts_are_encoded_as_defined() {
    let spec = realistic();
    let definition = Definition::new(&spec);
    let table = BpeTable::new(spec).unwrap();
    let text = sources();
    for piece in text.chunks(150) {
        let expected = definition.encode(piece);
        for method in [Method::Backtracking, Method::Table, Method::Heap] {
            assert_eq!(encode(&table, method, piece), expected, "{method:?}");
        }
    }
    let whole = encode(&table, Method::Backtracking, &text);
    assert_eq!(encode(&table, Method::Table, &text), whole);
    assert_eq!(encode(&table, Method::Heap, &text), whole);
    assert!(encode(&table, Method::Minimal, &text).len() <= whole.len());
}

#[test]
fn long_texts_that_nothing_cuts_are_encoded() {
    let table = BpeTable::new(realistic()).unwrap();
    let mut random = Random(5);
    let noise: Vec<u8> = (0..50_000).map(|_| random.below(256) as u8).collect();
    let repeated = |unit: &str| unit.bytes().cycle().take(100_000).collect::<Vec<u8>>();
    let mut texts: Vec<Vec<u8>> = ["a", " ", "\n", "ab", "=", "    pub fn "].map(repeated).into();
    texts.push([&texts[1][..], b"a"].concat());
    texts.push(noise);
    for text in &texts {
        let tokens = encode(&table, Method::Backtracking, text);
        assert_eq!(encode(&table, Method::Heap, text), tokens);
        assert_eq!(encode(&table, Method::Table, text), tokens);
        let mut appender = PieceAppender::new();
        appender.extend(&table, text);
        assert_eq!(appender.count(&table), tokens.len());
        let mut prepender = PiecePrepender::new();
        prepender.extend(&table, text);
        assert_eq!(prepender.count(), tokens.len());
    }
}

#[test]
fn intervals_of_a_text_are_counted() {
    let table = BpeTable::new(realistic()).unwrap();
    let text = sources();
    let intervals = PieceIntervals::new(&table, &text);
    assert_eq!(intervals.text(), text);
    let mut random = Random(6);
    for _ in 0..2_000 {
        let start = random.below(text.len());
        let end = start + random.below(text.len() - start + 1).min(3_000);
        let expected = table.count_piece(&text[start..end]);
        assert_eq!(intervals.count(&table, start..end), expected, "{start}..{end}");
    }
    // Ranges outside of the text, and ranges that end before they begin, have no tokens.
    let (beyond, end) = (text.len() + 5, text.len());
    assert_eq!(intervals.count(&table, 0..beyond), intervals.count(&table, 0..end));
    assert_eq!(intervals.count(&table, beyond..beyond), 0);
    assert_eq!(intervals.count(&table, std::ops::Range { start: 9, end: 3 }), 0);
}
