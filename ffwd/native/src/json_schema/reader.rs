//! Reads the keywords of subschemas, and refuses what is not supported. Those for single types are
//! in `read_scalars` and `read_containers`.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::dialect::{Dialect, Keyword};
use super::document::{Document, NodeId, Value};
use super::error::SchemaError;
use super::read_scalars::decimal;
use super::reference::References;
use super::schema::{InPlace, Meaning, Schema, Types};
use crate::regex::{Ast, Decimal};

/// The keywords of a subschema by kind.
pub struct Found([Option<NodeId>; Keyword::COUNT]);

impl Found {
    pub fn get(&self, keyword: Keyword) -> Option<NodeId> {
        self.0[keyword as usize]
    }
}

/// Reads subschemas and notes which others they lead to.
pub struct Reader<'d> {
    pub(super) document: &'d Document,
    pub(super) dialect: Dialect,
    /// Whether the document names its dialect.
    pub(super) explicit: bool,
    references: Option<References>,
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
        let mut found = Found([None; Keyword::COUNT]);
        let mut schema = Schema::new(node);
        let mut own_seen = false;
        for (key, value) in members.iter() {
            let Some(keyword) = Keyword::of(key, self.dialect) else { continue };
            found.0[keyword as usize] = Some(value);
            let in_place = match keyword {
                Keyword::Reference => InPlace::Reference(self.reference(value)?),
                Keyword::AllOf => InPlace::AllOf(value),
                Keyword::AnyOf => InPlace::AnyOf(value),
                Keyword::OneOf => InPlace::OneOf(value),
                Keyword::Properties | Keyword::Required | Keyword::AdditionalProperties => {
                    if !own_seen {
                        own_seen = true;
                        schema.in_place_before_own = schema.in_place.len();
                    }
                    continue;
                }
                _ => continue,
            };
            schema.in_place.push(in_place);
        }
        if !own_seen {
            schema.in_place_before_own = schema.in_place.len();
        }
        if self.dialect.reference_hides_siblings() && found.get(Keyword::Reference).is_some() {
            schema.in_place.retain(|kind| matches!(kind, InPlace::Reference(_)));
            schema.in_place_before_own = schema.in_place.len();
            found = Found([None; Keyword::COUNT]);
        }
        self.types(&mut schema, &found)?;
        self.logic(&mut schema, &found)?;
        self.numbers(&mut schema, &found)?;
        self.strings(&mut schema, &found)?;
        self.objects(&mut schema, &found)?;
        self.arrays(&mut schema, &found)?;
        self.values(&mut schema, &found)?;
        for kind in schema.in_place.clone() {
            match kind {
                InPlace::Reference(target) => self.visit(target),
                InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
                    self.visit_all(list);
                }
                InPlace::Not(_) | InPlace::If { .. } | InPlace::Dependencies(_) => {}
            }
        }
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

    fn type_set(&self, node: NodeId) -> Result<Types, SchemaError> {
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

    /// `allOf` and its like, and the logic that is only supported where it has no effect.
    fn logic(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        for keyword in [Keyword::AllOf, Keyword::AnyOf, Keyword::OneOf] {
            if let Some(node) = found.get(keyword) {
                match self.document.value(node) {
                    Value::Array(branches) if !branches.is_empty() => {}
                    _ => return Err(self.wrong(keyword, node, "a list of at least one schema")),
                }
            }
        }
        for keyword in [Keyword::RecursiveReference, Keyword::DynamicReference] {
            if let Some(node) = found.get(keyword) {
                return Err(self.unsupported(keyword, node, "use `$ref`"));
            }
        }
        if let Some(node) = found.get(Keyword::If) {
            let branches = [Keyword::Then, Keyword::Else].map(|keyword| found.get(keyword));
            if branches.into_iter().flatten().any(|branch| !self.is_any(branch)) {
                return Err(self.unsupported(Keyword::If, node, "use `anyOf` with both cases"));
            }
        }
        if let Some(node) = found.get(Keyword::Not) {
            self.negation(schema, node)?;
        }
        Ok(())
    }

    /// `not`, where it comes down to types.
    fn negation(&mut self, schema: &mut Schema, node: NodeId) -> Result<(), SchemaError> {
        if self.is_any(node) {
            schema.types = Types::NONE;
            return Ok(());
        }
        let members = match self.document.value(node) {
            Value::Boolean(_) => return Ok(()),
            Value::Object(members) => members,
            _ => return Err(self.wrong(Keyword::Not, node, "a schema")),
        };
        let mut keywords =
            members.iter().filter(|(key, _)| Keyword::of(key, self.dialect).is_some());
        if let (Some(("type", types)), None) = (keywords.next(), keywords.next()) {
            let types = self.type_set(types)?;
            let only_integers = types.has(Types::INTEGER) && !types.has(Types::NUMBER);
            if !only_integers || !schema.types.has(Types::NUMBER) {
                schema.types = schema.types.without(types);
                return Ok(());
            }
        }
        let hint = "say what is allowed, by `enum`, `anyOf` or `type`";
        Err(self.unsupported(Keyword::Not, node, hint))
    }

    fn reference(&mut self, node: NodeId) -> Result<NodeId, SchemaError> {
        let Value::String(reference) = self.document.value(node) else {
            return Err(self.wrong(Keyword::Reference, node, "a reference in a string"));
        };
        let references =
            self.references.get_or_insert_with(|| References::new(self.document, self.dialect));
        references.resolve(self.document, node, reference)
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
