//! A document's subschemas, as far as the root reaches them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::dialect::Dialect;
use super::document::{Document, NodeId, Value};
use super::error::SchemaError;
use super::reader::Reader;
use super::schema::{InPlace, Meaning, Schema};
use crate::regex::Ast;

/// A document whose reachable subschemas have been read.
#[derive(Debug)]
pub struct Program {
    pub document: Document,
    pub dialect: Dialect,
    pub schemas: Vec<Schema>,
    meanings: Vec<Meaning>,
    /// For the language of a format, a text that belongs to it.
    pub witnesses: FxHashMap<Ast, &'static str>,
}

impl Program {
    /// What a subschema comes down to; never `Same`.
    pub fn meaning(&self, node: NodeId) -> Meaning {
        self.meanings[node.index()]
    }

    /// The node that a subschema of a schema is known by.
    pub fn child(&self, _of: &Schema, node: NodeId) -> NodeId {
        node
    }

    /// Reads what the root reaches.
    ///
    /// # Errors
    /// A keyword is used in a way that is not valid or not supported.
    pub fn read(document: Document) -> Result<Self, SchemaError> {
        let (dialect, explicit) =
            match document.members(NodeId::ROOT).get("$schema").map(|node| document.value(node)) {
                Some(Value::String(uri)) => (Dialect::of_uri(uri), true),
                _ => (Dialect::Draft2020, false),
            };
        let mut reader = Reader::new(&document, dialect, explicit);
        reader.read()?;
        let Reader { meanings, schemas, witnesses, .. } = reader;
        let mut program = Self { document, dialect, schemas, meanings, witnesses };
        program.refuse_circles()?;
        program.shorten_chains();
        Ok(program)
    }

    /// Lets every `Same` name its end, so that following it is one step.
    fn shorten_chains(&mut self) {
        let mut chain: Vec<usize> = Vec::new();
        for start in 0..self.meanings.len() {
            let mut place = start;
            while let Meaning::Same(target) = self.meanings[place] {
                chain.push(place);
                place = target.index();
            }
            let end = self.meanings[place];
            for place in chain.drain(..) {
                self.meanings[place] = end;
            }
        }
    }

    /// Refuses subschemas that apply themselves to the same value again.
    fn refuse_circles(&self) -> Result<(), SchemaError> {
        const FRESH: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut colours = vec![FRESH; self.document.len()];
        let targets = |node: NodeId| -> SmallVec<[NodeId; 4]> {
            let mut targets = SmallVec::new();
            match self.meanings[node.index()] {
                Meaning::Same(target) => targets.push(target),
                Meaning::Schema(number) => {
                    for kind in &self.schemas[number as usize].in_place {
                        match *kind {
                            InPlace::Reference(target) => targets.push(target),
                            InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
                                targets.extend_from_slice(self.document.items(list));
                            }
                            InPlace::Not(node) => targets.push(node),
                            InPlace::If { test, then, otherwise } => {
                                targets.push(test);
                                targets.extend(then);
                                targets.extend(otherwise);
                            }
                            InPlace::Dependencies(node) => {
                                let needs = self.document.members(node).iter();
                                let is_schema =
                                    |&node: &NodeId| self.document.items(node).is_empty();
                                targets.extend(needs.map(|(_, node)| node).filter(is_schema));
                            }
                        }
                    }
                }
                _ => {}
            }
            targets
        };
        for start in 0..self.document.len() as u32 {
            if colours[start as usize] != FRESH
                || !matches!(self.meanings[start as usize], Meaning::Same(_) | Meaning::Schema(_))
            {
                continue;
            }
            colours[start as usize] = OPEN;
            let mut path = vec![(NodeId(start), targets(NodeId(start)), 0)];
            while let Some((node, next, place)) = path.last_mut() {
                let Some(&target) = next.get(*place) else {
                    colours[node.index()] = DONE;
                    path.pop();
                    continue;
                };
                *place += 1;
                match colours[target.index()] {
                    FRESH => {
                        colours[target.index()] = OPEN;
                        path.push((target, targets(target), 0));
                    }
                    OPEN => {
                        return Err(SchemaError::invalid(
                            Some("$ref"),
                            self.document.pointer(target),
                            "the schema refers to itself for the same value, without end; put the \
                             reference under a property or an item"
                                .into(),
                        ));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
