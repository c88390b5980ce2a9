//! Token counts of any interval of a piece, usually without encoding more than a few tokens.
//!
//! The encodings of all prefixes are the paths of one tree: the parent of an offset is the start of
//! the last token that ends there. The encoding of an interval usually joins that of the whole text
//! after a few tokens. If both have the same token before some offset, and that offset is an
//! ancestor of the interval's end in the tree, the rest is the path between the two.

use std::ops::Range;

use super::append::PieceAppender;
use super::table::BpeTable;
use crate::vocabulary::TokenId;

/// How much of an interval is read at first to find where its encoding joins the piece's.
const FIRST_BYTES: usize = 64;

/// A place in the piece, as a node of the tree.
#[derive(Clone, Copy, Debug)]
struct PieceNode {
    /// The last token of the encoding of the text before; of no meaning at the beginning.
    last: TokenId,
    /// How many tokens that encoding has.
    depth: u32,
    /// The number of the node, depth first, and the first number that is not below it.
    number: u32,
    end: u32,
}

/// A piece prepared for counting the tokens of its intervals.
#[derive(Clone, Debug)]
pub struct PieceIntervals {
    text: Box<[u8]>,
    nodes: Vec<PieceNode>,
}

impl PieceIntervals {
    /// Encodes all prefixes of a piece, for [`Self::count`] with the same table.
    pub fn new(table: &BpeTable, text: &[u8]) -> Self {
        let mut appender = PieceAppender::new();
        appender.extend(table, text);
        let root = PieceNode { last: TokenId(0), depth: 0, number: 0, end: 1 };
        let mut nodes = Vec::with_capacity(text.len() + 1);
        nodes.push(root);
        nodes.extend(appender.lasts().map(|(last, depth)| PieceNode {
            last,
            depth,
            number: 0,
            end: 1,
        }));
        // `end` is first the size of the node's subtree, then the end of its numbers.
        let parent = |nodes: &[PieceNode], at: usize| at - table.length(nodes[at].last);
        for at in (1..nodes.len()).rev() {
            let parent = parent(&nodes, at);
            nodes[parent].end += nodes[at].end;
        }
        let mut numbered = vec![0; nodes.len()];
        numbered[0] = 1;
        for at in 1..nodes.len() {
            let parent = parent(&nodes, at);
            let node = &mut nodes[at];
            node.number = numbered[parent];
            node.end += node.number;
            numbered[parent] = node.end;
            numbered[at] = node.number + 1;
        }
        Self { text: text.into(), nodes }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Counts the tokens of an interval, encoded alone. Parts outside the piece are ignored.
    pub fn count(&self, table: &BpeTable, range: Range<usize>) -> usize {
        let end = range.end.min(self.text.len());
        let start = range.start.min(end);
        let interval = &self.text[start..end];
        let (longest, whole) = table.begin(interval.iter().copied());
        if whole.is_some() {
            return 1;
        }
        let last = self.nodes[end];
        if start == 0 {
            return last.depth as usize;
        }
        let mut tokens = Vec::new();
        let mut rest = 0;
        table.encode_until(interval, longest, &mut tokens, |at, token| {
            let below = self.tokens_between(start + at, token, last);
            rest = below.unwrap_or(0);
            below.is_some()
        });
        tokens.len() + rest
    }

    /// Counts the tokens of an interval, encoded alone after a space. Parts outside the piece are
    /// ignored.
    pub(crate) fn count_after_space(&self, table: &BpeTable, range: Range<usize>) -> usize {
        let end = range.end.min(self.text.len());
        let start = range.start.min(end);
        let interval = &self.text[start..end];
        let spaced = || std::iter::once(b' ').chain(interval.iter().copied());
        if table.begin(spaced()).1.is_some() {
            return 1;
        }
        let last = self.nodes[end];
        // Usually the first few bytes show where the encoding joins that of the piece.
        let mut read = FIRST_BYTES;
        loop {
            let is_all = read >= interval.len();
            let text: Vec<u8> = spaced().take(read.saturating_add(1)).collect();
            let (longest, _) = table.begin(text.iter().copied());
            let mut tokens = Vec::new();
            let mut rest = None;
            table.encode_until(&text, longest, &mut tokens, |at, token| {
                rest = self.tokens_between(start + at - 1, token, last);
                rest.is_some()
            });
            match rest {
                Some(rest) => return tokens.len() + rest,
                None if is_all => return tokens.len(),
                None => read = read.saturating_mul(4),
            }
        }
    }

    /// How many tokens the piece has from a place to a node, if its encoding up to the node has
    /// this token before that place.
    #[inline]
    fn tokens_between(&self, at: usize, token: TokenId, to: PieceNode) -> Option<usize> {
        let node = &self.nodes[at];
        let is_above = node.number <= to.number && to.number < node.end;
        // Before the beginning there is no token.
        let meets = at > 0 && node.last == token && is_above;
        meets.then(|| (to.depth - node.depth) as usize)
    }
}
