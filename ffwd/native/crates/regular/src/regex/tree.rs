//! A pattern with ordered alternatives, for atomic groups.
//!
//! The order of a matcher's attempts does not affect a language, but an atomic group, or a
//! possessive quantifier, keeps only the first span that it finds. If the text after a span
//! identifies it (the longest run of a character, the first alternative of those that begin here),
//! it is expressed with a lookahead. Otherwise the group is refused.

use super::error::{EXPRESSION_SIZE, MAX_SIZE};
use super::node::Node;
use super::{Ast, PatternError};

/// In which order the numbers of copies are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
    /// Only the first number for which there are copies.
    Possessive,
}

#[derive(Debug)]
pub(super) enum Tree {
    /// One character, or an anchor.
    Atom(Node),
    Concat(Vec<Tree>),
    Alternation(Vec<Tree>),
    Repeat {
        inner: Box<Tree>,
        min: u32,
        max: Option<u32>,
        greed: Greed,
        offset: usize,
    },
    Atomic {
        inner: Box<Tree>,
        offset: usize,
    },
    Look {
        inner: Box<Tree>,
        behind: bool,
        negative: bool,
        offset: usize,
    },
}

/// Turns trees into nodes, of which it counts how many there are: what is said with lookaheads is
/// said twice.
#[derive(Default)]
pub(super) struct Flattening {
    nodes: usize,
}

impl Flattening {
    fn charge(&mut self) -> Result<(), PatternError> {
        self.nodes += 1;
        if self.nodes > MAX_SIZE {
            return Err(PatternError::too_large(0, EXPRESSION_SIZE, MAX_SIZE));
        }
        Ok(())
    }

    /// The spans of a tree.
    pub(super) fn node(&mut self, tree: &Tree) -> Result<Node, PatternError> {
        self.charge()?;
        Ok(match tree {
            Tree::Atom(node) => node.clone(),
            Tree::Concat(parts) => Node::Concat(self.nodes(parts)?),
            Tree::Alternation(parts) => Node::Alternation(self.nodes(parts)?),
            Tree::Repeat { greed: Greed::Possessive, .. } => self.first(tree)?,
            Tree::Repeat { inner, min, max, .. } => {
                Node::Repeat { inner: Box::new(self.node(inner)?), min: *min, max: *max }
            }
            Tree::Atomic { inner, offset } => {
                self.first(inner).map_err(|error| PatternError { offset: *offset, ..error })?
            }
            Tree::Look { inner, behind, negative, offset } => {
                let (inner, negative, offset) = (Box::new(self.node(inner)?), *negative, *offset);
                if *behind {
                    Node::Lookbehind { inner, negative, offset }
                } else {
                    Node::Lookahead { inner, negative, offset }
                }
            }
        })
    }

    fn nodes(&mut self, trees: &[Tree]) -> Result<Vec<Node>, PatternError> {
        trees.iter().map(|tree| self.node(tree)).collect()
    }

    /// Returns the node of the span that is found first, of those that begin at one position.
    fn first(&mut self, tree: &Tree) -> Result<Node, PatternError> {
        if tree.is_sole() && !matches!(tree, Tree::Repeat { greed: Greed::Possessive, .. }) {
            return self.node(tree);
        }
        self.charge()?;
        match tree {
            Tree::Concat(parts) => {
                let Some((last, before)) = parts.split_last() else { return Ok(Node::epsilon()) };
                if !before.iter().all(Tree::is_sole) {
                    return Err(unsupported());
                }
                let mut nodes = self.nodes(before)?;
                nodes.push(self.first(last)?);
                Ok(Node::Concat(nodes))
            }
            // One alternative, where no earlier one has a span.
            Tree::Alternation(parts) => {
                let mut found: Option<Node> = None;
                for part in parts.iter().rev() {
                    let first = self.first(part)?;
                    found = Some(match found {
                        None => first,
                        Some(later) => {
                            let otherwise = Node::Concat(vec![self.absent(part)?, later]);
                            Node::Alternation(vec![first, otherwise])
                        }
                    });
                    if parts.len() > MAX_ALTERNATIVES {
                        return Err(unsupported());
                    }
                }
                Ok(found.unwrap_or_else(Node::epsilon))
            }
            Tree::Repeat { inner, min, max, greed, offset } => self
                .first_of_copies(inner, (*min, *max), *greed)
                .map_err(|error| PatternError { offset: *offset, ..error }),
            _ => self.node(tree),
        }
    }

    fn first_of_copies(
        &mut self,
        inner: &Tree,
        (min, max): (u32, Option<u32>),
        greed: Greed,
    ) -> Result<Node, PatternError> {
        let copies = |flattening: &mut Self, min: u32, max: Option<u32>| {
            let inner = Box::new(flattening.node(inner)?);
            Ok(Node::Repeat { inner, min, max })
        };
        match (min, max, greed) {
            (_, Some(0), _) | (0, _, Greed::Lazy) => return Ok(Node::epsilon()),
            (1, Some(1), _) | (1, _, Greed::Lazy) => return self.first(inner),
            (0, Some(1), _) => {
                return Ok(Node::Alternation(vec![self.first(inner)?, self.absent(inner)?]));
            }
            _ => {}
        }
        if !inner.is_sole() || inner.width().0 == 0 {
            return Err(unsupported());
        }
        // Spans of one kind at each place, so copies are counted from the first on.
        if greed == Greed::Lazy || max == Some(min) {
            return copies(self, min, Some(min));
        }
        let fewer = copies(self, min, max.map(|max| max - 1))?;
        let run = Node::Concat(vec![fewer, self.absent(inner)?]);
        Ok(match max {
            None => run,
            Some(_) => Node::Alternation(vec![copies(self, max.unwrap_or(min), max)?, run]),
        })
    }

    /// The empty span where no span of the tree begins.
    fn absent(&mut self, tree: &Tree) -> Result<Node, PatternError> {
        let inner = Box::new(self.node(tree)?);
        Ok(Node::Lookahead { inner, negative: true, offset: 0 })
    }
}

/// Alternatives that an atomic group may have, which become nested.
const MAX_ALTERNATIVES: usize = 200;

fn unsupported() -> PatternError {
    PatternError::unsupported(0, "atomic group or possessive quantifier")
}

impl Tree {
    /// How many characters a span has at least and at most.
    pub(super) fn width(&self) -> (u64, u64) {
        match self {
            Self::Atom(Node::Text(Ast::Epsilon)) => (0, 0),
            Self::Atom(Node::Text(_)) => (1, 1),
            Self::Atom(_) | Self::Look { .. } => (0, 0),
            Self::Concat(parts) => parts.iter().map(Self::width).fold((0, 0), |sum, width| {
                (sum.0.saturating_add(width.0), sum.1.saturating_add(width.1))
            }),
            Self::Alternation(parts) => parts
                .iter()
                .map(Self::width)
                .fold((u64::MAX, 0), |all, width| (all.0.min(width.0), all.1.max(width.1))),
            Self::Repeat { inner, min, max, .. } => {
                let (low, high) = inner.width();
                let high = match max {
                    Some(max) => high.saturating_mul(u64::from(*max)),
                    None if high == 0 => 0,
                    None => u64::MAX,
                };
                (low.saturating_mul(u64::from(*min)), high)
            }
            Self::Atomic { inner, .. } => inner.width(),
        }
    }

    /// Whether at most one span is found at each place.
    fn is_sole(&self) -> bool {
        let (low, high) = self.width();
        low == high
            || match self {
                Self::Atomic { .. } | Self::Repeat { greed: Greed::Possessive, .. } => true,
                Self::Concat(parts) => parts.iter().all(Self::is_sole),
                Self::Repeat { inner, min, max, .. } => *max == Some(*min) && inner.is_sole(),
                _ => false,
            }
    }
}
