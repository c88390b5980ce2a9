//! The masks of a tree of drafts: several ways to go on, verified in one pass of the model.

use smallvec::SmallVec;
use thiserror::Error;

use super::step::{Halt, RequestRows};
use super::{GivenToken, Outcome, Request};
use crate::mask::token_set::has_bit;

/// Where there is no child or sibling.
const NONE: i64 = -1;

/// Nodes that make no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// A tree without a root, or without links for each node.
    #[error("a tree needs a root, and as many links as nodes")]
    Lengths,
    /// A link leads to no node.
    #[error("node {0} links to {1}, which is no node")]
    Link(usize, i64),
    /// Two links lead to one node, or one to the root.
    #[error("a second link leads to node {0}")]
    Reached(usize),
}

/// A tree of drafts. Node 0 is the last accepted token, so its own token counts for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'w> {
    tokens: &'w [GivenToken],
    first_child: &'w [i64],
    next_sibling: &'w [i64],
}

impl<'w> Tree<'w> {
    /// Makes a tree of its nodes; a link of -1 leads nowhere.
    ///
    /// # Errors
    /// The links make no tree.
    pub fn new(
        tokens: &'w [GivenToken],
        first_child: &'w [i64],
        next_sibling: &'w [i64],
    ) -> Result<Self, Malformed> {
        let count = tokens.len();
        if count == 0 || first_child.len() != count || next_sibling.len() != count {
            return Err(Malformed::Lengths);
        }
        let mut is_reached: SmallVec<[bool; 64]> = SmallVec::from_elem(false, count);
        is_reached[0] = true;
        for links in [first_child, next_sibling] {
            for (node, &link) in links.iter().enumerate().filter(|(_, &link)| link != NONE) {
                let to = usize::try_from(link).ok().filter(|&to| to < count);
                let to = to.ok_or(Malformed::Link(node, link))?;
                if std::mem::replace(&mut is_reached[to], true) {
                    return Err(Malformed::Reached(to));
                }
            }
        }
        Ok(Self { tokens, first_child, next_sibling })
    }

    /// The number of nodes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    fn link(links: &[i64], node: usize) -> Option<usize> {
        usize::try_from(links[node]).ok()
    }

    /// Fills the rows of the nodes whose tokens the request can accept one after the other, and lets
    /// the other rows allow everything. Accepted drafts are taken back, but for a walk that halts.
    pub(super) fn fill(
        &self,
        request: &mut Request,
        rows: &mut RequestRows<'_>,
        computes: bool,
    ) -> Result<Option<Outcome>, Halt> {
        let mut is_filled: SmallVec<[bool; 64]> = SmallVec::from_elem(false, self.len());
        // The nodes whose tokens are accepted, but for the one that is visited.
        let mut path: SmallVec<[usize; 16]> = SmallVec::new();
        let mut node = 0;
        'nodes: loop {
            if self.enter(request, rows, path.last().copied(), node) {
                if !request.is_terminated() {
                    let (row, held) = rows.at(node);
                    is_filled[node] = true;
                    match request.fill_row(row, held, computes)? {
                        None => {
                            if let Some(child) = Self::link(self.first_child, node) {
                                path.push(node);
                                node = child;
                                continue;
                            }
                        }
                        Some(error) if path.is_empty() => {
                            request.refuse(row, held, &error);
                            rows.repeat(0);
                            return Ok(Some(Outcome::Refused));
                        }
                        // Should the drafts be accepted that led here, the next token fails.
                        Some(_) => request.allow_one(row, held),
                    }
                }
                Self::leave(request, &path)?;
            }
            loop {
                if path.is_empty() {
                    break 'nodes;
                }
                if let Some(sibling) = Self::link(self.next_sibling, node) {
                    node = sibling;
                    break;
                }
                node = path.pop().unwrap_or(0);
                Self::leave(request, &path)?;
            }
        }
        for (at, _) in is_filled.iter().enumerate().filter(|(_, &is_filled)| !is_filled) {
            let (row, held) = rows.at(at);
            held.write_everything(row);
        }
        Ok(None)
    }

    /// Accepts the token of a node, if the mask of its parent allows it.
    fn enter(
        &self,
        request: &mut Request,
        rows: &mut RequestRows<'_>,
        parent: Option<usize>,
        node: usize,
    ) -> bool {
        let Some(parent) = parent else { return true };
        let draft = self.tokens[node];
        let Some(token) = request.token(draft) else { return false };
        // A token over a limit is none that the request can accept later either.
        has_bit(rows.at(parent).0, token) && matches!(request.accept_one(draft), Ok(true))
    }

    fn leave(request: &mut Request, path: &[usize]) -> Result<(), Halt> {
        let drafts = usize::from(!path.is_empty());
        request.take_back(drafts).map_err(|error| Halt::Failed(error.into()))
    }
}
