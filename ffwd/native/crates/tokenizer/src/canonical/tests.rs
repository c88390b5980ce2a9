//! Contexts, forced tokens and masks against encoding whole texts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::RngExt;
use proptest::test_runner::TestRng;

use super::*;
use crate::bpe::testing::{of_characters, train};
use crate::bpe::{BpeSpec, BpeTable};
use crate::pretokenizer::{Behavior, Dialect, StageSpec};
use crate::tokenizer::{Normalizer, Tokenizer, TokenizerParts};
use crate::vocabulary::testing::seeded;
use crate::vocabulary::{TokenId, Vocabulary};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const ALPHABET: [&str; 14] =
    ["a", "b", "ab", " ", " ", "\n", "\t", "1", "'", "s", "\"", ":", "é", "{"];

fn random_text(rng: &mut TestRng, most: usize) -> String {
    (0..rng.random_range(0..=most)).map(|_| ALPHABET[rng.random_range(0..ALPHABET.len())]).collect()
}

fn tokenizer(spec: BpeSpec, patterns: &[&str]) -> Arc<Tokenizer> {
    let stages: Vec<StageSpec> = patterns
        .iter()
        .map(|pattern| StageSpec::Split {
            pattern: (*pattern).into(),
            dialect: Dialect::FancyRegex,
            invert: false,
            behavior: Behavior::Isolated,
        })
        .collect();
    let parts = TokenizerParts {
        table: Arc::new(BpeTable::new(spec).unwrap()),
        stages,
        specials: Vec::new(),
        normalizer: Normalizer::default(),
        dummy_space: None,
        limits: Vec::new(),
        vocab_size: None,
    };
    Arc::new(Tokenizer::new(parts).unwrap())
}

/// A small tokenizer trained on random text, some of its tokens for whole pieces only.
fn trained(seed: u8, patterns: &[&str]) -> Arc<Tokenizer> {
    let mut rng = seeded(seed);
    let text = random_text(&mut rng, 3000);
    let mut spec = train(text.as_bytes(), 60);
    if seed.is_multiple_of(2) {
        spec.whole_pieces = true;
        for text in ["ba", "1111", "ssa", " b'", "\n\n\n"] {
            let token = TokenId(spec.pieces.len() as u32);
            if spec.pieces.iter().all(|(_, known)| **known != *text.as_bytes()) {
                spec.pieces.push((token, text.as_bytes().into()));
            }
        }
    }
    tokenizer(spec, patterns)
}

fn tokenizers() -> Vec<(String, Arc<Tokenizer>)> {
    let pieces: [&[&str]; 5] = [
        &[],
        &[GPT2],
        &[LLAMA3],
        &[r"\p{N}{1,3}", "[a-z]+", LLAMA3],
        &[r"\s+(?!\S)|\S+|\s+", "'|s+"],
    ];
    let mut found = Vec::new();
    for (at, patterns) in pieces.into_iter().enumerate() {
        for seed in 0..4 {
            found.push((format!("{at}/{seed}"), trained(seed + 10 * at as u8, patterns)));
        }
    }
    let characters =
        of_characters("abs1 :\"é\u{2000}", &["ab", "aab", " a", "\":", "éa", "  ", "s1"]);
    found.push(("characters".into(), tokenizer(characters.clone(), &[])));
    found.push(("characters in pieces".into(), tokenizer(characters, &[GPT2])));
    found
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    tokenizer.encode_part(text.as_bytes(), &mut tokens);
    tokens
}

fn spell(tokenizer: &Tokenizer, tokens: &[TokenId]) -> Vec<u8> {
    tokens.iter().flat_map(|&token| tokenizer.table().text(token).to_vec()).collect()
}

fn vocabulary_for(tokenizer: &Tokenizer) -> Arc<Vocabulary> {
    let table = tokenizer.table();
    let mut texts: Vec<Option<&[u8]>> = (0..table.width() as u32)
        .map(|id| Some(table.text(TokenId(id))).filter(|text| !text.is_empty()))
        .collect();
    texts.push(None);
    let end = TokenId(texts.len() as u32 - 1);
    Arc::new(Vocabulary::new(&texts, &[end], None).unwrap())
}

/// Some text goes on from `tokens` so that it is encoded with them at its beginning.
fn is_prefix_by_trying(tokenizer: &Tokenizer, tokens: &[TokenId], rng: &mut TestRng) -> bool {
    let spelled = spell(tokenizer, tokens);
    let tails: Vec<Vec<u8>> = std::iter::once(Vec::new())
        .chain((0..160).map(|_| random_text(rng, 4).into_bytes()))
        // The rest of a character.
        .chain([vec![0xA9], vec![0xA9, b'a'], vec![0xA9, b' ']])
        .collect();
    tails.iter().any(|tail| {
        let text = [&spelled[..], tail].concat();
        match std::str::from_utf8(&text) {
            Ok(text) => encode(tokenizer, text).starts_with(tokens),
            Err(_) => false,
        }
    })
}

#[test]
fn no_tokenization_is_refused() {
    for (name, tokenizer) in tokenizers() {
        let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
        let mut rng = seeded(1);
        for _ in 0..400 {
            let text = random_text(&mut rng, 24);
            let tokens = encode(&tokenizer, &text);
            let first = canonicality.first_noncanonical(&tokens);
            assert_eq!(first, None, "{name}: {text:?} {tokens:?}");
            assert!(canonicality.is_canonical(&tokens), "{name}: {text:?} {tokens:?}");
        }
    }
}

#[test]
fn closed_and_open_decisions_are_those_of_encoding() {
    let mut counts = [0; 4];
    for (name, tokenizer) in tokenizers() {
        let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
        let mut rng = seeded(2);
        let width = tokenizer.table().width() as u32;
        for _ in 0..300 {
            let mut tokens = encode(&tokenizer, &random_text(&mut rng, 8));
            tokens.truncate(rng.random_range(0..6));
            for _ in 0..rng.random_range(0..3) {
                // Mostly tokens of several bytes, which are where it matters.
                let from = if rng.random_range(0..4) == 0 { 0 } else { 256.min(width - 1) };
                tokens.push(TokenId(rng.random_range(from..width)));
            }
            let spelled = spell(&tokenizer, &tokens);
            if let Ok(text) = std::str::from_utf8(&spelled) {
                let closed = encode(&tokenizer, text) == tokens;
                assert_eq!(
                    canonicality.is_canonical(&tokens),
                    closed,
                    "{name}: {text:?} {tokens:?}"
                );
                counts[usize::from(closed)] += 1;
            }
            let open = canonicality.first_noncanonical(&tokens).is_none();
            let tried = is_prefix_by_trying(&tokenizer, &tokens, &mut rng);
            assert!(open || !tried, "{name}: refused {tokens:?} of {spelled:?}");
            if open && !tried {
                counts[3] += 1;
            }
            counts[2] += 1;
        }
    }
    assert!(counts[0] > 500 && counts[1] > 500, "{counts:?}");
    // What trying does not find may still exist, but not often.
    assert!(counts[3] * 50 < counts[2], "{counts:?}");
}

/// The beginnings of finitely many texts.
struct Texts(Vec<Vec<u8>>);

impl Language for Texts {
    type State = Vec<u8>;
    type Error = std::convert::Infallible;

    fn step(&self, state: &Vec<u8>, byte: u8) -> Result<Option<Vec<u8>>, Self::Error> {
        let mut next = state.clone();
        next.push(byte);
        Ok(self.0.iter().any(|text| text.starts_with(&next)).then_some(next))
    }

    fn goes_on_within(&self, state: &Vec<u8>, byte: u8) -> Result<bool, Self::Error> {
        self.may_come(state, byte)
    }

    fn may_end(&self, state: &Vec<u8>) -> Result<bool, Self::Error> {
        Ok(self.0.contains(state))
    }
}

fn common<T: PartialEq + Clone>(sequences: &[Vec<T>]) -> Vec<T> {
    let mut common = sequences[0].clone();
    for other in sequences {
        let same = common.iter().zip(other).take_while(|(one, other)| one == other).count();
        common.truncate(same);
    }
    common
}

#[test]
fn forced_tokens_are_what_all_texts_begin_with() {
    let mut counts = [0; 3];
    for (name, tokenizer) in tokenizers() {
        let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
        let vocabulary = vocabulary_for(&tokenizer);
        let has = |token: TokenId| !vocabulary.text(token).is_empty();
        let choice = Choice { trie: vocabulary.trie(), has: &has };
        let mut rng = seeded(3);
        for _ in 0..200 {
            let stem = random_text(&mut rng, 10);
            let texts: BTreeSet<String> = (0..rng.random_range(1..5))
                .map(|_| stem.clone() + &random_text(&mut rng, 5))
                .collect();
            let encoded: Vec<Vec<TokenId>> =
                texts.iter().map(|text| encode(&tokenizer, text)).collect();
            let truth = common(&encoded);
            let language = Texts(texts.iter().map(|text| text.clone().into_bytes()).collect());
            let forced = common(&language.0);
            // From the start, and from within what is common.
            let taken = rng.random_range(0..=truth.len());
            let spelled = spell(&tokenizer, &truth[..taken]).len();
            let after = canonicality.after(&truth[..taken]);
            for look_ahead in [false, true] {
                let Ok(found) = canonicality.forced(
                    choice,
                    &after,
                    forced.get(spelled..).unwrap_or_default(),
                    &language,
                    &forced[..].to_vec(),
                    ForcedOptions { look_ahead },
                );
                if spelled > forced.len() {
                    continue;
                }
                let found = found.unwrap();
                assert!(
                    truth[taken..].starts_with(&found),
                    "{name}: {texts:?} after {taken}: {found:?} of {truth:?}"
                );
                counts[usize::from(look_ahead)] += found.len();
                counts[2] += truth.len() - taken;
            }
        }
    }
    // Nearly all is found; what is not is ruled out by what comes after the next token only.
    let total = counts[2] / 2;
    assert!(counts[0] * 100 > total * 80, "{counts:?}");
    assert!(counts[1] * 100 > total * 90 && counts[1] >= counts[0], "{counts:?}");
}

#[test]
fn masks_are_the_tokens_that_can_follow() {
    for (name, tokenizer) in tokenizers() {
        let canonicality = Arc::new(Canonicality::new(tokenizer.clone()).unwrap());
        let vocabulary = vocabulary_for(&tokenizer);
        let masks = CanonicalMasks::new(canonicality.clone(), vocabulary.clone());
        let mut rng = seeded(4);
        for _ in 0..40 {
            let tokens = encode(&tokenizer, &random_text(&mut rng, 12));
            let at = rng.random_range(0..=tokens.len());
            let context = canonicality.after(&tokens[..at]);
            let width = vocabulary.width() as u32;
            let wanted: Vec<TokenId> = (0..width)
                .map(TokenId)
                .filter(|&token| {
                    if vocabulary.is_eos(token) {
                        canonicality.can_end(&context)
                    } else {
                        canonicality.step(&context, token).is_some()
                    }
                })
                .collect();
            for keep in [1, 9] {
                let mut mask = vec![0u32; vocabulary.mask_words()];
                let mut expected = mask.clone();
                for token in (0..width).map(TokenId) {
                    if rng.random_range(0..keep) == 0 {
                        mask[token.index() / 32] |= 1 << (token.0 % 32);
                        if wanted.contains(&token) {
                            expected[token.index() / 32] |= 1 << (token.0 % 32);
                        }
                    }
                }
                match masks.restrict(&context, &mut mask) {
                    Restricted::Canonical => assert_eq!(mask, expected, "{name}"),
                    Restricted::NothingLeft => {
                        assert_eq!(expected, vec![0; mask.len()], "{name}");
                        assert_eq!(mask, expected);
                    }
                    Restricted::Lost => panic!("{name}: nothing was lost"),
                }
            }
        }
        assert!(masks.memory_bytes() < 4 << 20);
    }
}

#[test]
fn the_trail_is_the_same_however_it_was_walked() {
    let mut rng = seeded(6);
    for (name, tokenizer) in tokenizers() {
        let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
        let width = tokenizer.table().width() as u32;
        let mut trail = Trail::new(canonicality.start());
        let mut tokens: Vec<TokenId> = Vec::new();
        for step in 0..80 {
            if rng.random_range(0..3) == 0 {
                // A few, and sometimes many.
                let most = if step % 8 == 0 { tokens.len() } else { tokens.len().min(40) };
                tokens.truncate(tokens.len() - rng.random_range(0..=most));
                trail.shorten(tokens.len());
            } else {
                for _ in 0..rng.random_range(0..160) {
                    tokens.push(TokenId(rng.random_range(0..width)));
                }
            }
            assert_eq!(*trail.after(&canonicality, &tokens), canonicality.after(&tokens), "{name}");
            let mut anew = Trail::new(canonicality.start());
            anew.after(&canonicality, &tokens);
            assert_eq!(trail.strays(), anew.strays(), "{name}");
        }
        assert!(trail.strays() <= tokens.len());
    }
}

#[test]
fn partial_tokenization_and_healing_hold_however_the_text_goes_on() {
    let mut rng = seeded(7);
    for (name, tokenizer) in tokenizers() {
        let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
        let vocabulary = vocabulary_for(&tokenizer);
        let has = |token: TokenId| !vocabulary.text(token).is_empty();
        let choice = Choice { trie: vocabulary.trie(), has: &has };
        for _ in 0..60 {
            let text = random_text(&mut rng, 16);
            let whole = encode(&tokenizer, &text);
            let partial = canonicality.tokenize_partial(choice, &[], text.as_bytes());
            assert_eq!(spell(&tokenizer, &partial.tokens).len(), partial.bytes);
            let healed = canonicality.heal(choice, &whole, whole.len());
            assert_eq!(whole[..healed.kept], partial.tokens, "{name}: {text:?}");
            assert_eq!(healed.cut, text.as_bytes()[partial.bytes..]);
            for _ in 0..20 {
                let longer = encode(&tokenizer, &(text.clone() + &random_text(&mut rng, 5)));
                assert!(longer.starts_with(&partial.tokens), "{name}: {text:?}");
            }
            assert!(canonicality.heal(choice, &whole, 1).kept + 1 >= whole.len());
        }
    }
}

#[test]
fn contexts_by_number_are_those_that_are_followed() {
    for (name, tokenizer) in tokenizers() {
        let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
        let known = KnownContexts::default();
        let mut rng = seeded(42);
        let width = tokenizer.table().width() as u32;
        for _ in 0..200 {
            let mut context = canonicality.start();
            let mut id = known.id(&context).unwrap();
            let mut tokens = encode(&tokenizer, &random_text(&mut rng, 12));
            if rng.random_range(0..2) == 0 {
                tokens.insert(tokens.len() / 2, TokenId(rng.random_range(0..width)));
            }
            for token in tokens {
                context = canonicality.follow(&context, token).0;
                id = known.after(&canonicality, id, token).unwrap();
                assert_eq!(known.context(id).as_ref(), Some(&context), "{name}");
                assert_eq!(known.id(&context), Some(id), "{name}");
            }
        }
    }
}

impl Completed for Texts {
    fn completion(&self, state: &Vec<u8>) -> Result<Option<Vec<u8>>, Self::Error> {
        let ends = self.0.iter().filter_map(|text| text.strip_prefix(&state[..]));
        Ok(ends.min_by_key(|end| end.len()).map(<[u8]>::to_vec))
    }
}

/// One text of many `a`, whose end no search reaches.
struct Long;

impl Language for Long {
    type State = usize;
    type Error = std::convert::Infallible;

    fn step(&self, &length: &usize, byte: u8) -> Result<Option<usize>, Self::Error> {
        Ok((byte == b'a' && length < 5000).then_some(length + 1))
    }

    fn may_end(&self, &length: &usize) -> Result<bool, Self::Error> {
        Ok(length == 5000)
    }
}

impl Completed for Long {
    fn completion(&self, _: &usize) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(None)
    }
}

#[test]
fn an_undecided_token_is_not_dead() {
    let tokenizer = tokenizer(of_characters("ab", &["aa"]), &[]);
    let canonicality = Canonicality::new(tokenizer.clone()).unwrap();
    let vocabulary = vocabulary_for(&tokenizer);
    let choice = Choice { trie: vocabulary.trie(), has: &|_| true };
    let mut live = Liveliness::new(&canonicality, choice, &Long);
    let token = encode(&tokenizer, "aa")[0];
    let context = canonicality.after(&[token]);
    assert_eq!(live.find(&2, &context), Ok(Liveness::Undecided));
    for way in canonicality.ways(&canonicality.start()) {
        let mut dead = Vec::new();
        let mut begun = live.begun(&2);
        let Ok(()) = live.dead(way, &mut begun, &[token], &mut dead);
        assert_eq!(dead, []);
    }
}

#[test]
fn closings_are_encoded_behind_their_token() {
    let mut checked = 0;
    for (name, tokenizer) in tokenizers() {
        let canonicality = Arc::new(Canonicality::new(tokenizer.clone()).unwrap());
        let vocabulary = vocabulary_for(&tokenizer);
        let masks = CanonicalMasks::new(canonicality.clone(), vocabulary.clone());
        let [way] = canonicality.ways(&canonicality.start())[..] else { panic!("{name}") };
        let readable = masks.in_way(way).unwrap();
        let closings = masks.closings(&readable);
        for token in (0..vocabulary.width() as u32).map(TokenId) {
            let Some(place) = closings.of(token) else { continue };
            let Closing::With { text, .. } = &closings.all()[place] else { continue };
            let text = [vocabulary.text(token), text].concat();
            let Ok(text) = String::from_utf8(text) else { continue };
            let goes_on = |more: &&str| encode(&tokenizer, &format!("{text}{more}"))[0] == token;
            assert!(["", " ", "a", "1", "'"].iter().any(goes_on), "{name}: {token:?} {text:?}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

fn bits(tokens: &[TokenId], words: usize) -> Vec<u32> {
    let mut bits = vec![0; words];
    tokens.iter().for_each(|token| bits[token.index() / 32] |= 1 << (token.0 % 32));
    bits
}

/// Finitely many texts, of which many have common beginnings.
fn random_texts(rng: &mut TestRng) -> BTreeSet<String> {
    let stem = random_text(rng, 6);
    let text = |rng: &mut TestRng| stem.clone() + &random_text(rng, 5);
    (0..rng.random_range(1..6)).map(|_| text(rng)).collect()
}

#[test]
fn live_tokens_are_those_that_some_text_is_encoded_into() {
    let mut counts = [0; 3];
    let mut apart = 0;
    for (name, tokenizer) in tokenizers() {
        let canonicality = Arc::new(Canonicality::new(tokenizer.clone()).unwrap());
        let vocabulary = vocabulary_for(&tokenizer);
        let masks = CanonicalMasks::new(canonicality.clone(), vocabulary.clone());
        let has = |token: TokenId| !vocabulary.text(token).is_empty();
        let choice = Choice { trie: vocabulary.trie(), has: &has };
        let mut rng = seeded(8);
        for _ in 0..100 {
            let texts = random_texts(&mut rng);
            let encoded: Vec<Vec<TokenId>> =
                texts.iter().map(|text| encode(&tokenizer, text)).collect();
            let language = Texts(texts.iter().map(|text| text.clone().into_bytes()).collect());
            let mut live = Liveliness::new(&canonicality, choice, &language);
            // At every place of one of the encodings.
            let whole = &encoded[rng.random_range(0..encoded.len())];
            for taken in 0..=whole.len() {
                let (before, context) = (&whole[..taken], canonicality.after(&whole[..taken]));
                let state = spell(&tokenizer, before);
                let going_on = encoded.iter().filter(|tokens| tokens.starts_with(before));
                let truth: BTreeSet<TokenId> =
                    going_on.filter_map(|tokens| tokens.get(taken).copied()).collect();
                let allowed: Vec<TokenId> = (0..vocabulary.width() as u32)
                    .map(TokenId)
                    .filter(|&token| has(token))
                    .filter(|&token| {
                        let longer = [&state[..], vocabulary.text(token)].concat();
                        language.0.iter().any(|text| text.starts_with(&longer))
                    })
                    .collect();
                // One by one, and together by the ways in which they are read.
                for &token in &allowed {
                    let longer = [&state[..], vocabulary.text(token)].concat();
                    let next = canonicality.step(&context, token);
                    let Ok(found) =
                        next.as_ref().map_or(Ok(Liveness::Dead), |next| live.find(&longer, next));
                    assert_eq!(
                        found == Liveness::Live,
                        truth.contains(&token),
                        "{name}: {texts:?} after {taken}: {token:?}"
                    );
                    assert_ne!(found, Liveness::Undecided);
                    counts[usize::from(next.is_some()) + usize::from(truth.contains(&token))] += 1;
                }
                let mut mask = bits(&allowed, vocabulary.mask_words());
                masks.restrict(&context, &mut mask);
                let mut removed = Vec::new();
                for way in canonicality.ways(&context) {
                    let mut dead = Vec::new();
                    let readable = masks.in_way(way).unwrap();
                    for &token in &allowed {
                        let longer = [&state[..], vocabulary.text(token)].concat();
                        let mut begun = live.begun(&longer);
                        let alone = bits(&[token], vocabulary.mask_words());
                        let mut left = Cow::Borrowed(&alone[..]);
                        let Ok(()) =
                            live.remove_apart(&mut begun, masks.apart(&readable), &mut left);
                        apart += usize::from(*left != *alone);
                        if *left == *alone {
                            let Ok(()) = live.dead(way, &mut begun, &[token], &mut dead);
                        }
                    }
                    dead.sort_unstable();
                    removed.push((way, Arc::from(dead)));
                }
                masks.remove(&context, &removed, &mut mask);
                let left: BTreeSet<TokenId> = allowed
                    .iter()
                    .copied()
                    .filter(|token| mask[token.index() / 32] >> (token.0 % 32) & 1 == 1)
                    .collect();
                assert_eq!(left, truth, "{name}: {texts:?} after {taken}");
            }
        }
    }
    // Tokens that may not follow, that may but lead nowhere, and that are live.
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
    assert!(apart > 50, "{apart}");
}
