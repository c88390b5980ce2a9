//! Reads the keywords of subschemas, checks them and finds the subschemas that they lead to. Those
//! that apply in place are in `read_logic`, those for single types in `read_scalars`, `read_objects`
//! and `read_arrays`.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::dialect::{Dialect, Keyword};
use super::document::{Document, NodeId, Value};
use super::error::SchemaError;
use super::read_scalars::decimal;
use super::reference::References;
use super::schema::{Meaning, Schema, Types};
use crate::regex::{Ast, Decimal};

/// The keywords of a subschema by kind.
pub struct Found {
    values: [Option<NodeId>; Keyword::COUNT],
    /// As written: those that apply in place, and those that declare properties.
    pub(super) in_order: SmallVec<[Keyword; 4]>,
}

impl Found {
    fn new() -> Self {
        Self { values: [None; Keyword::COUNT], in_order: SmallVec::new() }
    }

    fn add(&mut self, keyword: Keyword, value: NodeId) {
        self.values[keyword as usize] = Some(value);
        if keyword.applies_in_place() || keyword.declares_properties() {
            self.in_order.push(keyword);
        }
    }

    fn hide_siblings_of_reference(&mut self) {
        if let Some(value) = self.get(Keyword::Reference) {
            *self = Self::new();
            self.add(Keyword::Reference, value);
        }
    }

    pub fn get(&self, keyword: Keyword) -> Option<NodeId> {
        self.values[keyword as usize]
    }
}

/// Reads subschemas and notes which others they lead to.
pub struct Reader<'d> {
    pub(super) document: &'d Document,
    pub(super) dialect: Dialect,
    /// Whether the document names its dialect.
    pub(super) explicit: bool,
    /// Whether any schema asks what others have evaluated.
    collects: OnceCell<bool>,
    pub(super) references: Option<References>,
    /// Patterns (by text, `false`) and formats (by name, `true`) that were read before.
    pub(super) languages: FxHashMap<(bool, &'d str), Option<Ast>>,
    pub witnesses: FxHashMap<Ast, &'static str>,
    pub meanings: Vec<Meaning>,
    pub schemas: Vec<Schema>,
    pending: Vec<NodeId>,
}

impl<'d> Reader<'d> {
    pub fn new(document: &'d Document, dialect: Dialect, explicit: bool) -> Self {
        Self {
            document,
            dialect,
            explicit,
            collects: OnceCell::new(),
            references: None,
            languages: FxHashMap::default(),
            witnesses: FxHashMap::default(),
            meanings: vec![Meaning::Unseen; document.len()],
            schemas: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Reads the root and all that it leads to.
    pub fn read(&mut self) -> Result<(), SchemaError> {
        self.visit(NodeId::ROOT);
        while let Some(node) = self.pending.pop() {
            self.meanings[node.index()] = self.schema(node)?;
        }
        Ok(())
    }

    fn schema(&mut self, node: NodeId) -> Result<Meaning, SchemaError> {
        let members = match self.document.value(node) {
            Value::Boolean(true) => return Ok(Meaning::Any),
            Value::Boolean(false) => return Ok(Meaning::Never),
            Value::Object(members) => members,
            other => {
                let message =
                    format!("a schema is an object or a boolean, not {}", other.type_name());
                return Err(SchemaError::invalid(None, self.document.pointer(node), message));
            }
        };
        let mut found = Found::new();
        for (key, value) in members.iter() {
            if let Some(keyword) = Keyword::of(key, self.dialect) {
                found.add(keyword, value);
            }
        }
        if self.dialect.reference_hides_siblings() {
            found.hide_siblings_of_reference();
        }
        let mut schema = Schema::new(node);
        self.types(&mut schema, &found)?;
        self.in_place(&mut schema, &found)?;
        self.numbers(&mut schema, &found)?;
        self.strings(&mut schema, &found)?;
        self.objects(&mut schema, &found)?;
        self.arrays(&mut schema, &found)?;
        self.values(&mut schema, &found)?;
        let meaning = schema.meaning(|list| SmallVec::from_slice(self.document.items(list)));
        if meaning != Meaning::Other {
            return Ok(meaning);
        }
        self.schemas.push(schema);
        Ok(Meaning::Schema(self.schemas.len() as u32 - 1))
    }

    pub(super) fn visit(&mut self, node: NodeId) {
        let meaning = &mut self.meanings[node.index()];
        if *meaning == Meaning::Unseen {
            *meaning = Meaning::Pending;
            self.pending.push(node);
        }
    }

    pub(super) fn visit_all(&mut self, list: NodeId) {
        let document = self.document;
        for &item in document.items(list) {
            self.visit(item);
        }
    }

    fn types(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        if let Some(node) = found.get(Keyword::Type) {
            schema.types = self.type_set(node)?;
        }
        Ok(())
    }

    pub(super) fn type_set(&self, node: NodeId) -> Result<Types, SchemaError> {
        let single = [node];
        let names = match self.document.value(node) {
            Value::Array(names) if !names.is_empty() => names,
            Value::String(_) => &single[..],
            _ => return Err(self.wrong(Keyword::Type, node, "a type's name or a list of them")),
        };
        names.iter().try_fold(Types::NONE, |types, &name| match self.document.value(name) {
            Value::String(text) => match Types::named(text) {
                Some(more) => Ok(types.with(more)),
                None => Err(SchemaError::invalid(
                    Some("type"),
                    self.document.pointer(name),
                    format!(
                        "{text:?} is not a type; the types are null, boolean, integer, number, \
                         string, array and object"
                    ),
                )),
            },
            _ => Err(self.wrong(Keyword::Type, name, "a type's name")),
        })
    }

    /// Whether it matters which members and items a keyword evaluates.
    pub(super) fn collects_evaluated(&self) -> bool {
        *self.collects.get_or_init(|| {
            let asks = |(key, _): (&str, NodeId)| {
                matches!(key, "unevaluatedProperties" | "unevaluatedItems")
            };
            self.document.all_members().any(asks)
        })
    }

    /// Whether a schema plainly accepts every value.
    pub(super) fn is_any(&self, node: NodeId) -> bool {
        match self.document.value(node) {
            Value::Boolean(accepts) => accepts,
            Value::Object(members) => {
                members.iter().all(|(key, _)| Keyword::of(key, self.dialect).is_none())
            }
            _ => false,
        }
    }

    /// Whether a schema plainly accepts no value.
    pub(super) fn is_never(&self, node: NodeId) -> bool {
        matches!(self.document.value(node), Value::Boolean(false))
    }

    pub(super) fn boolean(&self, keyword: Keyword, node: NodeId) -> Result<bool, SchemaError> {
        match self.document.value(node) {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.wrong(keyword, node, "a boolean")),
        }
    }

    pub(super) fn number(&self, keyword: Keyword, node: NodeId) -> Result<Decimal, SchemaError> {
        match self.document.value(node) {
            Value::Number(text) => decimal(self.document, node, text),
            _ => Err(self.wrong(keyword, node, "a number")),
        }
    }

    /// A count; the largest `u64` stands for all above it.
    pub(super) fn count(&self, keyword: Keyword, node: NodeId) -> Result<u64, SchemaError> {
        let value = self.number(keyword, node)?;
        if value.is_negative() || !value.is_integer() {
            return Err(self.wrong(keyword, node, "an integer of at least 0"));
        }
        Ok(value.to_u64().unwrap_or(u64::MAX))
    }

    pub(super) fn wrong(&self, keyword: Keyword, node: NodeId, expected: &str) -> SchemaError {
        let name = keyword.name();
        let actual = self.document.value(node).type_name();
        let message = format!("`{name}` must be {expected}; it is {actual}");
        SchemaError::invalid(Some(name), self.document.pointer(node), message)
    }

    pub(super) fn unsupported(&self, keyword: Keyword, node: NodeId, hint: &str) -> SchemaError {
        let name = keyword.name();
        let message = format!("`{name}` is not supported in this form; {hint}");
        SchemaError::unsupported(name, self.document.pointer(node), message)
    }
}
