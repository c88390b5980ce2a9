//! The named places of documents: resources with their URIs and rules, and anchors.

use rustc_hash::FxHashMap;

use super::dialect::Dialect;
use super::document::{Document, NodeId, Value};
use super::rules::{Rules, UnknownVocabulary};
use super::uri;

/// A schema that carries an identifier of its own.
#[derive(Debug)]
struct Resource {
    uri: String,
    rules: Rules,
}

/// The named places of documents. Built once, when something first asks for it.
#[derive(Debug)]
pub struct Resources {
    resources: FxHashMap<NodeId, Resource>,
    by_uri: FxHashMap<String, NodeId>,
    /// By resource and name.
    anchors: FxHashMap<(NodeId, String), NodeId>,
    /// The dynamic ones among them by resource; `$recursiveAnchor` is the one without a name.
    dynamic_anchors: FxHashMap<NodeId, Vec<(String, NodeId)>>,
    /// `$schema`s with an unknown required vocabulary.
    pub unknown_vocabularies: Vec<(NodeId, UnknownVocabulary)>,
}

/// Keywords whose value is a schema, a list of schemas, or (`items`) either.
pub const WITH_SCHEMA: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is an object of schemas.
pub const WITH_SCHEMA_MAP: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// The subschemas that a keyword holds.
pub fn subschemas<'d>(
    document: &'d Document,
    keyword: &str,
    value: NodeId,
) -> impl Iterator<Item = NodeId> + 'd {
    let (single, list, map) = if WITH_SCHEMA.contains(&keyword) {
        match document.value(value) {
            Value::Array(items) => (None, items, None),
            _ => (Some(value), &[][..], None),
        }
    } else if WITH_SCHEMA_MAP.contains(&keyword) {
        (None, &[][..], Some(document.members(value)))
    } else {
        (None, &[][..], None)
    };
    let members = map.into_iter().flat_map(|members| members.iter()).map(|(_, node)| node);
    single.into_iter().chain(list.iter().copied()).chain(members)
}

impl Resources {
    /// Collects the names in the documents. `rules` are those of the first one, and of all others
    /// without `$schema`.
    pub fn new(document: &Document, rules: Rules) -> Self {
        let mut resources = Self {
            resources: FxHashMap::default(),
            by_uri: FxHashMap::default(),
            anchors: FxHashMap::default(),
            dynamic_anchors: FxHashMap::default(),
            unknown_vocabularies: Vec::new(),
        };
        let names_something = |(key, value): (&str, NodeId)| {
            let names = match document.value(value) {
                Value::String(_) => matches!(key, "$id" | "id" | "$anchor" | "$dynamicAnchor"),
                Value::Boolean(_) => key == "$recursiveAnchor",
                _ => false,
            };
            names && document.parent(value) != Some(NodeId::ROOT)
        };
        let whole = document.roots().count() > 1 || document.all_members().any(names_something);
        for (root, uri) in document.roots() {
            resources.resources.insert(root, Resource { uri: uri.to_owned(), rules });
            resources.by_uri.insert(uri.to_owned(), root);
            if !whole {
                resources.name(document, root, root);
                continue;
            }
            let mut pending = vec![(root, root)];
            while let Some((node, outer)) = pending.pop() {
                let resource = resources.name(document, node, outer);
                for (key, value) in document.members(node).iter() {
                    let schemas = subschemas(document, key, value);
                    pending.extend(schemas.map(|schema| (schema, resource)));
                }
            }
        }
        resources
    }

    /// Records the names of a schema and returns the resource it belongs to.
    fn name(&mut self, document: &Document, node: NodeId, outer: NodeId) -> NodeId {
        let members = document.members(node);
        let text = |key: &str| match members.get(key).map(|value| document.value(value)) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let mut rules = self.rules_of(outer);
        if node == outer {
            rules = self.own_rules(document, node, rules);
            self.resources.insert(node, Resource { uri: self.uri_of(node).to_owned(), rules });
        }
        if rules.dialect.reference_hides_siblings() && text("$ref").is_some() {
            return outer;
        }
        let mut resource = outer;
        // The rules around it decide whether it is an identifier; the identified schema has its own
        // rules.
        if let Some(id) = text(rules.dialect.id_keyword()) {
            let (uri, fragment) = uri::split_fragment(id);
            if !uri.is_empty() {
                let absolute = uri::resolve(self.uri_of(outer), uri);
                self.by_uri.entry(absolute.clone()).or_insert(node);
                if node != outer {
                    rules = self.own_rules(document, node, rules);
                }
                self.resources.insert(node, Resource { uri: absolute, rules });
                resource = node;
            }
            if let Some(name) = fragment.filter(|name| !name.is_empty() && !name.contains('/')) {
                self.anchors.entry((resource, name.to_owned())).or_insert(node);
            }
        }
        match rules.dialect {
            Dialect::Draft2020 => {
                for (key, dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                    let Some(name) = text(key) else { continue };
                    self.anchors.entry((resource, name.to_owned())).or_insert(node);
                    if dynamic {
                        let anchors = self.dynamic_anchors.entry(resource).or_default();
                        anchors.push((name.to_owned(), node));
                    }
                }
            }
            Dialect::Draft2019 => {
                if let Some(name) = text("$anchor") {
                    self.anchors.entry((resource, name.to_owned())).or_insert(node);
                }
                let recursive = members.get("$recursiveAnchor").map(|value| document.value(value));
                if resource == node && matches!(recursive, Some(Value::Boolean(true))) {
                    self.dynamic_anchors.entry(node).or_default().push((String::new(), node));
                }
            }
            _ => {}
        }
        resource
    }

    /// The rules of a resource's `$schema`; those around it if that is unknown.
    fn own_rules(&mut self, document: &Document, resource: NodeId, around: Rules) -> Rules {
        let Some(place) = document.members(resource).get("$schema") else { return around };
        let Value::String(uri) = document.value(place) else { return around };
        if let Some(dialect) = Dialect::of_uri(uri) {
            return Rules::draft(dialect);
        }
        let metaschema = document.root_of(uri::split_fragment(uri).0);
        match metaschema.map(|node| Rules::of_metaschema(document, node)) {
            Some(Ok(rules)) => rules,
            Some(Err(unknown)) => {
                self.unknown_vocabularies.push((place, unknown));
                around
            }
            None => around,
        }
    }

    /// The root of the resource of this absolute URI.
    pub fn find(&self, uri: &str) -> Option<NodeId> {
        self.by_uri.get(uri).copied()
    }

    /// The schema of this name in a resource.
    pub fn anchor(&self, resource: NodeId, name: String) -> Option<NodeId> {
        self.anchors.get(&(resource, name)).copied()
    }

    /// The dynamic anchors of a resource.
    pub fn dynamic_anchors(&self, resource: NodeId) -> &[(String, NodeId)] {
        self.dynamic_anchors.get(&resource).map_or(&[], Vec::as_slice)
    }

    pub fn uri_of(&self, resource: NodeId) -> &str {
        self.resources.get(&resource).map_or("", |resource| &resource.uri)
    }

    pub fn rules_of(&self, resource: NodeId) -> Rules {
        self.resources.get(&resource).map_or(Rules::ASSUMED, |resource| resource.rules)
    }

    /// The innermost schema with an identifier around a node.
    pub fn around(&self, document: &Document, place: NodeId) -> NodeId {
        if self.resources.len() == 1 {
            return NodeId::ROOT;
        }
        let mut node = place;
        while !self.resources.contains_key(&node) {
            match document.parent(node) {
                Some(parent) => node = parent,
                None => return node,
            }
        }
        node
    }
}
