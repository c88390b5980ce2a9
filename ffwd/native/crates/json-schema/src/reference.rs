//! The targets of references: JSON pointers, anchors and the `$id`s of the documents.

use super::document::{Document, NodeId, Value};
use super::error::{shortened, SchemaError};
use super::resources::Resources;
use super::uri;

/// The target of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub node: NodeId,
    /// The resource that the reference names.
    pub resource: NodeId,
    /// Whether it names an anchor.
    pub by_name: bool,
}

/// Why a reference has no target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The document of this absolute URI is missing.
    Missing(String),
    /// There is nothing, or no schema, at that place.
    Wrong(SchemaError),
}

/// The target of `reference`, the value of `keyword` at `place`.
pub fn resolve(
    document: &Document,
    resources: &Resources,
    keyword: &str,
    place: NodeId,
    reference: &str,
) -> Result<Target, Unresolved> {
    let (uri, fragment) = uri::split_fragment(reference);
    let mut resource = resources.around(document, place);
    if !uri.is_empty() {
        let absolute = uri::resolve(resources.uri_of(resource), uri);
        match resources.find(&absolute) {
            Some(found) => resource = found,
            None => return Err(Unresolved::Missing(absolute)),
        }
    }
    let wrong = |what: String| {
        let message = format!("the reference {:?} points to {what}", shortened(reference));
        let pointer = document.pointer(place);
        Unresolved::Wrong(SchemaError::invalid(Some(keyword), pointer, message))
    };
    let nothing = || wrong("nothing in this document".into());
    let fragment = uri::percent_decode(fragment.unwrap_or("")).ok_or_else(nothing)?;
    let by_name = !fragment.is_empty() && !fragment.starts_with('/');
    let node = if fragment.is_empty() {
        Some(resource)
    } else if let Some(pointer) = fragment.strip_prefix('/') {
        follow(document, resource, pointer)
    } else {
        resources.anchor(resource, fragment)
    };
    let node = node.ok_or_else(nothing)?;
    match document.value(node) {
        Value::Object(_) | Value::Boolean(_) => Ok(Target { node, resource, by_name }),
        other => Err(wrong(format!("{}, not to a schema", other.type_name()))),
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
    use crate::document::DocumentLimits;
    use crate::rules::Rules;

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

    const OTHER: &str = r##"{
        "$defs": {"x": {"$anchor": "y"}, "z": {"$id": "z", "$dynamicAnchor": "w"}}
    }"##;

    fn resolved(place: &str, reference: &str) -> Result<String, Unresolved> {
        let document = Document::parse(DOCUMENT, LIMITS).unwrap();
        let document = document.append("http://example.com/other/o.json", OTHER, LIMITS).unwrap();
        let resources = Resources::new(&document, Rules::ASSUMED);
        let place = follow(&document, NodeId::ROOT, place).unwrap_or(NodeId::ROOT);
        let target = resolve(&document, &resources, "$ref", place, reference)?;
        Ok(document.pointer(target.node))
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
            ("", "other/o.json#y", "http://example.com/other/o.json#/$defs/x"),
            ("", "/other/z#w", "http://example.com/other/o.json#/$defs/z"),
        ] {
            assert_eq!(resolved(place, reference).as_deref(), Ok(expected), "{place} {reference}");
        }
    }

    #[test]
    fn references_to_nothing_are_refused() {
        for reference in ["#/nope", "#nope", "#/$defs/list/01", "#/$defs/list/2", "#/%zz", "#/$id"]
        {
            let error = resolved("", reference).unwrap_err();
            assert!(matches!(error, Unresolved::Wrong(_)), "{reference}");
        }
        for (reference, missing) in [
            ("other.json", "http://example.com/other.json"),
            ("http://example.com/fake.json", "http://example.com/fake.json"),
            ("http://example.org/#/a", "http://example.org/"),
        ] {
            let error = resolved("", reference).unwrap_err();
            assert_eq!(error, Unresolved::Missing(missing.into()));
        }
    }
}
