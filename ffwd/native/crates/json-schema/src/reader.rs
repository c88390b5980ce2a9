//! Reads the keywords of subschemas, checks them and finds the subschemas that they lead to. Those
//! that apply in place are in `read_logic`, those for single types in `read_scalars`, `read_objects`
//! and `read_arrays`.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::dialect::Keyword;
use super::document::{Document, NodeId, Value};
use super::error::{shortened, LimitExceeded, Result, SchemaError, SchemaErrorKind};
use super::options::{Policy, SchemaOptions};
use super::read_scalars::decimal;
use super::resources::Resources;
use super::rules::Rules;
use super::schema::{Meaning, Schema, Types};
use super::scopes::Scopes;
use ffwd_bounds::meter;
use ffwd_regular::regex::{Ast, Decimal};

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

/// The features that a document uses anywhere, which determine how it must be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// Schemas that may be read by other rules than the root.
    pub mixed_rules: bool,
    /// References that depend on the path on which they are reached.
    pub dynamic_references: bool,
    /// Keywords that depend on what others have evaluated.
    pub unevaluated: bool,
}

impl Features {
    pub fn of(document: &Document) -> Self {
        let mut features = Self { mixed_rules: document.roots().count() > 1, ..Self::default() };
        for (key, value) in document.all_members() {
            match key {
                "$schema" => features.mixed_rules |= document.parent(value) != Some(NodeId::ROOT),
                "$dynamicRef" | "$recursiveRef" => features.dynamic_references = true,
                "unevaluatedProperties" | "unevaluatedItems" => features.unevaluated = true,
                _ => {}
            }
        }
        features
    }
}

/// Reads subschemas and notes which others they lead to.
pub struct Reader<'d> {
    pub(super) document: &'d Document,
    pub(super) options: &'d SchemaOptions,
    features: Features,
    /// Those of the first document.
    root_rules: Rules,
    /// Those of the schema that is being read.
    pub(super) rules: Rules,
    resources: OnceCell<Resources>,
    pub scopes: Option<Scopes>,
    /// The schema that is being read, by the node that it is known by.
    current: NodeId,
    /// A document of a reference whose search is pending.
    pub missing: Option<String>,
    /// Whether the search for missing documents is done.
    searched: bool,
    /// The unsupported keywords that were ignored.
    pub left_out: Vec<SchemaError>,
    exceeded: Option<LimitExceeded>,
    /// Patterns (by text, `false`) and formats (by name, `true`) that were read before.
    pub(super) languages: FxHashMap<(bool, &'d str), Option<Ast>>,
    pub witnesses: FxHashMap<Ast, &'static str>,
    pub meanings: Vec<Meaning>,
    pub schemas: Vec<Schema>,
    pending: Vec<NodeId>,
}

impl<'d> Reader<'d> {
    /// `searched` says that no document can be added any more.
    pub fn new(
        document: &'d Document,
        options: &'d SchemaOptions,
        rules: Rules,
        searched: bool,
    ) -> Self {
        let features = Features::of(document);
        Self {
            document,
            options,
            features,
            root_rules: rules,
            rules,
            resources: OnceCell::new(),
            scopes: None,
            current: NodeId::ROOT,
            missing: None,
            searched,
            left_out: Vec::new(),
            exceeded: None,
            languages: FxHashMap::default(),
            witnesses: FxHashMap::default(),
            meanings: vec![Meaning::Unseen; document.len()],
            schemas: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Reads a schema and all that it refers to. The schema is the root unless references are
    /// dynamic.
    pub fn read(&mut self, first: NodeId) -> Result<()> {
        self.begin()?;
        self.meanings[first.index()] = Meaning::Pending;
        self.pending.push(first);
        self.read_pending()
    }

    /// Reads the schemas below a root that is no schema, and all that they refer to.
    pub fn read_parts(&mut self) -> Result<()> {
        self.begin()?;
        self.meanings[NodeId::ROOT.index()] = Meaning::Any;
        self.document.parts().for_each(|part| self.visit(part));
        self.read_pending()
    }

    fn begin(&mut self) -> Result<()> {
        if self.features.mixed_rules {
            for (place, unknown) in self.resources().unknown_vocabularies.clone() {
                let message = format!(
                    "the metaschema requires the vocabulary {:?}, which is not known",
                    shortened(&unknown.0)
                );
                let pointer = self.document.pointer(place);
                self.leave_out(SchemaError::unsupported("$schema", pointer, message))?;
            }
        }
        if self.features.dynamic_references {
            let maximum = self.options.limits.dynamic_scopes;
            let mut scopes = Scopes::new(self.document.len(), maximum);
            let anchors = self.resources().dynamic_anchors(NodeId::ROOT);
            let root = scopes.enter(None, NodeId::ROOT, NodeId::ROOT, anchors);
            root.map_err(|error| SchemaError::limit(error, String::new()))?;
            self.scopes = Some(scopes);
        }
        Ok(())
    }

    fn read_pending(&mut self) -> Result<()> {
        while let Some(node) = self.pending.pop() {
            self.exceeded = self.exceeded.or(meter::charge(4).err());
            self.current = node;
            let source = self.scopes.as_ref().map_or(node, |scopes| scopes.source(node));
            self.meanings[node.index()] = self.schema(source)?;
            if let Some(exceeded) = self.exceeded {
                return Err(SchemaError::limit(exceeded, self.document.pointer(source)));
            }
        }
        Ok(())
    }

    pub(super) fn resources(&self) -> &Resources {
        self.resources.get_or_init(|| Resources::new(self.document, self.root_rules))
    }

    /// The named places, if they were needed.
    pub fn take_resources(&mut self) -> Option<Resources> {
        self.resources.take()
    }

    fn schema(&mut self, node: NodeId) -> Result<Meaning> {
        if self.features.mixed_rules {
            let resources = self.resources();
            self.rules = resources.rules_of(resources.around(self.document, node));
        }
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
            if let Some(keyword) = self.rules.keyword(key) {
                found.add(keyword, value);
            }
        }
        if self.rules.dialect.reference_hides_siblings() {
            found.hide_siblings_of_reference();
        }
        let mut schema = Schema::new(self.current, self.rules.dialect);
        self.types(&mut schema, &found)?;
        self.in_place(&mut schema, &found)?;
        self.numbers(&mut schema, &found)?;
        self.strings(&mut schema, &found)?;
        self.objects(&mut schema, &found)?;
        self.arrays(&mut schema, node, &found)?;
        self.values(&mut schema, &found)?;
        let meaning = schema.meaning(|list| SmallVec::from_slice(self.document.items(list)));
        match meaning {
            Meaning::Other => {
                self.schemas.push(schema);
                Ok(Meaning::Schema(self.schemas.len() as u32 - 1))
            }
            Meaning::Same(target) => {
                let scopes = self.scopes.as_ref();
                Ok(Meaning::Same(
                    scopes.map_or(target, |scopes| scopes.child(self.current, target)),
                ))
            }
            meaning => Ok(meaning),
        }
    }

    /// Notes that the schema that is being read leads to another one.
    pub(super) fn visit(&mut self, node: NodeId) {
        let node = match self.enter(node) {
            Ok(node) => node,
            Err(exceeded) => {
                self.exceeded = Some(exceeded);
                return;
            }
        };
        if node.index() >= self.meanings.len() {
            self.meanings.resize(node.index() + 1, Meaning::Unseen);
        }
        let meaning = &mut self.meanings[node.index()];
        if *meaning == Meaning::Unseen {
            *meaning = Meaning::Pending;
            self.pending.push(node);
        }
    }

    /// Returns the identity of a subschema of the current schema.
    fn enter(&mut self, node: NodeId) -> Result<NodeId, LimitExceeded> {
        let Some(scopes) = &mut self.scopes else { return Ok(node) };
        let resources =
            self.resources.get_or_init(|| Resources::new(self.document, self.root_rules));
        let resource = resources.around(self.document, node);
        scopes.enter(Some(self.current), node, resource, resources.dynamic_anchors(resource))
    }

    /// Returns the target of a dynamic anchor on the path to the current schema.
    pub(super) fn bound(&self, name: &str) -> Option<NodeId> {
        self.scopes.as_ref()?.bound(self.current, name)
    }

    /// Records a reference to a missing document.
    pub(super) fn miss(&mut self, keyword: Keyword, place: NodeId, uri: String) -> Result<()> {
        let message = format!(
            "there is no document {:?}, and nothing is fetched; give it in the registry, or copy \
             what is needed of it into `$defs`",
            shortened(&uri)
        );
        let error = SchemaError::unsupported(keyword.name(), self.document.pointer(place), message);
        if self.searched {
            return self.leave_out(error);
        }
        self.missing = Some(uri);
        Err(error)
    }

    /// Skips an unsupported feature if the policy allows that.
    pub(super) fn leave_out(&mut self, error: SchemaError) -> Result<()> {
        match (self.options.parsing.policy, &error.kind) {
            (Policy::Lenient, SchemaErrorKind::Unsupported { .. }) => {
                self.left_out.push(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    pub(super) fn visit_all(&mut self, list: NodeId) {
        let document = self.document;
        for &item in document.items(list) {
            self.visit(item);
        }
    }

    fn types(&mut self, schema: &mut Schema, found: &Found) -> Result<()> {
        if let Some(node) = found.get(Keyword::Type) {
            schema.types = self.type_set(node)?;
        }
        Ok(())
    }

    pub(super) fn type_set(&self, node: NodeId) -> Result<Types> {
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
                        "{:?} is not a type; the types are null, boolean, integer, number, \
                         string, array and object",
                        shortened(text)
                    ),
                )),
            },
            _ => Err(self.wrong(Keyword::Type, name, "a type's name")),
        })
    }

    /// Whether it matters which members and items a keyword evaluates.
    pub(super) fn collects_evaluated(&self) -> bool {
        self.features.unevaluated
    }

    /// Whether a schema clearly accepts every value.
    pub(super) fn is_any(&self, node: NodeId) -> bool {
        match self.document.value(node) {
            Value::Boolean(accepts) => accepts,
            Value::Object(members) => {
                members.iter().all(|(key, _)| self.rules.keyword(key).is_none())
            }
            _ => false,
        }
    }

    /// Whether a schema clearly accepts no value.
    pub(super) fn is_never(&self, node: NodeId) -> bool {
        matches!(self.document.value(node), Value::Boolean(false))
    }

    pub(super) fn boolean(&self, keyword: Keyword, node: NodeId) -> Result<bool> {
        match self.document.value(node) {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.wrong(keyword, node, "a boolean")),
        }
    }

    pub(super) fn number(&self, keyword: Keyword, node: NodeId) -> Result<Decimal> {
        match self.document.value(node) {
            Value::Number(text) => decimal(self.document, node, text),
            _ => Err(self.wrong(keyword, node, "a number")),
        }
    }

    /// A count; the largest `u64` stands for all above it.
    pub(super) fn count(&self, keyword: Keyword, node: NodeId) -> Result<u64> {
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
}
