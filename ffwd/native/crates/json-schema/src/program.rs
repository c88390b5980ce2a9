//! A document's subschemas, as far as the root reaches them.

use rustc_hash::FxHashMap;

use super::circles::CircleParts;
use super::document::{Document, NodeId};
use super::error::{Result, SchemaError};
use super::options::SchemaOptions;
use super::reader::Reader;
use super::resources::Resources;
use super::rules::Rules;
use super::schema::{Meaning, Schema};
use super::scopes::Scopes;
use super::search::search;
use ffwd_regular::regex::Ast;

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
    circle_parts: CircleParts,
    resources: Option<Resources>,
    /// The unsupported keywords that were ignored, if the policy allows that.
    pub left_out: Vec<SchemaError>,
}

/// The results of a reader, without the document that it borrows.
struct ReadSchemas {
    resources: Option<Resources>,
    meanings: Vec<Meaning>,
    schemas: Vec<Schema>,
    witnesses: FxHashMap<Ast, &'static str>,
    scopes: Option<Scopes>,
    left_out: Vec<SchemaError>,
}

impl ReadSchemas {
    fn of(mut reader: Reader<'_>) -> Self {
        let resources = reader.take_resources();
        let Reader { meanings, schemas, witnesses, scopes, left_out, .. } = reader;
        Self { resources, meanings, schemas, witnesses, scopes, left_out }
    }
}

impl Program {
    /// Returns the meaning of a subschema; never `Same`.
    pub fn meaning(&self, node: NodeId) -> Meaning {
        self.meanings[node.index()]
    }

    /// Returns the JSON pointer of a subschema or a value.
    pub fn pointer(&self, node: NodeId) -> String {
        self.document.pointer(node)
    }

    /// Returns the identity of a subschema, the node below a schema's keyword or behind its
    /// reference: on different paths one subschema may have different meanings.
    pub fn child(&self, of: &Schema, node: NodeId) -> NodeId {
        let Some(scopes) = &self.scopes else { return node };
        let of = self.circle_parts.get(&of.node).unwrap_or(&of.node);
        scopes.child(*of, node)
    }

    pub(super) fn set_meaning(&mut self, node: NodeId, meaning: Meaning) {
        self.meanings[node.index()] = meaning;
    }

    /// Gives the own keywords of a schema by number a separate node; the schema is the member of a
    /// circle.
    pub(super) fn add_part(&mut self, member: NodeId, number: usize) -> NodeId {
        let part = NodeId(self.document.len() as u32);
        self.document.add_alias(self.document.named(member));
        self.circle_parts.insert(part, member);
        self.schemas[number].node = part;
        self.meanings.resize(part.index(), Meaning::Unseen);
        self.meanings.push(Meaning::Schema(number as u32));
        part
    }

    /// Reads the part of a schema that its root reaches, also in other documents.
    ///
    /// # Errors
    /// The text is not JSON, a keyword is used in a way that is not valid or not supported, or a
    /// limit is passed.
    pub fn read(text: &str, options: &SchemaOptions) -> Result<Self> {
        let mut document = Document::parse(text, options.limits.document())?;
        let mut searched = false;
        loop {
            let rules = match Rules::of_root(&document) {
                Ok(rules) => rules,
                Err(uri) if !searched && options.parsing.registry.get(&uri).is_some() => {
                    document = search(document, options)?;
                    searched = true;
                    continue;
                }
                Err(_) => Rules::ASSUMED,
            };
            let mut reader = Reader::new(&document, options, rules, searched);
            match reader.read(NodeId::ROOT) {
                Err(_) if reader.missing.is_some() => {
                    document = search(document, options)?;
                    searched = true;
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    let found = ReadSchemas::of(reader);
                    return Self::built(document, rules, found);
                }
            }
        }
    }

    /// Reads several schemas, each with its name in messages, and the documents that they refer to.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of_parts(parts: &[(String, &str)], options: &SchemaOptions) -> Result<Self> {
        let document = search(Document::of_parts(parts, options.limits.document())?, options)?;
        let mut reader = Reader::new(&document, options, Rules::ASSUMED, true);
        reader.read_parts()?;
        let found = ReadSchemas::of(reader);
        Self::built(document, Rules::ASSUMED, found)
    }

    /// Returns the identities of the schemas of [`Self::of_parts`].
    pub fn parts(&self) -> Vec<NodeId> {
        let known = |part| match &self.scopes {
            Some(scopes) => scopes.child(NodeId::ROOT, part),
            None => part,
        };
        self.document.parts().map(known).collect()
    }

    /// Reads a schema of a document that has all others it leads to, and no aliases.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of_document(document: Document, first: NodeId, options: &SchemaOptions) -> Result<Self> {
        let rules = Rules::of_root(&document).unwrap_or(Rules::ASSUMED);
        let mut reader = Reader::new(&document, options, rules, true);
        reader.read(first)?;
        let found = ReadSchemas::of(reader);
        Self::built(document, rules, found)
    }

    fn built(mut document: Document, rules: Rules, found: ReadSchemas) -> Result<Self> {
        let ReadSchemas { resources, meanings, schemas, witnesses, scopes, left_out } = found;
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
            circle_parts: CircleParts::default(),
            resources,
            left_out,
        };
        program.settle_circles()?;
        program.shorten_chains();
        Ok(program)
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

    /// Points every `Same` to the end of its chain, so that following it is one step.
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
}
