//! The automaton of boundaries against the slow twin, which cuts whole texts.

use rustc_hash::{FxHashMap, FxHashSet};

use super::oracle::Oracle;
use super::testing::{constructed, real, Random};
use super::{Behavior, Boundaries, Dialect, HypothesisId, PreTokenizer, StageSpec};

fn cases() -> Vec<(String, Vec<StageSpec>)> {
    let real = real().into_iter().map(|(name, stages)| (name.to_owned(), stages));
    real.chain(constructed()).collect()
}

/// Every way to cut a text that is alive at its end: where pieces have ended within it.
fn ways(boundaries: &Boundaries, text: &[u8]) -> Vec<(Vec<usize>, HypothesisId)> {
    let mut ways = vec![(Vec::new(), boundaries.start())];
    for (at, &byte) in text.iter().enumerate() {
        let mut next = Vec::new();
        for (ends, hypothesis) in ways {
            for &closed in if at > 0 { boundaries.close(hypothesis) } else { &[] } {
                if let Some(stepped) = boundaries.step(closed, byte) {
                    let mut ends: Vec<usize> = ends.clone();
                    ends.push(at);
                    next.push((ends, stepped));
                }
            }
            next.extend(boundaries.step(hypothesis, byte).map(|stepped| (ends, stepped)));
        }
        ways = next;
    }
    ways
}

/// Where pieces end within a text.
fn ends(oracle: &Oracle, text: &str) -> Vec<usize> {
    let mut at = 0;
    let mut ends: Vec<usize> = Vec::new();
    for piece in oracle.pieces(text) {
        at += piece.len();
        ends.push(at);
    }
    ends.pop();
    ends
}

#[test]
fn a_text_is_cut_in_the_one_way_that_may_end() {
    let real = real();
    let kinds: Vec<&str> = real.iter().map(|(name, _)| *name).collect();
    for (name, specs) in cases() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let boundaries = pretokenizer.boundaries().unwrap();
        let oracle = Oracle::new(&specs);
        let mut random = Random(4);
        let mut most = 0;
        let rounds = if kinds.contains(&name.as_str()) { 60_000 } else { 2_000 };
        for _ in 0..rounds {
            let text = random.text(12);
            let ways = ways(boundaries, text.as_bytes());
            most = most.max(ways.len());
            let ending: Vec<&Vec<usize>> = ways
                .iter()
                .filter(|(_, hypothesis)| boundaries.can_end(*hypothesis))
                .map(|(ends, _)| ends)
                .collect();
            assert_eq!(ending, [&ends(&oracle, &text)], "{name}: {text:?}");
        }
        assert!(most <= 12, "{name}: {most} ways");
    }
}

/// A character of each class, and the classes' alphabet for witnesses.
fn samples(boundaries: &Boundaries) -> Vec<char> {
    let mut seen: FxHashSet<Vec<Option<HypothesisId>>> = FxHashSet::default();
    ('\0'..='\u{FFFF}')
        .filter(|character| {
            let mut buffer = [0; 4];
            let bytes = character.encode_utf8(&mut buffer).as_bytes();
            let row = (0..boundaries.state_count())
                .map(|state| {
                    let start = HypothesisId((state as u32) << 15);
                    bytes.iter().try_fold(start, |at, &byte| boundaries.step(at, byte))
                })
                .collect();
            seen.insert(row)
        })
        .collect()
}

/// For each state, a text with which it may end, and where that is cut: the shortest there is.
fn witnesses(boundaries: &Boundaries) -> FxHashMap<HypothesisId, (String, Vec<usize>)> {
    let samples = samples(boundaries);
    let states = || (0..boundaries.state_count()).map(|state| HypothesisId((state as u32) << 15));
    let mut known: FxHashMap<HypothesisId, (String, Vec<usize>)> = states()
        .filter(|&hypothesis| boundaries.can_end(hypothesis))
        .map(|hypothesis| (hypothesis, (String::new(), Vec::new())))
        .collect();
    loop {
        let mut added = Vec::new();
        for hypothesis in states().filter(|hypothesis| !known.contains_key(hypothesis)) {
            let closed = boundaries.close(hypothesis).iter();
            let closed = closed.filter_map(|next| known.get(next)).map(|(text, ends)| {
                let mut ends = ends.clone();
                ends.insert(0, 0);
                (text.clone(), ends)
            });
            let stepped = samples.iter().filter_map(|&character| {
                let mut buffer = [0; 4];
                let bytes = character.encode_utf8(&mut buffer).as_bytes();
                let next =
                    bytes.iter().try_fold(hypothesis, |at, &byte| boundaries.step(at, byte))?;
                let (text, ends) = known.get(&next)?;
                let ends = ends.iter().map(|end| end + bytes.len()).collect();
                Some((format!("{character}{text}"), ends))
            });
            if let Some(witness) = closed.chain(stepped).next() {
                added.push((hypothesis, witness));
            }
        }
        if added.is_empty() {
            return known;
        }
        known.extend(added);
    }
}

/// Where nothing is known of the text before, a text is cut as if it began there.
#[test]
fn some_characters_begin_a_text_anew() {
    let (mut anew, mut spaced) = (0, 0);
    for (name, specs) in cases() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let boundaries = pretokenizer.boundaries().unwrap();
        let oracle = Oracle::new(&specs);
        let mut random = Random(6);
        for from in boundaries.places() {
            let after_space = boundaries.anew_after_space(from);
            for (before, bytes) in [("", boundaries.anew(from)), (" ", after_space)] {
                let mut left = bytes;
                while left != 0 {
                    let first = char::from(left.trailing_zeros() as u8);
                    left &= left - 1;
                    let text = format!("{before}{first}{}", random.text(6));
                    let cuts = ends(&oracle, &text);
                    let mut at = Some(from);
                    for (place, &byte) in text.as_bytes().iter().enumerate() {
                        if cuts.contains(&place) {
                            at = at.and_then(|at| boundaries.close(at).first().copied());
                        }
                        at = at.and_then(|at| boundaries.step(at, byte));
                    }
                    let is_cut = at.is_some_and(|at| boundaries.can_end(at));
                    assert!(is_cut, "{name}: {text:?} at {from:?}");
                    *if before.is_empty() { &mut anew } else { &mut spaced } += 1;
                }
            }
        }
    }
    assert!(anew > 10_000 && spaced > 10_000, "{anew}, {spaced}");
}

#[test]
fn every_way_that_is_alive_is_that_of_some_text() {
    for (name, specs) in cases() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let boundaries = pretokenizer.boundaries().unwrap();
        let oracle = Oracle::new(&specs);
        let witnesses = witnesses(boundaries);
        assert_eq!(witnesses.len(), boundaries.state_count(), "{name}: dead states");
        let mut random = Random(5);
        for _ in 0..2_000 {
            let text = random.text(10);
            for (mut cuts, hypothesis) in ways(boundaries, text.as_bytes()) {
                let (rest, more) = &witnesses[&hypothesis];
                cuts.extend(more.iter().map(|end| end + text.len()));
                let whole = text.clone() + rest;
                // A piece may end with the text.
                cuts.retain(|&end| end < whole.len());
                assert_eq!(cuts, ends(&oracle, &whole), "{name}: {text:?} and {rest:?}");
            }
        }
    }
}

#[test]
fn what_some_continuation_yields_is_never_refused() {
    for (name, specs) in real() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let boundaries = pretokenizer.boundaries().unwrap();
        let oracle = Oracle::new(&specs);
        let mut random = Random(6);
        for _ in 0..100 {
            let text = random.text(6);
            let alive: FxHashSet<Vec<usize>> =
                ways(boundaries, text.as_bytes()).into_iter().map(|(ends, _)| ends).collect();
            let mut found: FxHashSet<Vec<usize>> = FxHashSet::default();
            for _ in 0..200 {
                let whole = text.clone() + &random.text(6);
                let mut ends = ends(&oracle, &whole);
                ends.retain(|&end| end < text.len());
                assert!(alive.contains(&ends), "{name}: {text:?}, {whole:?}");
                found.insert(ends);
            }
            assert!(found.len() <= alive.len());
        }
    }
}

#[test]
fn bytes_within_a_character_are_alive_if_some_character_is() {
    for (name, specs) in real() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let boundaries = pretokenizer.boundaries().unwrap();
        let start = boundaries.start();
        for bytes in [&b"\xFF"[..], b"\xC0", b"\x80", b"\xED\xA0", b"\xF4\x90", b"\xE0\x80"] {
            let end = bytes.iter().try_fold(start, |at, &byte| boundaries.step(at, byte));
            assert_eq!(end, None, "{name}: {bytes:x?}");
        }
        let mut random = Random(7);
        for _ in 0..2_000 {
            let text = random.text(6);
            for (_, hypothesis) in ways(boundaries, text.as_bytes()) {
                for lead in 0x80..=0xFF {
                    let Some(inside) = boundaries.step(hypothesis, lead) else { continue };
                    assert!(boundaries.close(inside).is_empty() && !boundaries.can_end(inside));
                    assert!((0..=0xFF).any(|byte| boundaries.step(inside, byte).is_some()));
                }
            }
        }
    }
}

#[test]
fn automata_are_small() {
    for (name, specs) in cases() {
        let pretokenizer = PreTokenizer::new(&specs).unwrap();
        let count = pretokenizer.boundaries().unwrap().state_count();
        assert!(count <= 150, "{name}: {count} states");
    }
}

#[test]
fn an_automaton_that_is_too_large_is_refused_by_name() {
    let pattern = "(?:a|b)*a(?:a|b){10}c|a|b";
    let pretokenizer = PreTokenizer::new(&[super::testing::isolated(pattern)]).unwrap();
    assert!(pretokenizer.boundaries().is_none());
    let limit = pretokenizer.boundaries_limit().unwrap().to_string();
    assert!(limit.contains("pre_tokenizer_steps"), "{limit}");
}

/// Patterns put together at random. Most are refused, by name; the others cut as the slow twin.
#[test]
fn random_patterns() {
    const ATOMS: &[&str] = &[
        "a", "b", "ab", r"\s", r"\S", "[ab]", "[^a]", r"\p{L}", " ?", "a?", "b*", "a+", r"\s+",
        "+", "*", "?", "{1,2}", "|", "|", "(?:", "(?:", ")", ")", "(?!a)", r"(?!\S)", "(?=b)", "$",
        r"\z", "++", "?+", "*?", "(?i:", "-", "[", "]", "\\", "(", "{", "^", "(?",
    ];
    const BEHAVIORS: &[Behavior] = &[
        Behavior::Isolated,
        Behavior::Contiguous,
        Behavior::MergedWithNext,
        Behavior::MergedWithPrevious,
    ];
    const LETTERS: &[char] = &['a', 'b', 'A', ' ', '\n', '-', 'é'];
    let mut random = Random(8);
    let mut accepted = 0;
    for _ in 0..6_000 {
        let pattern: String = (0..=random.below(9)).map(|_| random.pick(ATOMS)).collect();
        let dialect = random.pick(&[Dialect::Oniguruma, Dialect::FancyRegex]);
        let (invert, behavior) = (random.below(2) == 0, random.pick(BEHAVIORS));
        let specs = [StageSpec::Split { pattern, dialect, invert, behavior }];
        let Ok(pretokenizer) = PreTokenizer::new(&specs) else { continue };
        accepted += 1;
        let boundaries = pretokenizer.boundaries().unwrap();
        let oracle = Oracle::new(&specs);
        for _ in 0..8 {
            let text: String = (0..random.below(10)).map(|_| random.pick(LETTERS)).collect();
            let expected = ends(&oracle, &text);
            let mut pieces: Vec<usize> =
                pretokenizer.pieces(text.as_bytes()).map(|piece| piece.end).collect();
            pieces.pop();
            assert_eq!(pieces, expected, "{specs:?}: {text:?}");
            let mut ways = ways(boundaries, text.as_bytes());
            ways.retain(|(_, hypothesis)| boundaries.can_end(*hypothesis));
            let ways: Vec<&Vec<usize>> = ways.iter().map(|(ends, _)| ends).collect();
            assert_eq!(ways, [&expected], "{specs:?}: {text:?}");
        }
    }
    assert!(accepted > 600, "{accepted}");
}
