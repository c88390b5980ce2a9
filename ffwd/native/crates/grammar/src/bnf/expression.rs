//! Sequences, alternatives, groups and repetitions while they are read, without recursion.

use super::text::Cursor;
use crate::{Grammar, GrammarError, GrammarErrorKind, NodeId};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// Groups and repetitions that may nest.
pub(crate) const MAX_NESTING: usize = 1000;

/// The body of a rule that is being read: a stack of groups.
#[derive(Debug, Default)]
pub(crate) struct Expression {
    /// Those around the innermost group.
    outer: Vec<Group>,
    group: Group,
}

#[derive(Debug, Default)]
struct Group {
    /// The offset of its opening bracket.
    opened: usize,
    alternatives: Vec<NodeId>,
    sequence: Vec<NodeId>,
    /// How deeply its parts nest, and the last of them.
    depth: usize,
    last_depth: usize,
}

impl Group {
    fn close_sequence(&mut self, grammar: &mut Grammar) -> Result<(), LimitExceeded> {
        let sequence = grammar.seq(std::mem::take(&mut self.sequence))?;
        self.alternatives.push(sequence);
        Ok(())
    }

    fn push(&mut self, node: NodeId, depth: usize) {
        self.sequence.push(node);
        self.last_depth = depth;
        self.depth = self.depth.max(depth);
    }
}

impl Expression {
    pub fn push(&mut self, node: NodeId) {
        self.group.push(node, 1);
    }

    /// Whether the alternative is empty so far.
    pub fn is_empty(&self) -> bool {
        self.group.sequence.is_empty()
    }

    /// Whether a group is open that is empty so far.
    pub fn has_just_opened(&self) -> bool {
        self.is_nested() && self.is_empty() && self.group.alternatives.is_empty()
    }

    /// Whether a group is open.
    pub fn is_nested(&self) -> bool {
        !self.outer.is_empty()
    }

    /// Returns the offset of the innermost opening bracket.
    pub fn opened(&self) -> usize {
        self.group.opened
    }

    pub fn open(&mut self, cursor: &Cursor<'_>, offset: usize) -> Result<(), GrammarError> {
        let most = meter::nesting_within(MAX_NESTING);
        if self.outer.len() >= most {
            return Err(cursor.limit(offset, "nesting", most));
        }
        let group = Group { opened: offset, ..Group::default() };
        self.outer.push(std::mem::replace(&mut self.group, group));
        Ok(())
    }

    pub fn alternative(&mut self, grammar: &mut Grammar) -> Result<(), LimitExceeded> {
        self.group.close_sequence(grammar)
    }

    /// Ends the innermost group; `false` if none is open.
    pub fn close(
        &mut self,
        grammar: &mut Grammar,
        cursor: &Cursor<'_>,
    ) -> Result<bool, GrammarError> {
        let Some(outer) = self.outer.pop() else { return Ok(false) };
        let mut group = std::mem::replace(&mut self.group, outer);
        group.close_sequence(grammar)?;
        let node = grammar.choice(group.alternatives)?;
        self.nest(cursor, group.opened, group.depth + 1)?;
        self.group.push(node, group.depth + 1);
        Ok(true)
    }

    /// Repeats the last part; `false` if there is none.
    pub fn repeat(
        &mut self,
        grammar: &mut Grammar,
        cursor: &Cursor<'_>,
        offset: usize,
        (min, max): (u32, Option<u32>),
    ) -> Result<bool, GrammarError> {
        let Some(part) = self.group.sequence.pop() else { return Ok(false) };
        if let Some(max) = max.filter(|&max| max < min) {
            let message = format!(
                "the counts `{{{min},{max}}}` are out of order: write the smaller number first"
            );
            return Err(cursor.error(offset, GrammarErrorKind::Contradiction, message));
        }
        let depth = self.group.last_depth + 1;
        self.nest(cursor, offset, depth)?;
        let node = grammar.repeat(part, min, max)?;
        self.group.push(node, depth);
        Ok(true)
    }

    fn nest(&self, cursor: &Cursor<'_>, offset: usize, depth: usize) -> Result<(), GrammarError> {
        let most = meter::nesting_within(MAX_NESTING);
        if self.outer.len() + depth > most {
            return Err(cursor.limit(offset, "nesting", most));
        }
        Ok(())
    }

    /// The whole, where all groups are closed.
    pub fn finish(mut self, grammar: &mut Grammar) -> Result<NodeId, LimitExceeded> {
        self.group.close_sequence(grammar)?;
        grammar.choice(self.group.alternatives)
    }
}
