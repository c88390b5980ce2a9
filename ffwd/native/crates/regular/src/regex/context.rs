//! Patterns that depend on their context anywhere, as languages of whole texts.
//!
//! [`super::anchors`] leaves in the tree what depends on the position of a span in the text.
//! [`Ast::Before`] and [`Ast::After`] are empty spans under a condition on all the text before or
//! after them. Anchors, lookarounds and word boundaries are cases of these. In the automaton, the
//! first is followed along with the text, and the second is intersected with the rest of it.

use super::error::{EXPRESSION_SIZE, MAX_SIZE};
use super::node::Node;
use super::piece::{nullable, size};
use super::{Ast, CharClass, Look, PatternError};

/// Copies that a repetition with a lookaround in it must have.
const MAX_COPIES: u32 = 16;
/// Size of what is repeated with a lookaround in it.
const MAX_REPEATED: usize = 1 << 10;

/// The texts in which the pattern matches some span.
pub(super) fn searched(node: &Node) -> Result<Ast, PatternError> {
    let any = Ast::any_text;
    let span = Spans { work: 0 }.of(node)?;
    Ok(Ast::concat([any(), span, any()]))
}

/// The texts that the pattern matches as a whole.
pub(super) fn whole(node: &Node) -> Result<Ast, PatternError> {
    Spans { work: 0 }.of(node)
}

struct Spans {
    work: usize,
}

impl Spans {
    fn charge(&mut self, ast: Ast) -> Result<Ast, PatternError> {
        self.work = self.work.saturating_add(size(&ast));
        if self.work > MAX_SIZE {
            return Err(PatternError::too_large(0, EXPRESSION_SIZE, MAX_SIZE));
        }
        Ok(ast)
    }

    fn of(&mut self, node: &Node) -> Result<Ast, PatternError> {
        let any = Ast::any_text;
        let all = |spans: &mut Self, nodes: &[Node]| {
            nodes.iter().map(|node| spans.of(node)).collect::<Result<Vec<Ast>, _>>()
        };
        let ast = match node {
            Node::Text(ast) => ast.clone(),
            Node::Start => Ast::before(Ast::Epsilon),
            Node::End => Ast::after(Ast::Epsilon),
            Node::Concat(parts) => Ast::concat(all(self, parts)?),
            Node::Alternation(parts) => Ast::alternation(all(self, parts)?),
            Node::Repeat { inner, min, max } => {
                let inner = self.of(inner)?;
                repeat(inner, *min, *max)?
            }
            Node::Lookahead { inner, negative, .. } => {
                let text = Ast::concat([self.of(inner)?, any()]);
                Ast::after(if *negative { Ast::complement(text) } else { text })
            }
            Node::Lookbehind { inner, negative, offset } => {
                let inner = self.of(inner)?;
                if inner.looks_around() == Look::Ahead {
                    let feature = "lookahead in a lookbehind";
                    return Err(PatternError::unsupported(*offset, feature));
                }
                let text = Ast::concat([any(), inner]);
                Ast::before(if *negative { Ast::complement(text) } else { text })
            }
            Node::WordBoundary { negative, words } => {
                let before = Ast::concat([any(), Ast::Class(words.clone())]);
                let after = Ast::concat([Ast::Class(words.clone()), any()]);
                let pair =
                    |before: Ast, after: Ast| Ast::concat([Ast::before(before), Ast::after(after)]);
                let (no_before, no_after) =
                    (Ast::complement(before.clone()), Ast::complement(after.clone()));
                if *negative {
                    Ast::alternation([pair(before, after), pair(no_before, no_after)])
                } else {
                    Ast::alternation([pair(before, no_after), pair(no_before, after)])
                }
            }
        };
        self.charge(ast)
    }
}

/// Copies of spans that depend on their context: the required ones, then any number that are not
/// empty. Further empty copies would only add conditions.
fn repeat(inner: Ast, min: u32, max: Option<u32>) -> Result<Ast, PatternError> {
    if inner.looks_around() == Look::Nowhere {
        return Ok(Ast::repeat(inner, min, max));
    }
    if size(&inner) > MAX_REPEATED {
        let limit = "repeated_lookaround_size";
        return Err(PatternError::too_large(0, limit, MAX_REPEATED));
    }
    if min > MAX_COPIES {
        return Err(PatternError::too_large(0, "lookaround_copies", MAX_COPIES as usize));
    }
    let more = Ast::repeat(nonempty(&inner), 0, max.map(|max| max.saturating_sub(min)));
    let copies = (0..min).map(|_| inner.clone());
    Ok(Ast::concat(copies.chain([more])))
}

/// The conditions under which a span is empty.
fn empty(ast: &Ast) -> Ast {
    match ast {
        Ast::Before(_) | Ast::After(_) => ast.clone(),
        Ast::Concat(parts) => Ast::concat(parts.iter().map(empty)),
        Ast::Alternation(parts) => Ast::alternation(parts.iter().map(empty)),
        Ast::Repeat { min: 0, .. } => Ast::Epsilon,
        _ if nullable(ast) => Ast::Epsilon,
        _ => Ast::Empty,
    }
}

/// The spans that are not empty.
fn nonempty(ast: &Ast) -> Ast {
    if ast.looks_around() == Look::Nowhere {
        let some = Ast::repeat(Ast::Class(CharClass::any()), 1, None);
        return match ast {
            Ast::Epsilon => Ast::Empty,
            _ if !nullable(ast) => ast.clone(),
            Ast::Repeat { inner, min: 0, max } if !nullable(inner) => {
                Ast::repeat((**inner).clone(), 1, *max)
            }
            _ => Ast::intersection([ast.clone(), some]),
        };
    }
    match ast {
        Ast::Alternation(parts) => Ast::alternation(parts.iter().map(nonempty)),
        Ast::Concat(parts) => Ast::alternation(parts.iter().enumerate().map(|(place, part)| {
            let before = parts[..place].iter().map(empty);
            let after = parts[place + 1..].iter().cloned();
            Ast::concat(before.chain([nonempty(part)]).chain(after))
        })),
        // The copies of a repetition that looks around are not empty.
        Ast::Repeat { inner, max, .. } => Ast::concat([
            (**inner).clone(),
            Ast::repeat((**inner).clone(), 0, max.map(|max| max.saturating_sub(1))),
        ]),
        _ => Ast::Empty,
    }
}
