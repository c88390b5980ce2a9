//! A document's subschemas, as far as the root reaches them.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::document::{Document, NodeId};
use super::error::SchemaError;
use super::options::SchemaOptions;
use super::reader::Reader;
use super::resources::Resources;
use super::rules::Rules;
use super::schema::{InPlace, Meaning, Schema};
use super::scopes::Scopes;
use super::search::search;
use crate::regex::Ast;

/// A document whose reachable subschemas have been read.
#[derive(Debug)]
pub struct Program {
    pub document: Document,
    /// Those of the root.
    pub rules: Rules,
    pub schemas: Vec<Schema>,
    meanings: Vec<Meaning>,
    /// For the language of a format, a text that belongs to it.
    pub witnesses: FxHashMap<Ast, &'static str>,
    scopes: Option<Scopes>,
    resources: Option<Resources>,
    /// What is not supported and was left out, where the policy allows that.
    pub left_out: Vec<SchemaError>,
}

impl Program {
    /// What a subschema comes down to; never `Same`.
    pub fn meaning(&self, node: NodeId) -> Meaning {
        self.meanings[node.index()]
    }

    /// Where a subschema or a value stands, as a JSON pointer.
    pub fn pointer(&self, node: NodeId) -> String {
        self.document.pointer(node)
    }

    /// What a subschema, the node below a schema's keyword or behind its reference, is known by: the
    /// same subschema may mean different things on different ways.
    pub fn child(&self, of: &Schema, node: NodeId) -> NodeId {
        self.scopes.as_ref().map_or(node, |scopes| scopes.child(of.node, node))
    }

    /// Reads a schema: what its root reaches, in the documents that it leads to.
    ///
    /// # Errors
    /// The text is not JSON, a keyword is used in a way that is not valid or not supported, or a
    /// limit is passed.
    pub fn read(text: &str, options: &SchemaOptions) -> Result<Self, SchemaError> {
        let mut document = Document::parse(text, options.limits.document())?;
        let mut searched = false;
        loop {
            let rules = match Rules::of_root(&document) {
                Ok(rules) => rules,
                Err(uri) if !searched && options.registry.get(&uri).is_some() => {
                    document = search(document, options)?;
                    searched = true;
                    continue;
                }
                Err(_) => Rules::ASSUMED,
            };
            let mut reader = Reader::new(&document, options, rules, searched);
            match reader.read() {
                Err(_) if reader.missing.is_some() => {
                    document = search(document, options)?;
                    searched = true;
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    let resources = reader.take_resources();
                    let Reader { meanings, schemas, witnesses, scopes, left_out, .. } = reader;
                    for &node in scopes.iter().flat_map(Scopes::aliases) {
                        document.add_alias(node);
                    }
                    let mut program = Self {
                        document,
                        rules,
                        schemas,
                        meanings,
                        witnesses,
                        scopes,
                        resources,
                        left_out,
                    };
                    program.refuse_circles()?;
                    program.shorten_chains();
                    return Ok(program);
                }
            }
        }
    }

    /// The rules by which the schema at a node is read.
    pub fn rules_at(&self, node: NodeId) -> Rules {
        match &self.resources {
            Some(resources) => resources.rules_of(resources.around(&self.document, node)),
            None => self.rules,
        }
    }

    /// For each node of the documents, whether the root reaches it as a schema.
    pub fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.meanings.len()];
        for (place, meaning) in self.meanings.iter().enumerate() {
            if *meaning != Meaning::Unseen {
                reached[self.document.named(NodeId(place as u32)).index()] = true;
            }
        }
        reached
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
                    let schema = &self.schemas[number as usize];
                    for kind in &schema.in_place {
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
                    targets.iter_mut().for_each(|target| *target = self.child(schema, *target));
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
