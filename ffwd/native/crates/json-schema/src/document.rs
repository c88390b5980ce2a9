//! JSON documents in one arena: nodes are numbered in document order, know their parent, and hold
//! their numbers as written. The first document is the schema; what it refers to follows it.

use super::error::{LimitExceeded, Result, SchemaError};
use super::parser::Parser;

/// A value in a document. Numbers grow in document order; the root of the first one is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    pub const ROOT: NodeId = NodeId(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A string: a range of the source, or of the buffer of decoded strings if it had escapes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub start: u32,
    pub length: u32,
    pub decoded: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Null,
    Boolean(bool),
    Number(Text),
    String(Text),
    Array {
        start: u32,
        length: u32,
    },
    /// `sorted` is one more than the place of its permutation in [`Document::sorted`], or 0.
    Object {
        start: u32,
        length: u32,
        sorted: u32,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub parent: NodeId,
}

/// Objects with more members than this are searched by bisection.
pub(super) const SMALL_OBJECT: usize = 12;

/// The start of one of the documents, its URI, and what messages call it.
#[derive(Clone, Debug)]
struct Root {
    node: NodeId,
    uri: Box<str>,
    name: Box<str>,
}

/// The prefix of the URIs of several schemas that are read together; their places follow it.
const PARTS: &str = "ffwd:/schemas/";

#[derive(Clone, Debug, Default)]
pub struct Document {
    source: String,
    /// In the order in which they were read.
    roots: Vec<Root>,
    /// The originals of the last nodes, which are aliases.
    aliases: Vec<NodeId>,
    pub(super) decoded: String,
    pub(super) nodes: Vec<Node>,
    /// The children of arrays, each array's in one run.
    pub(super) items: Vec<NodeId>,
    /// The members of objects, each object's in one run, in the order written.
    pub(super) members: Vec<(Text, NodeId)>,
    /// For each large object, its members' offsets sorted by key.
    pub(super) sorted: Vec<Box<[u32]>>,
}

/// A JSON value, one level deep.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    /// As written.
    Number(&'a str),
    String(&'a str),
    Array(&'a [NodeId]),
    Object(Members<'a>),
}

impl Value<'_> {
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// The members of an object.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    document: &'a Document,
    run: &'a [(Text, NodeId)],
    sorted: Option<&'a [u32]>,
}

impl<'a> Members<'a> {
    pub fn len(&self) -> usize {
        self.run.len()
    }

    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// In the order written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, NodeId)> + 'a {
        let document = self.document;
        self.run.iter().map(move |&(key, node)| (document.text(key), node))
    }

    pub fn get(&self, key: &str) -> Option<NodeId> {
        match self.sorted {
            None => self.iter().find(|&(name, _)| name == key).map(|(_, node)| node),
            Some(sorted) => {
                let name = |offset: u32| self.document.text(self.run[offset as usize].0);
                let place = sorted.binary_search_by(|&offset| name(offset).cmp(key)).ok()?;
                Some(self.run[sorted[place] as usize].1)
            }
        }
    }
}

/// How large and how deep a document may be.
#[derive(Clone, Copy, Debug)]
pub struct DocumentLimits {
    pub bytes: u64,
    pub nodes: u64,
    pub nesting: u64,
}

impl Document {
    pub fn parse(text: &str, limits: DocumentLimits) -> Result<Self> {
        let mut document = Self::default();
        document.nodes.reserve(text.len() / 16);
        document.members.reserve(text.len() / 24);
        document.append("", text, limits)
    }

    /// Reads several schemas, each with its name in messages, below a root that is no schema.
    pub fn of_parts(parts: &[(String, &str)], limits: DocumentLimits) -> Result<Self> {
        let mut document = Self::default();
        document.roots.push(Root { node: NodeId::ROOT, uri: "".into(), name: "".into() });
        document.nodes.push(Node { kind: Kind::Null, parent: NodeId::ROOT });
        for (place, (name, text)) in parts.iter().enumerate() {
            document = document.append_as(&format!("{PARTS}{place}"), name, text, limits)?;
        }
        Ok(document)
    }

    /// The roots of the schemas that were read together, in order.
    pub fn parts(&self) -> impl Iterator<Item = NodeId> + '_ {
        let parts = self.roots.iter().filter(|root| root.uri.starts_with(PARTS));
        parts.map(|root| root.node)
    }

    /// Reads another document. The limits cover all documents together.
    pub fn append(self, uri: &str, text: &str, limits: DocumentLimits) -> Result<Self> {
        self.append_as(uri, uri, text, limits)
    }

    fn append_as(
        mut self,
        uri: &str,
        name: &str,
        text: &str,
        limits: DocumentLimits,
    ) -> Result<Self> {
        let node = NodeId(self.nodes.len() as u32);
        self.roots.push(Root { node, uri: uri.into(), name: name.into() });
        // Ranges are 32 bits wide.
        let bytes = limits.bytes.min(u64::from(u32::MAX / 2));
        if (self.source.len() + text.len()) as u64 > bytes {
            let exceeded = LimitExceeded { limit: "schema_bytes", maximum: bytes };
            return Err(SchemaError::limit(exceeded, self.place_in(node, String::new())));
        }
        let before = self.source.len();
        self.source.push_str(text);
        Parser::new(text, before, self, limits).run()
    }

    /// Adds another name for a node. No document can be read after that.
    pub fn add_alias(&mut self, node: NodeId) {
        self.nodes.push(self.nodes[node.index()]);
        self.aliases.push(node);
    }

    /// Forgets the further names, so that the document can be read again.
    pub fn remove_aliases(&mut self) {
        self.nodes.truncate(self.nodes.len() - self.aliases.len());
        self.aliases.clear();
    }

    /// Removes the children for which `keep` is false from a container. No other node changes its
    /// number.
    pub fn retain(&mut self, container: NodeId, keep: impl Fn(NodeId) -> bool) {
        let mut kept = 0;
        match &mut self.nodes[container.index()].kind {
            Kind::Array { start, length } => {
                let run = &mut self.items[*start as usize..(*start + *length) as usize];
                for place in 0..run.len() {
                    if keep(run[place]) {
                        run.swap(kept, place);
                        kept += 1;
                    }
                }
                *length = kept as u32;
            }
            Kind::Object { start, length, sorted } => {
                let run = &mut self.members[*start as usize..(*start + *length) as usize];
                for place in 0..run.len() {
                    if keep(run[place].1) {
                        run.swap(kept, place);
                        kept += 1;
                    }
                }
                (*length, *sorted) = (kept as u32, 0);
            }
            _ => {}
        }
    }

    /// Replaces a schema by the one that accepts every value.
    pub fn accept_all(&mut self, schema: NodeId) {
        self.nodes[schema.index()].kind = Kind::Boolean(true);
    }

    /// The roots of the documents, with their URIs.
    pub fn roots(&self) -> impl Iterator<Item = (NodeId, &str)> {
        self.roots.iter().map(|root| (root.node, &*root.uri))
    }

    /// The root of the document that was read under this URI.
    pub fn root_of(&self, uri: &str) -> Option<NodeId> {
        let known = self.roots.iter().find(|root| *root.uri == *uri);
        known.map(|root| root.node).filter(|_| !uri.is_empty())
    }

    /// The original of an alias; any other node itself.
    pub fn named(&self, node: NodeId) -> NodeId {
        let first = self.nodes.len() - self.aliases.len();
        match node.index().checked_sub(first) {
            Some(place) => self.aliases[place],
            None => node,
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn text(&self, text: Text) -> &str {
        let buffer = if text.decoded { self.decoded.as_str() } else { &self.source };
        &buffer[text.start as usize..(text.start + text.length) as usize]
    }

    pub fn value(&self, node: NodeId) -> Value<'_> {
        match self.nodes[node.index()].kind {
            Kind::Null => Value::Null,
            Kind::Boolean(value) => Value::Boolean(value),
            Kind::Number(text) => Value::Number(self.text(text)),
            Kind::String(text) => Value::String(self.text(text)),
            Kind::Array { start, length } => {
                Value::Array(&self.items[start as usize..(start + length) as usize])
            }
            Kind::Object { start, length, sorted } => Value::Object(Members {
                document: self,
                run: &self.members[start as usize..(start + length) as usize],
                sorted: sorted
                    .checked_sub(1)
                    .and_then(|place| self.sorted.get(place as usize))
                    .map(|permutation| &**permutation),
            }),
        }
    }

    /// The items of an array; nothing for another value.
    pub fn items(&self, node: NodeId) -> &[NodeId] {
        match self.value(node) {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// The members of an object; none for another value.
    pub fn members(&self, node: NodeId) -> Members<'_> {
        match self.value(node) {
            Value::Object(members) => members,
            _ => Members { document: self, run: &[], sorted: None },
        }
    }

    /// The members of all objects of all documents, in no particular order.
    pub fn all_members(&self) -> impl Iterator<Item = (&str, NodeId)> {
        self.members.iter().map(|&(key, node)| (self.text(key), node))
    }

    /// The node that holds this one; `None` for a root.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let node = self.named(node);
        Some(self.nodes[node.index()].parent).filter(|&parent| parent != node)
    }

    /// The JSON pointer of a node, after its document's name and a `#` if that is not the first
    /// document.
    pub fn pointer(&self, node: NodeId) -> String {
        let mut steps: Vec<String> = Vec::new();
        let mut child = self.named(node);
        while let Some(parent) = self.parent(child) {
            match self.value(parent) {
                Value::Array(items) => {
                    let place = items.iter().position(|&item| item == child);
                    steps.extend(place.map(|place| place.to_string()));
                }
                Value::Object(members) => {
                    let key = members.iter().find(|&(_, member)| member == child);
                    steps.extend(key.map(|(key, _)| escaped(key)));
                }
                _ => {}
            }
            child = parent;
        }
        let pointer = steps.iter().rev().fold(String::new(), |pointer, step| pointer + "/" + step);
        self.place_in(child, pointer)
    }

    /// A place in the document of this root.
    fn place_in(&self, root: NodeId, pointer: String) -> String {
        match self.roots.iter().find(|document| document.node == root) {
            Some(document) if root != NodeId::ROOT => format!("{}#{pointer}", document.name),
            _ => pointer,
        }
    }
}

/// A step of a JSON pointer.
pub fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}
