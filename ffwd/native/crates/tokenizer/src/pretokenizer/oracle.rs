//! The slow twins: patterns by backtracking over their tree, stages as tokenizers describe them.

use super::stage::{Behavior, StageSpec, GPT2};
use super::syntax::{literal, parse, Dialect, RepeatKind, Syntax};

/// The ends of the matches of `node` at `at`, best first, until `accept` takes one.
fn matches(node: &Syntax, text: &[char], at: usize, accept: &mut dyn FnMut(usize) -> bool) -> bool {
    match node {
        Syntax::Empty => accept(at),
        Syntax::Class(class) => {
            let inside = |character: char| {
                class.iter().any(|range| (range.start()..=range.end()).contains(&character))
            };
            text.get(at).is_some_and(|&character| inside(character)) && accept(at + 1)
        }
        Syntax::Look(look) => {
            let holds = match text.get(at) {
                None => look.at_end,
                Some(&next) => {
                    look.next.iter().any(|range| (range.start()..=range.end()).contains(&next))
                }
            };
            holds && accept(at)
        }
        Syntax::Concat(nodes) => sequence(nodes, text, at, accept),
        Syntax::Alternation(nodes) => nodes.iter().any(|node| matches(node, text, at, accept)),
        Syntax::Repeat { node, least, most, kind, .. } => match kind {
            RepeatKind::Possessive => {
                let mut end = None;
                repeat(node, *least, *most, false, text, at, &mut |at| {
                    end = Some(at);
                    true
                });
                end.is_some_and(accept)
            }
            kind => repeat(node, *least, *most, *kind == RepeatKind::Lazy, text, at, accept),
        },
    }
}

fn sequence(
    nodes: &[Syntax],
    text: &[char],
    at: usize,
    accept: &mut dyn FnMut(usize) -> bool,
) -> bool {
    match nodes.split_first() {
        None => accept(at),
        Some((first, rest)) => matches(first, text, at, &mut |at| sequence(rest, text, at, accept)),
    }
}

fn repeat(
    node: &Syntax,
    least: u32,
    most: Option<u32>,
    lazy: bool,
    text: &[char],
    at: usize,
    accept: &mut dyn FnMut(usize) -> bool,
) -> bool {
    if least == 0 && lazy && accept(at) {
        return true;
    }
    let more = most != Some(0)
        && matches(node, text, at, &mut |next| {
            let most = most.map(|most| most - 1);
            repeat(node, least.saturating_sub(1), most, lazy, text, next, accept)
        });
    more || (least == 0 && !lazy && accept(at))
}

fn find(node: &Syntax, text: &[char], at: usize) -> Option<usize> {
    let mut end = None;
    matches(node, text, at, &mut |at| {
        end = Some(at);
        true
    });
    end
}

/// The pieces of a text after one stage.
fn split(node: &Syntax, invert: bool, behavior: Behavior, text: &[char]) -> Vec<Vec<char>> {
    let mut parts: Vec<(Vec<char>, bool)> = Vec::new();
    let (mut at, mut gap) = (0, 0);
    while at < text.len() {
        if let Some(end) = find(node, text, at) {
            parts.push((text[gap..at].to_vec(), invert));
            parts.push((text[at..end].to_vec(), !invert));
            (at, gap) = (end, end);
        } else {
            at += 1;
        }
    }
    parts.push((text[gap..].to_vec(), invert));
    parts.retain(|(part, _)| !part.is_empty());
    if behavior == Behavior::MergedWithNext {
        parts.reverse();
    }
    let mut pieces: Vec<Vec<char>> = Vec::new();
    let mut matched_before = false;
    for (index, (part, matched)) in parts.into_iter().enumerate() {
        let joins = index > 0
            && match behavior {
                Behavior::Isolated | Behavior::Removed => false,
                Behavior::Contiguous => matched == matched_before,
                Behavior::MergedWithPrevious | Behavior::MergedWithNext => {
                    matched && !matched_before
                }
            };
        matched_before = matched;
        match pieces.last_mut().filter(|_| joins) {
            Some(last) if behavior == Behavior::MergedWithNext => {
                last.splice(0..0, part);
            }
            Some(last) => last.extend(part),
            None => pieces.push(part),
        }
    }
    if behavior == Behavior::MergedWithNext {
        pieces.reverse();
    }
    pieces
}

/// Stages that split texts slowly.
pub struct Oracle(Vec<(Syntax, bool, Behavior)>);

impl Oracle {
    pub fn new(specs: &[StageSpec]) -> Self {
        let stage = |spec: &StageSpec| match spec {
            StageSpec::Split { pattern, dialect, invert, behavior } => {
                (parse(pattern, *dialect).unwrap(), *invert, *behavior)
            }
            StageSpec::SplitText { text, invert, behavior } => (literal(text), *invert, *behavior),
            StageSpec::ByteLevelRegex => {
                (parse(GPT2, Dialect::Oniguruma).unwrap(), false, Behavior::Isolated)
            }
            StageSpec::Digits { individual } => (
                parse(r"\p{N}", Dialect::Oniguruma).unwrap(),
                false,
                if *individual { Behavior::Isolated } else { Behavior::Contiguous },
            ),
            StageSpec::Punctuation { behavior } => {
                (parse(r"[!-/:-@\[-`{-~]|\p{P}", Dialect::Oniguruma).unwrap(), false, *behavior)
            }
            StageSpec::Metaspace => {
                (parse(" |\u{2581}", Dialect::Oniguruma).unwrap(), false, Behavior::MergedWithNext)
            }
        };
        Self(specs.iter().map(stage).collect())
    }

    pub fn pieces(&self, text: &str) -> Vec<String> {
        let mut pieces: Vec<Vec<char>> = vec![text.chars().collect()];
        pieces.retain(|piece| !piece.is_empty());
        for (node, invert, behavior) in &self.0 {
            pieces =
                pieces.iter().flat_map(|piece| split(node, *invert, *behavior, piece)).collect();
        }
        pieces.into_iter().map(|piece| piece.into_iter().collect()).collect()
    }
}
