//! Patterns that cut texts, from a tokenizer's file: the pieces are the text, wherever it is cut, and
//! the automaton of their boundaries agrees.

use ffwd_tokenizer::pretokenizer::{Behavior, Dialect, PreTokenizer, StageSpec};

use crate::driver::{split_text, Driver};

pub fn run(data: &[u8]) {
    let Some((pattern, mut driver)) = split_text(data) else { return };
    let stages = stages(pattern, &mut driver);
    let splitter = match PreTokenizer::new(&stages) {
        Ok(splitter) => splitter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let text = text(&mut driver);
    let mut ends = vec![0];
    for piece in splitter.pieces(text.as_bytes()) {
        assert_eq!(piece.start, ends[ends.len() - 1], "pieces of {text:?} by {stages:?}");
        assert!(piece.end > piece.start);
        assert!(text.is_char_boundary(piece.end), "a piece ends in a character of {text:?}");
        ends.push(piece.end);
    }
    assert_eq!(ends[ends.len() - 1], text.len(), "pieces of {text:?} by {stages:?}");
    if let Some(boundaries) = splitter.boundaries().filter(|_| !text.is_empty()) {
        // Of the ways to cut the text, one is left in the end, and it is what it was cut into.
        let mut ways = vec![(vec![0], boundaries.start())];
        for (at, &byte) in text.as_bytes().iter().enumerate() {
            let mut next = Vec::new();
            for (cuts, way) in ways {
                let Some(way) = boundaries.step(way, byte) else { continue };
                for &closed in boundaries.close(way) {
                    let mut cuts: Vec<usize> = cuts.clone();
                    cuts.push(at + 1);
                    next.push((cuts, closed));
                }
                next.push((cuts, way));
            }
            ways = next;
            if ways.len() > 256 {
                return;
            }
        }
        let found: Vec<Vec<usize>> = ways
            .into_iter()
            .filter(|(_, way)| boundaries.can_end(*way))
            .map(|(mut cuts, _)| {
                cuts.push(text.len());
                cuts.dedup();
                cuts
            })
            .collect();
        assert!(found.contains(&ends), "{ends:?} of {text:?}, of {found:?} by {stages:?}");
        assert!(
            found.iter().all(|cuts| *cuts == ends),
            "{found:?}, not {ends:?} of {text:?} by {stages:?}"
        );
    }
}

fn stages(pattern: &str, driver: &mut Driver<'_>) -> Vec<StageSpec> {
    let behavior = *driver.pick(&[
        Behavior::Isolated,
        Behavior::Isolated,
        Behavior::MergedWithPrevious,
        Behavior::MergedWithNext,
        Behavior::Contiguous,
        Behavior::Removed,
    ]);
    let invert = driver.once_in(4);
    let dialect = *driver.pick(&[Dialect::FancyRegex, Dialect::Oniguruma]);
    let split = match driver.once_in(6) {
        true => StageSpec::SplitText { text: pattern.to_owned(), invert, behavior },
        false => StageSpec::Split { pattern: pattern.to_owned(), dialect, invert, behavior },
    };
    match driver.below(8) {
        0 => vec![StageSpec::Digits { individual: driver.flag() }, split],
        1 => vec![split, StageSpec::ByteLevelRegex],
        2 => vec![StageSpec::Metaspace, split],
        3 => vec![split, StageSpec::Punctuation { behavior: Behavior::Isolated }],
        _ => vec![split],
    }
}

fn text(driver: &mut Driver<'_>) -> String {
    const PARTS: [&str; 24] = [
        "a", "b", "ab", "A", "'s", "'", " ", "  ", "\n", "\r\n", "\t", "1", "12", "é", "€", "😀",
        "_", "-", ".", "!", "\u{2581}", "ß", "\u{A0}", "中",
    ];
    (0..driver.below(24)).map(|_| *driver.pick(&PARTS)).collect()
}
