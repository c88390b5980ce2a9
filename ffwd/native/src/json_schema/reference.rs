//! Where a `$ref` points: JSON pointers, anchors and the `$id`s of the document.

use rustc_hash::FxHashMap;

use super::dialect::Dialect;
use super::document::{Document, NodeId, Value};
use super::error::SchemaError;
use super::uri;

/// The named places of a document. Built once, when the first reference asks for it.
#[derive(Debug)]
pub struct References {
    /// The schemas that carry an identifier of their own, with their absolute URI.
    bases: FxHashMap<NodeId, String>,
    resources: FxHashMap<String, NodeId>,
    /// By resource and name.
    anchors: FxHashMap<(NodeId, String), NodeId>,
}

/// Keywords whose value is a schema, a list of schemas, or (`items`) either.
const WITH_SCHEMA: &[&str] = &[
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
const WITH_SCHEMA_MAP: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

impl References {
    pub fn new(document: &Document, dialect: Dialect) -> Self {
        let mut references = Self {
            bases: FxHashMap::default(),
            resources: FxHashMap::default(),
            anchors: FxHashMap::default(),
        };
        references.bases.insert(NodeId::ROOT, String::new());
        references.resources.insert(String::new(), NodeId::ROOT);
        let names_something = |(key, value): (&str, NodeId)| {
            (key == dialect.id_keyword() || key.ends_with("nchor"))
                && document.parent(value) != Some(NodeId::ROOT)
                && matches!(document.value(value), Value::String(_))
        };
        if !document.all_members().any(names_something) {
            references.name(document, dialect, NodeId::ROOT, NodeId::ROOT);
            return references;
        }
        let mut pending = vec![(NodeId::ROOT, NodeId::ROOT)];
        while let Some((node, outer)) = pending.pop() {
            let resource = references.name(document, dialect, node, outer);
            for (key, value) in document.members(node).iter() {
                if WITH_SCHEMA.contains(&key) {
                    match document.value(value) {
                        Value::Object(_) => pending.push((value, resource)),
                        Value::Array(items) => {
                            pending.extend(items.iter().map(|&item| (item, resource)));
                        }
                        _ => {}
                    }
                } else if WITH_SCHEMA_MAP.contains(&key) {
                    let members = document.members(value);
                    pending.extend(members.iter().map(|(_, schema)| (schema, resource)));
                }
            }
        }
        references
    }

    /// Records the names of a schema and returns the resource it belongs to.
    fn name(
        &mut self,
        document: &Document,
        dialect: Dialect,
        node: NodeId,
        outer: NodeId,
    ) -> NodeId {
        let members = document.members(node);
        let text = |key: &str| match members.get(key).map(|value| document.value(value)) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        if dialect.reference_hides_siblings() && text("$ref").is_some() {
            return outer;
        }
        let mut resource = outer;
        if let Some(id) = text(dialect.id_keyword()) {
            let (uri, fragment) = uri::split_fragment(id);
            if !uri.is_empty() {
                let base = self.bases.get(&outer).map_or("", String::as_str);
                let absolute = uri::resolve(base, uri);
                self.resources.entry(absolute.clone()).or_insert(node);
                self.bases.insert(node, absolute);
                resource = node;
            }
            if let Some(name) = fragment.filter(|name| !name.is_empty() && !name.contains('/')) {
                self.anchors.entry((resource, name.to_owned())).or_insert(node);
            }
        }
        if dialect >= Dialect::Draft2019 {
            for name in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
                self.anchors.entry((resource, name.to_owned())).or_insert(node);
            }
        }
        resource
    }

    /// The node that `reference`, the value of the `$ref` at `place`, points to.
    pub fn resolve(
        &self,
        document: &Document,
        place: NodeId,
        reference: &str,
    ) -> Result<NodeId, SchemaError> {
        let (uri, fragment) = uri::split_fragment(reference);
        let resource = self.resource_of(document, place);
        let resource = if uri.is_empty() {
            resource
        } else {
            let base = self.bases.get(&resource).map_or("", String::as_str);
            let absolute = uri::resolve(base, uri);
            *self.resources.get(&absolute).ok_or_else(|| {
                SchemaError::unsupported(
                    "$ref",
                    document.pointer(place),
                    format!(
                        "the reference {reference:?} leaves the document, and nothing is fetched; \
                         copy what it points to into `$defs`"
                    ),
                )
            })?
        };
        let unresolved = || {
            SchemaError::invalid(
                Some("$ref"),
                document.pointer(place),
                format!("the reference {reference:?} points to nothing in this document"),
            )
        };
        let fragment = uri::percent_decode(fragment.unwrap_or("")).ok_or_else(unresolved)?;
        let target = if fragment.is_empty() {
            Some(resource)
        } else if let Some(pointer) = fragment.strip_prefix('/') {
            follow(document, resource, pointer)
        } else {
            self.anchors.get(&(resource, fragment)).copied()
        };
        let target = target.ok_or_else(unresolved)?;
        match document.value(target) {
            Value::Object(_) | Value::Boolean(_) => Ok(target),
            other => Err(SchemaError::invalid(
                Some("$ref"),
                document.pointer(place),
                format!(
                    "the reference {reference:?} points to {}, not to a schema",
                    other.type_name()
                ),
            )),
        }
    }

    /// The innermost schema with an identifier around a node.
    fn resource_of(&self, document: &Document, place: NodeId) -> NodeId {
        if self.bases.len() == 1 {
            return NodeId::ROOT;
        }
        let mut node = place;
        while !self.bases.contains_key(&node) {
            match document.parent(node) {
                Some(parent) => node = parent,
                None => return NodeId::ROOT,
            }
        }
        node
    }
}

/// Follows the steps of a JSON pointer, its first `/` removed.
fn follow(document: &Document, from: NodeId, pointer: &str) -> Option<NodeId> {
    pointer.split('/').try_fold(from, |node, step| match document.value(node) {
        Value::Object(members) if step.contains('~') => {
            members.get(&step.replace("~1", "/").replace("~0", "~"))
        }
        Value::Object(members) => members.get(step),
        Value::Array(items) if step == "0" || !step.starts_with(['0', '+']) => {
            items.get(step.parse::<usize>().ok()?).copied()
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::document::DocumentLimits;
    use crate::json_schema::SchemaErrorKind;

    const LIMITS: DocumentLimits = DocumentLimits { bytes: 1 << 20, nodes: 1000, nesting: 64 };

    const DOCUMENT: &str = r##"{
        "$id": "http://example.com/root.json",
        "$defs": {
            "a/b": {"type": "string"},
            "c%d": {"$anchor": "named"},
            "inner": {
                "$id": "inner/item.json",
                "$defs": {"x": {"$anchor": "named"}},
                "items": {"$ref": "#/$defs/x"}
            },
            "list": [{}, {"title": "second"}]
        },
        "enum": [{"$id": "http://example.com/fake.json"}]
    }"##;

    fn resolved(place: &str, reference: &str) -> Result<String, SchemaErrorKind> {
        let document = Document::parse(DOCUMENT, LIMITS).unwrap();
        let references = References::new(&document, Dialect::Draft2020);
        let place = follow(&document, NodeId::ROOT, place).unwrap_or(NodeId::ROOT);
        references
            .resolve(&document, place, reference)
            .map(|node| document.pointer(node))
            .map_err(|error| error.kind)
    }

    #[test]
    fn references_find_their_targets() {
        for (place, reference, expected) in [
            ("", "#", ""),
            ("", "#/$defs/a~1b", "/$defs/a~1b"),
            ("", "#/%24defs/c%25d", "/$defs/c%d"),
            ("", "#named", "/$defs/c%d"),
            ("", "#/$defs/list/1", "/$defs/list/1"),
            ("", "root.json", ""),
            ("", "http://example.com/root.json#/$defs/inner", "/$defs/inner"),
            ("", "inner/item.json#/items", "/$defs/inner/items"),
            ("", "inner/item.json#named", "/$defs/inner/$defs/x"),
            ("$defs/inner/items", "#/$defs/x", "/$defs/inner/$defs/x"),
            ("$defs/inner/items", "#named", "/$defs/inner/$defs/x"),
            ("$defs/inner/items", "../root.json#named", "/$defs/c%d"),
        ] {
            assert_eq!(resolved(place, reference).as_deref(), Ok(expected), "{place} {reference}");
        }
    }

    #[test]
    fn references_to_nothing_are_refused() {
        for reference in ["#/nope", "#nope", "#/$defs/list/01", "#/$defs/list/2", "#/%zz", "#/$id"]
        {
            let kind = resolved("", reference).unwrap_err();
            assert!(matches!(kind, SchemaErrorKind::Invalid { .. }), "{reference}");
        }
        for reference in ["other.json", "http://example.com/fake.json", "http://example.org/#/a"] {
            let kind = resolved("", reference).unwrap_err();
            assert_eq!(kind, SchemaErrorKind::Unsupported { keyword: "$ref".into() });
        }
    }
}
