//! Why a JSON value in progress refuses what would be well-formed.

use std::sync::Arc;

use crate::error::Result;
use crate::explain::expected::Explaining;
use crate::json::keys::decoded;
use crate::json::tables::Json;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayStateId, StackId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_json_schema::SchemaId;

/// Why a well-formed continuation is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What stands against it.
    pub why: Why,
    /// The schemas that do not allow it.
    pub schemas: Vec<SchemaId>,
}

/// What stands against a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// An object may not close: the names that it needs, and how many members more at least.
    Missing {
        /// Required names that are missing.
        names: Vec<Arc<str>>,
        /// How many more members are needed at least.
        members: u64,
    },
    /// No further member is allowed.
    NoMember,
    /// An array may not close.
    TooShort,
    /// No further item is allowed.
    NoItem,
    /// The key that begins with these bytes is not allowed here: it is a repetition, or its place
    /// is before an earlier key.
    NotNow {
        /// The declared name that the key begins.
        name: Arc<str>,
    },
    /// No allowed key begins with these bytes.
    UnknownKey,
}

impl Explaining<'_> {
    /// The array of which the value on top of a stack is an item.
    fn array_around(&self, json: &Json, stack: StackId) -> Option<ArrayStateId> {
        let &Cell { frame: Frame::Value(_) | Frame::Part(_), parent, .. } =
            self.automaton.cell(stack)
        else {
            return None;
        };
        match self.automaton.cell(parent).frame {
            Frame::AwaitItem(pending) | Frame::AwaitComparedItem(pending) => {
                Some(json.arrays.item_of(pending))
            }
            _ => None,
        }
    }

    /// Why JSON values in progress refuse what begins with these bytes.
    ///
    /// # Errors
    /// A limit of what is built on the way is passed.
    pub fn obstacles(&self, threads: &[Thread], refused: &[u8]) -> Result<Vec<Obstacle>> {
        let (Some(json), Some(&byte)) = (self.automaton.json(), refused.first()) else {
            return Ok(Vec::new());
        };
        let mut found: Vec<Obstacle> = Vec::new();
        let after = self.after_lexemes(threads)?;
        for thread in threads.iter().chain(&after) {
            let array = self.array_around(json, thread.stack).filter(|_| byte == b']');
            if let Some(array) = array.filter(|&array| json.arrays.array_verdict(array) == 0) {
                let schemas = self.asking_for_array(json, array);
                let obstacle = Obstacle { why: Why::TooShort, schemas };
                if !found.contains(&obstacle) {
                    found.push(obstacle);
                }
                continue;
            }
            let why = match (self.automaton.cell(thread.stack).frame, byte) {
                (Frame::ObjectOpen(id) | Frame::ObjectAfter(id), b'}')
                    if json.object_verdict(id) == 0 =>
                {
                    let facts = json.object_facts(id);
                    Some(Why::Missing { names: facts.missing, members: facts.members })
                }
                (Frame::ObjectAfter(id), b',') if !json.object_may_go_on(id) => Some(Why::NoMember),
                (Frame::ArrayOpen(id) | Frame::ArrayAfter(id), b']')
                    if json.arrays.array_verdict(id) == 0 =>
                {
                    Some(Why::TooShort)
                }
                (Frame::ArrayAfter(id), b',') => {
                    let parent = self.automaton.cell(thread.stack).parent;
                    json.item(self.automaton, id, parent)?.is_none().then_some(Why::NoItem)
                }
                (Frame::ObjectOpen(_) | Frame::ObjectKey(_), _)
                    if thread.lexeme == ThreadLexeme::Key =>
                {
                    self.refused_key(json, thread, refused)
                }
                _ => None,
            };
            if let Some(why) = why {
                let obstacle = Obstacle { why, schemas: self.asking(json, thread.stack) };
                if !found.contains(&obstacle) {
                    found.push(obstacle);
                }
            }
        }
        Ok(found)
    }

    fn refused_key(&self, json: &Json, thread: &Thread, refused: &[u8]) -> Option<Why> {
        let node = json.keys.node(thread.key_node());
        if node.is_before_quote() {
            return None;
        }
        let end = refused.iter().position(|&byte| byte == b'"');
        let rest = &refused[..end.unwrap_or(refused.len())];
        let name = json.keys.refused_name(&node, rest, end.is_some());
        Some(name.map_or(Why::UnknownKey, |written| Why::NotNow { name: decoded(written) }))
    }
}
