//! Interned JSON values: equal values, in the sense of JSON Schema, have one id.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::document::{Document, NodeId, Value};
use super::error::{LimitExceeded, Result, SchemaError};
use super::memory;
use super::read_scalars::decimal;
use super::schema::Types;
use ffwd_regular::regex::Decimal;

/// An interned JSON value: equal values of one [`SchemaSet`](super::SchemaSet) have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

/// A value. Numbers compare by value, objects without regard to order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    Null,
    Boolean(bool),
    Number(Decimal),
    String(Arc<str>),
    Array(Arc<[ValueId]>),
    /// Sorted by name.
    Object(Arc<[(Arc<str>, ValueId)]>),
}

impl Constant {
    /// The type, which for integers is both that and number.
    pub fn types(&self) -> Types {
        match self {
            Self::Null => Types::NULL,
            Self::Boolean(_) => Types::BOOLEAN,
            Self::Number(number) if number.is_integer() => Types::INTEGER.with(Types::NUMBER),
            Self::Number(_) => Types::NUMBER,
            Self::String(_) => Types::STRING,
            Self::Array(_) => Types::ARRAY,
            Self::Object(_) => Types::OBJECT,
        }
    }
}

#[derive(Debug)]
struct Known {
    constant: Constant,
    /// For objects, the places of the members in the order in which they were first written.
    written: Box<[u32]>,
    /// The position of the value in the schema, if it is part of it.
    origin: Option<NodeId>,
}

#[derive(Debug)]
pub struct Values {
    known: Vec<Known>,
    ids: FxHashMap<Constant, ValueId>,
    of_nodes: FxHashMap<NodeId, ValueId>,
    maximum: u64,
    /// How many bytes of memory the values hold.
    pub(super) held: usize,
}

impl Values {
    pub fn new(maximum: u64) -> Self {
        Self {
            known: Vec::new(),
            ids: FxHashMap::default(),
            of_nodes: FxHashMap::default(),
            maximum,
            held: 0,
        }
    }

    pub fn get(&self, id: ValueId) -> &Constant {
        &self.known[id.0 as usize].constant
    }

    /// Returns the position of a value in the schema, if it is part of it.
    pub fn origin(&self, id: ValueId) -> Option<NodeId> {
        self.known[id.0 as usize].origin
    }

    /// The members of an object in the order in which it was first written.
    pub fn written(&self, id: ValueId) -> impl Iterator<Item = (&Arc<str>, ValueId)> {
        let known = &self.known[id.0 as usize];
        let members: &[(Arc<str>, ValueId)] = match &known.constant {
            Constant::Object(members) => members,
            _ => &[],
        };
        known.written.iter().map(|&place| {
            let (name, value) = &members[place as usize];
            (name, *value)
        })
    }

    pub fn scalar(
        &mut self,
        constant: Constant,
        origin: Option<NodeId>,
    ) -> Result<ValueId, LimitExceeded> {
        self.intern(constant, Box::from([]), origin)
    }

    pub fn object(&mut self, members: Vec<(Arc<str>, ValueId)>) -> Result<ValueId, LimitExceeded> {
        let mut sorted: Vec<(usize, (Arc<str>, ValueId))> =
            members.into_iter().enumerate().collect();
        sorted.sort_unstable_by(|a, b| a.1 .0.cmp(&b.1 .0));
        let mut written = vec![0; sorted.len()];
        for (place, (at, _)) in sorted.iter().enumerate() {
            written[*at] = place as u32;
        }
        let members = sorted.into_iter().map(|(_, member)| member).collect();
        self.intern(Constant::Object(members), written.into(), None)
    }

    fn intern(
        &mut self,
        constant: Constant,
        written: Box<[u32]>,
        origin: Option<NodeId>,
    ) -> Result<ValueId, LimitExceeded> {
        if let Some(&known) = self.ids.get(&constant) {
            return Ok(known);
        }
        if self.known.len() as u64 >= self.maximum {
            return Err(LimitExceeded { limit: "schemas", maximum: self.maximum });
        }
        let id = ValueId(self.known.len() as u32);
        self.held += memory::value(&constant);
        self.known.push(Known { constant: constant.clone(), written, origin });
        self.ids.insert(constant, id);
        Ok(id)
    }

    /// The value at a node of the schema document.
    pub fn of_node(&mut self, document: &Document, node: NodeId) -> Result<ValueId> {
        if let Some(&known) = self.of_nodes.get(&node) {
            return Ok(known);
        }
        let id = self.read(document, node, true)?;
        self.of_nodes.insert(node, id);
        Ok(id)
    }

    /// The value of a document of its own.
    pub fn of_text(&mut self, document: &Document) -> Result<ValueId> {
        self.read(document, NodeId::ROOT, false)
    }

    /// Nesting is bounded by the document's.
    fn read(&mut self, document: &Document, node: NodeId, of_schema: bool) -> Result<ValueId> {
        let mut written = Vec::new();
        let constant = match document.value(node) {
            Value::Null => Constant::Null,
            Value::Boolean(value) => Constant::Boolean(value),
            Value::Number(text) => Constant::Number(decimal(document, node, text)?),
            Value::String(text) => Constant::String(text.into()),
            Value::Array(items) => {
                let items = items.iter().map(|&item| self.read(document, item, of_schema));
                Constant::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let mut sorted: Vec<(Arc<str>, ValueId, u32)> = Vec::with_capacity(members.len());
                for (place, (name, value)) in members.iter().enumerate() {
                    let value = self.read(document, value, of_schema)?;
                    sorted.push((name.into(), value, place as u32));
                }
                sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                written = vec![0; sorted.len()];
                for (place, member) in sorted.iter().enumerate() {
                    written[member.2 as usize] = place as u32;
                }
                Constant::Object(sorted.into_iter().map(|(name, value, _)| (name, value)).collect())
            }
        };
        self.intern(constant, written.into(), of_schema.then_some(node))
            .map_err(|error| SchemaError::limit(error, document.pointer(node)))
    }
}
