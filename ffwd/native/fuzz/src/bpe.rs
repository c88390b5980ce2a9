//! Byte-pair encodings: the fast encoders against merging by definition, and texts in progress
//! against counting anew.

use std::collections::HashMap;
use std::sync::Arc;

use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges, Method};
use ffwd_tokenizer::pretokenizer::{Behavior, Dialect, StageSpec};
use ffwd_tokenizer::tokenizer::{
    AppendEncoder, DummySpace, EncodeOptions, IntervalCounter, Normalizer, PartOptions,
    PrependEncoder, Scope, SpecialPolicy, SpecialToken, Tokenizer, TokenizerParts,
};
use ffwd_tokenizer::vocabulary::TokenId;

use crate::driver::Driver;

pub fn run(data: &[u8]) {
    let mut driver = Driver::new(data);
    let spec = match driver.below(3) {
        0 => ranked(&mut driver),
        1 => listed(&mut driver),
        _ => of_characters(&mut driver),
    };
    let table = match BpeTable::new(spec.clone()) {
        Ok(table) => Arc::new(table),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let text = text(&mut driver);
    let mut fast = Vec::new();
    table.encode_piece(&text, &mut fast);
    assert_eq!(fast, by_definition(&spec, &text), "{spec:?} {text:?}");
    for method in [Method::Backtracking, Method::Table, Method::Heap] {
        let mut tokens = Vec::new();
        if !text.is_empty() {
            table.encode_piece_by(method, &text, &mut tokens);
        }
        assert_eq!(tokens, fast, "{method:?} {spec:?} {text:?}");
    }
    assert_eq!(table.count_piece(&text), fast.len());
    if !spec.whole_pieces {
        for pair in fast.windows(2) {
            assert!(table.pair(pair[0], pair[1]), "{pair:?} stand side by side in {text:?}");
        }
    }
    tokenizer(table, &text, &mut driver);
}

/// Tokens of a few letters, some of which spell what others begin with.
fn word(driver: &mut Driver<'_>, parts: &[&'static [u8]]) -> Vec<u8> {
    let length = 2 + driver.below(4);
    (0..length).flat_map(|_| driver.pick(parts).to_vec()).collect()
}

const LETTERS: [&[u8]; 6] = [b"a", b"b", b"c", b" ", b"\xC3", b"\xA9"];
const CHARACTERS: [&[u8]; 6] = ["a".as_bytes(), b"b", b" ", "é".as_bytes(), "€".as_bytes(), b"c"];
const TEXTS: [&[u8]; 12] = [
    b"a",
    b"b",
    b"c",
    b" ",
    b"aa",
    b"ab",
    b"\xC3\xA9",
    b"\xE2\x82\xAC",
    b"\xF0\x9F\x98\x80",
    b"\xC3",
    b"\xA9",
    b"1",
];

fn text(driver: &mut Driver<'_>) -> Vec<u8> {
    let length = driver.below(40);
    (0..length).flat_map(|_| driver.pick(&TEXTS).to_vec()).collect()
}

fn of_bytes() -> BpeSpec {
    let pieces = (0..=255u8).map(|byte| (TokenId(u32::from(byte)), Box::from([byte]))).collect();
    BpeSpec {
        base: Base::Bytes,
        pieces,
        byte_tokens: std::array::from_fn(|byte| Some(TokenId(byte as u32))),
        merges: Merges::Listed(Vec::new()),
        whole_pieces: false,
        missing_from: None,
    }
}

fn ranked(driver: &mut Driver<'_>) -> BpeSpec {
    let mut spec = of_bytes();
    let mut words: Vec<Vec<u8>> = Vec::new();
    for _ in 0..driver.below(16) {
        let word = word(driver, &LETTERS);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let words = words.into_iter().map(Vec::into_boxed_slice);
    spec.pieces.extend((256..).map(TokenId).zip(words));
    spec.merges = Merges::Ranked(spec.pieces.iter().map(|(token, _)| *token).collect());
    spec.whole_pieces = driver.flag();
    spec
}

fn listed(driver: &mut Driver<'_>) -> BpeSpec {
    let mut spec = of_bytes();
    let share = driver.flag();
    let mut usable: Vec<TokenId> = b"abc \xC3\xA9".map(|byte| TokenId(u32::from(byte))).to_vec();
    let mut merges: Vec<(TokenId, TokenId, TokenId)> = Vec::new();
    for _ in 0..driver.below(16) {
        let (left, right) = (*driver.pick(&usable), *driver.pick(&usable));
        let text = [&*spec.pieces[left.index()].1, &*spec.pieces[right.index()].1].concat();
        if text.len() > 12 {
            continue;
        }
        let same = spec.pieces.iter().find(|(_, piece)| share && **piece == text[..]);
        let merged = same.map_or(TokenId(spec.pieces.len() as u32), |(token, _)| *token);
        if same.is_none() {
            spec.pieces.push((merged, text.into()));
            usable.push(merged);
        }
        merges.push((left, right, merged));
    }
    if driver.flag() && !merges.is_empty() {
        let turn = driver.below(merges.len());
        merges.rotate_left(turn);
    }
    spec.merges = Merges::Listed(merges);
    spec.whole_pieces = driver.flag();
    spec
}

fn of_characters(driver: &mut Driver<'_>) -> BpeSpec {
    let mut texts: Vec<Vec<u8>> =
        ["a", "b", "é", "€", " "].map(|text| text.as_bytes().to_vec()).to_vec();
    for _ in 0..driver.below(16) {
        let word = word(driver, &CHARACTERS);
        if !texts.contains(&word) {
            texts.push(word);
        }
    }
    let texts = texts.into_iter().map(Vec::into_boxed_slice);
    let pieces: Vec<(TokenId, Box<[u8]>)> = (256..).map(TokenId).zip(texts).collect();
    BpeSpec {
        base: Base::Characters,
        merges: Merges::Ranked(pieces.iter().map(|(token, _)| *token).collect()),
        pieces,
        whole_pieces: driver.flag(),
        ..of_bytes()
    }
}

/// A symbol in the making, with what it spells; a byte that is part of no piece spells nothing, for
/// it never merges.
type Symbol = (TokenId, Option<Vec<u8>>);

/// Of all pairs that merge the most urgent one does, the leftmost of several, until none does.
fn by_definition(spec: &BpeSpec, text: &[u8]) -> Vec<TokenId> {
    let texts: HashMap<TokenId, &[u8]> =
        spec.pieces.iter().map(|(token, text)| (*token, &**text)).collect();
    let mut by_text: HashMap<Vec<u8>, (usize, TokenId)> = HashMap::new();
    let mut by_pair: HashMap<(TokenId, TokenId), (usize, TokenId)> = HashMap::new();
    match &spec.merges {
        Merges::Ranked(tokens) => {
            for (rank, token) in tokens.iter().enumerate() {
                by_text.entry(texts[token].to_vec()).or_insert((rank, *token));
            }
        }
        Merges::Listed(merges) => {
            for (rank, &(left, right, merged)) in merges.iter().enumerate() {
                by_pair.insert((left, right), (rank, merged));
            }
        }
    }
    let mut symbols = base(spec, text);
    loop {
        let found = symbols.windows(2).enumerate().filter_map(|(at, pair)| {
            let (left, right) = (pair[0].1.as_ref()?, pair[1].1.as_ref()?);
            let merge = match spec.merges {
                Merges::Ranked(_) => by_text.get(&[&left[..], right].concat()),
                Merges::Listed(_) => by_pair.get(&(pair[0].0, pair[1].0)),
            };
            merge.map(|&(rank, token)| (rank, at, token))
        });
        let Some((_, at, token)) = found.min() else { break };
        symbols[at] = (token, Some(texts[&token].to_vec()));
        symbols.remove(at + 1);
    }
    let merged: Vec<TokenId> = symbols.into_iter().map(|(token, _)| token).collect();
    if spec.whole_pieces && merged.len() != 1 {
        // Where several tokens spell the same, the one that merges lead to, or else the first.
        let ranked = by_text.get(text).map(|&(_, token)| token);
        let given = spec.pieces.iter().find(|(_, piece)| **piece == *text);
        if let Some(token) = ranked.or(given.map(|(token, _)| *token)) {
            return vec![token];
        }
    }
    merged
}

fn base(spec: &BpeSpec, text: &[u8]) -> Vec<Symbol> {
    let token = |byte: u8| spec.byte_tokens[usize::from(byte)].expect("every byte has a token");
    if spec.base == Base::Bytes {
        return text.iter().map(|&byte| (token(byte), Some(vec![byte]))).collect();
    }
    let mut symbols = Vec::new();
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            let character = character.to_string().into_bytes();
            match spec.pieces.iter().find(|(_, piece)| **piece == character[..]) {
                Some((piece, _)) => symbols.push((*piece, Some(character))),
                None => symbols.extend(character.iter().map(|&byte| (token(byte), None))),
            }
        }
        symbols.extend(chunk.invalid().iter().map(|&byte| (token(byte), None)));
    }
    symbols
}

/// All ways to encode and to count agree, and the tokens spell the text.
fn tokenizer(table: Arc<BpeTable>, text: &[u8], driver: &mut Driver<'_>) {
    let Some(tokenizer) = build(table, driver) else { return };
    let tokenizer = Arc::new(tokenizer);
    let special = match driver.below(3) {
        0 => SpecialPolicy::Allowed,
        1 => SpecialPolicy::Forbidden,
        _ => SpecialPolicy::Text,
    };
    let part = PartOptions {
        pretokenize: !driver.once_in(4),
        normalize: driver.flag(),
        dummy_space: driver.flag(),
    };
    let options = EncodeOptions { special, part, ..EncodeOptions::default() };
    let Ok(tokens) = tokenizer.encode(text, &options) else { return };
    for method in [Method::Table, Method::Heap] {
        let options = EncodeOptions { method, ..options.clone() };
        assert_eq!(tokenizer.encode(text, &options).as_ref(), Ok(&tokens), "{method:?}");
    }
    assert_eq!(tokenizer.count(text, &options), Ok(tokens.len()));
    let most = driver.below(12);
    let within = (tokens.len() <= most).then_some(tokens.len());
    assert_eq!(tokenizer.count_up_to(text, most, &options), Ok(within));
    // Tokens that are found may take the spaces beside them with them.
    let found = options.special != SpecialPolicy::Text || tokenizer.specials().any_text();
    if !part.normalize && !part.dummy_space && !found {
        assert_eq!(tokenizer.decode(&tokens).as_deref(), Ok(text));
    }
    in_progress(&tokenizer, text, part, driver);
}

fn build(table: Arc<BpeTable>, driver: &mut Driver<'_>) -> Option<Tokenizer> {
    const PATTERNS: [&str; 6] = [
        r"\s+|[^\s]+",
        r"[ab]|[^ab]+",
        r"\p{L}+|[^\p{L}]",
        r" ?[a-z]+| ?\d+|[^\sa-z\d]+|\s+(?!\S)|\s+",
        r"a+b?|[\s\S]",
        r".{1,3}|\s",
    ];
    let split = |driver: &mut Driver<'_>| StageSpec::Split {
        pattern: (*driver.pick(&PATTERNS)).to_owned(),
        dialect: Dialect::FancyRegex,
        invert: false,
        behavior: *driver.pick(&[
            Behavior::Isolated,
            Behavior::MergedWithPrevious,
            Behavior::MergedWithNext,
            Behavior::Contiguous,
        ]),
    };
    let stages = match driver.below(5) {
        0 => vec![split(driver)],
        1 => vec![StageSpec::Digits { individual: driver.flag() }, split(driver)],
        2 => vec![StageSpec::ByteLevelRegex],
        3 => vec![StageSpec::Metaspace],
        _ => Vec::new(),
    };
    let next = table.width() as u32;
    let mut specials = Vec::new();
    if driver.flag() {
        let mut special = SpecialToken::plain(TokenId(next), "ab");
        special.lstrip = driver.flag();
        special.rstrip = driver.flag();
        special.single_word = driver.once_in(3);
        special.normalized = driver.once_in(3);
        special.text = driver.once_in(4);
        specials.push(special);
    }
    let scopes = [None, Some(Scope::Text), Some(Scope::First), Some(Scope::Every)];
    let dummy_space =
        driver.pick(&scopes).map(|scope| DummySpace { scope, before_space: driver.flag() });
    let normalizer = Normalizer { compose: driver.once_in(4), replaced: Vec::new() };
    let parts = TokenizerParts {
        table,
        stages,
        specials,
        normalizer,
        dummy_space,
        limits: Vec::new(),
        vocab_size: None,
    };
    match Tokenizer::new(parts) {
        Ok(tokenizer) => Some(tokenizer),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// A text that grows at its end or its beginning, and stretches of one.
fn in_progress(
    tokenizer: &Arc<Tokenizer>,
    text: &[u8],
    part: PartOptions,
    driver: &mut Driver<'_>,
) {
    if std::str::from_utf8(text).is_err() {
        return;
    }
    let options = EncodeOptions { part, ..EncodeOptions::default() };
    let count = |text: &[u8]| tokenizer.count(text, &options);
    if let Ok(mut encoder) = AppendEncoder::new(tokenizer.clone(), part) {
        let cut = driver.below(text.len() + 1);
        if encoder.push(&text[..cut]).is_ok() {
            let complete = encoder.complete();
            assert_eq!(Ok(encoder.count()), count(&text[..complete]));
            if encoder.push(&text[cut..]).is_ok() {
                assert_eq!(Ok(encoder.count()), count(text));
                encoder.truncate(complete);
                assert_eq!(Ok(encoder.count()), count(&text[..complete]));
            }
        }
    }
    if let Ok(mut encoder) = PrependEncoder::new(tokenizer.clone(), part) {
        let cut = driver.below(text.len() + 1);
        if encoder.push(&text[cut..]).is_ok() {
            let whole = &text[text.len() - encoder.complete()..];
            assert_eq!(encoder.count(), count(whole));
            if encoder.push(&text[..cut]).is_ok() {
                assert_eq!(encoder.count(), count(text));
            }
        }
    }
    if let Ok(counter) = IntervalCounter::new(tokenizer.clone(), text, part) {
        let (start, end) = (driver.below(text.len() + 1), driver.below(text.len() + 1));
        if let Ok(found) = counter.count(start..end) {
            // One that begins or ends within a character is no text by itself.
            let anew = count(&text[start..end]);
            if std::str::from_utf8(&text[start..end]).is_ok() {
                assert_eq!(Ok(found), anew, "{start}..{end} of {text:?}");
            }
        }
    }
    let most = 1 + driver.below(6);
    let count = |text: &[u8]| tokenizer.count(text, &EncodeOptions { part, ..options.clone() });
    if let Ok(end) = tokenizer.split_at(text, most, &part) {
        assert!(end <= text.len() && (end > 0 || text.is_empty()));
        let first = text.iter().skip(1).position(|byte| byte & 0xC0 != 0x80).map(|at| at + 1);
        let is_first = end == first.unwrap_or(text.len());
        assert!(is_first || count(&text[..end]).is_ok_and(|count| count <= most));
    }
}
