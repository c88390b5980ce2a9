//! The tokens that may not follow a token, all at once.
//!
//! Take a symbol `x` of token `a`'s right spine, and a symbol `y` of `b`'s left spine. If any such
//! pair merges before `x` and `y` die, `b` may not follow `a` (see `pair`). Call `y` the parent of
//! every token whose split has `y` on the left. This is a tree over all tokens, and the tokens with
//! `y` on their left spine are those at and below `y`. The order here is depth first, with the
//! children of a token from the latest level to the earliest. The tokens for which `y` dies later
//! than some level are then one run: `y`, and the descendants of its first children.

use std::ops::Range;

use super::pair::{precedes_left_death, precedes_right_death};
use super::splits::{Splits, BASE};
use crate::vocabulary::TokenId;

/// The reachable tokens in the order described above.
#[derive(Debug)]
pub(super) struct LeftTree {
    order: Vec<TokenId>,
    /// For each token its place in the order, and the place after the last one below it.
    place: Vec<u32>,
    end: Vec<u32>,
    /// `children[first_child[t]..first_child[t + 1]]` are those of token `t`, the latest first.
    children: Vec<TokenId>,
    first_child: Vec<u32>,
}

impl LeftTree {
    pub fn new(splits: &Splits) -> Self {
        let width = splits.width();
        let tokens = || (0..width as u32).map(TokenId);
        let mut made: Vec<TokenId> = tokens().filter(|&t| splits.get(t).is_some()).collect();
        made.sort_unstable_by_key(|&token| {
            (splits.left(token), std::cmp::Reverse(splits.level(token)))
        });
        let mut first_child = vec![0; width + 1];
        for &token in &made {
            first_child[splits.left(token).index() + 1] += 1;
        }
        for index in 0..width {
            first_child[index + 1] += first_child[index];
        }
        let mut tree = Self {
            order: Vec::with_capacity(made.len()),
            place: vec![0; width],
            end: vec![0; width],
            children: made,
            first_child,
        };
        let mut open: Vec<(TokenId, u32)> = Vec::new();
        for root in tokens().filter(|&token| splits.level(token) == BASE) {
            tree.enter(root, &mut open);
            while let Some((token, next)) = open.last_mut() {
                let token = *token;
                match tree.children_of(token).get(*next as usize) {
                    Some(&child) => {
                        *next += 1;
                        tree.enter(child, &mut open);
                    }
                    None => {
                        tree.end[token.index()] = tree.order.len() as u32;
                        open.pop();
                    }
                }
            }
        }
        tree
    }

    fn enter(&mut self, token: TokenId, open: &mut Vec<(TokenId, u32)>) {
        self.place[token.index()] = self.order.len() as u32;
        self.order.push(token);
        open.push((token, 0));
    }

    fn children_of(&self, token: TokenId) -> &[TokenId] {
        let start = self.first_child[token.index()] as usize;
        let end = self.first_child[token.index() + 1] as usize;
        &self.children[start..end]
    }

    /// The runs of the order that may not follow a token: sorted and not adjacent.
    pub fn forbidden_runs(&self, splits: &Splits, left: TokenId) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        let (mut symbol, mut parent) = (left, None);
        loop {
            let merges = self.children_of(symbol);
            let too_late = parent.map_or(0, |parent| {
                merges.partition_point(|&merged| splits.level(merged) > splits.level(parent))
            });
            for &merged in &merges[too_late..] {
                if parent.is_none_or(|parent| precedes_left_death(splits, merged, parent)) {
                    self.push_runs(splits, merged, &mut runs);
                }
            }
            match splits.get(symbol) {
                Some((_, right)) => (parent, symbol) = (Some(symbol), right),
                None => break,
            }
        }
        runs.sort_unstable_by_key(|run| run.start);
        runs.dedup_by(|next, run| {
            let touches = next.start <= run.end;
            if touches {
                run.end = run.end.max(next.end);
            }
            touches
        });
        runs
    }

    /// The tokens at whose start the right part of a merge still exists when the merge happens.
    fn push_runs(&self, splits: &Splits, merged: TokenId, runs: &mut Vec<Range<u32>>) {
        let right = splits.right(merged);
        let parents = self.children_of(right);
        let level = splits.level(merged);
        let later = parents.partition_point(|&parent| splits.level(parent) > level);
        let end = match parents.get(later) {
            Some(next) => self.place[next.index()],
            None => self.end[right.index()],
        };
        runs.push(self.place[right.index()]..end);
        for &parent in &parents[later..] {
            if splits.level(parent) < level {
                break;
            }
            if precedes_right_death(splits, merged, parent) {
                runs.push(self.place[parent.index()]..self.end[parent.index()]);
            }
        }
    }

    pub fn tokens(&self, run: Range<u32>) -> &[TokenId] {
        &self.order[run.start as usize..run.end as usize]
    }

    pub fn memory_bytes(&self) -> usize {
        let ids = self.order.capacity() + self.children.capacity();
        (ids + self.place.capacity() + self.end.capacity() + self.first_child.capacity()) * 4
    }
}
