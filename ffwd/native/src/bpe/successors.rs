//! The tokens that may not follow a token, all at once.
//!
//! A token `b` may not follow `a` if a symbol `x` of `a`'s right spine and a symbol `y` of `b`'s
//! left spine merge at a rank before `x` dies and not after `y` does (see `pair`). Call `x` the
//! parent of every token whose split has `x` on the left: this is a tree over all tokens, and the
//! tokens with `y` on their left spine are those at and below `y`. The order here is depth first,
//! with the children of a token from the latest rank to the earliest, so those for which `y` dies
//! no sooner than at some rank are one run: `y`, and what lies below its first children.

use std::ops::Range;

use super::splits::{Splits, BASE, NEVER};
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
            (splits.left(token), std::cmp::Reverse(splits.rank(token)))
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
        for root in tokens().filter(|&token| splits.rank(token) == BASE) {
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

    /// The runs of the order that may not follow a token, sorted, none touching another. Only
    /// for splits whose ranks are in order.
    pub fn forbidden_runs(&self, splits: &Splits, left: TokenId) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        let (mut symbol, mut death) = (left, NEVER);
        loop {
            let merges = self.children_of(symbol);
            let alive = merges.partition_point(|&merged| splits.rank(merged) >= death);
            for &merged in &merges[alive..] {
                let (right, rank) = (splits.right(merged), splits.rank(merged));
                let below = self.children_of(right);
                let die_later = below.partition_point(|&parent| splits.rank(parent) >= rank);
                let end = match below.get(die_later) {
                    Some(next) => self.place[next.index()],
                    None => self.end[right.index()],
                };
                runs.push(self.place[right.index()]..end);
            }
            match splits.get(symbol) {
                Some((_, right)) => (symbol, death) = (right, splits.rank(symbol)),
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

    pub fn tokens(&self, run: Range<u32>) -> &[TokenId] {
        &self.order[run.start as usize..run.end as usize]
    }

    pub fn memory_bytes(&self) -> usize {
        let ids = self.order.capacity() + self.children.capacity();
        (ids + self.place.capacity() + self.end.capacity() + self.first_child.capacity()) * 4
    }
}
