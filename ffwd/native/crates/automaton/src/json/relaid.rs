//! The layouts of values on stacks.

use crate::error::Result;
use crate::json::layouts::{Choice, LayoutMarks};
use crate::json::punctuation::index;
use crate::json::tables::Json;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LayoutId, LexemeId, StackId};
use crate::stacks::on::On;
use ffwd_bounds::meter;
use ffwd_regular::expr::Verdict;

impl Json {
    /// The lexemes between the parts of the container whose frame is on top of this stack.
    pub(crate) fn marks(&self, on: &impl On, stack: StackId) -> Result<LayoutMarks> {
        let &Cell { layout, depth, .. } = on.cell(stack);
        let entry = self.layouts.get(layout);
        if let Some(indentation) = &entry.indentation {
            return indentation.marks(depth, |spec| on.add_lexeme(spec));
        }
        let line = match entry.choice {
            Choice::Lines { line, .. } => Some(line),
            _ => None,
        };
        Ok(LayoutMarks {
            line,
            may_be_flat: true,
            comma: entry.comma,
            close_object: LexemeId(entry.first.0 + index::CLOSE_OBJECT),
            close_array: LexemeId(entry.first.0 + index::CLOSE_ARRAY),
        })
    }

    /// A bracket of the values around a stack, by its place in [`index`].
    pub(crate) fn bracket(&self, on: &impl On, stack: StackId, place: u32) -> LexemeId {
        self.layouts.bracket(on.cell(stack).layout, place)
    }

    /// The stack below the first part of a container that has no line break before it.
    pub(crate) fn flat(&self, on: &impl On, stack: StackId) -> Result<StackId> {
        self.decided(on, stack, None, 0)
    }

    /// The stack after a lexeme of the container above, with the layout that the lexeme has
    /// decided. `None` if the lexeme is a key or an item.
    pub(crate) fn decided(
        &self,
        on: &impl On,
        stack: StackId,
        lexeme: Option<LexemeId>,
        accept: Verdict,
    ) -> Result<StackId> {
        match self.layouts.after(on.cell(stack).layout, lexeme, accept) {
            Some(layout) => relaid(on, stack, layout),
            None => Ok(stack),
        }
    }
}

/// A stack with another layout of the value that it belongs to.
pub(crate) fn relaid(on: &impl On, stack: StackId, layout: LayoutId) -> Result<StackId> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut at = stack;
    let mut relaid = loop {
        let &Cell { frame, parent, .. } = on.cell(at);
        match frame {
            Frame::Layout(_) => break on.push(Frame::Layout(layout), parent)?,
            _ if at == StackId::END => return Ok(stack),
            _ => frames.push(frame),
        }
        at = parent;
    };
    meter::charge(frames.len())?;
    for frame in frames.into_iter().rev() {
        relaid = on.push(frame, relaid)?;
    }
    Ok(relaid)
}

/// Returns whether two stacks differ only in the layout that the second has chosen.
pub(crate) fn is_relaid(on: &impl On, stack: StackId, other: StackId) -> Result<bool> {
    let (own, layout) = (on.cell(stack).layout, on.cell(other).layout);
    Ok(stack == other || own != layout && relaid(on, stack, layout)? == other)
}
