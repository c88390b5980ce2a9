//! Finds the documents that a schema leads to.

use std::collections::BTreeSet;

use super::dialect::Dialect;
use super::document::{Document, Value};
use super::error::Result;
use super::options::SchemaOptions;
use super::registry::Registry;
use super::resources::Resources;
use super::rules::Rules;
use super::uri;

/// Reads all documents of the registry that the schema refers to, directly or through others.
pub fn search(mut document: Document, options: &SchemaOptions) -> Result<Document> {
    let limits = options.limits.document();
    let registry = &options.parsing.registry;
    let mut read: BTreeSet<String> = BTreeSet::new();
    loop {
        let wanted = wanted(&document, registry);
        let known = wanted.iter().filter(|uri| !read.contains(*uri) && registry.get(uri).is_some());
        let mut found: Vec<String> = known.cloned().collect();
        if found.is_empty() && !wanted.is_empty() {
            // An identifier in one of the other documents may name it.
            found.extend(registry.uris().filter(|&uri| !read.contains(uri)).map(str::to_owned));
        }
        if found.is_empty() {
            return Ok(document);
        }
        for uri in found {
            if let Some(text) = registry.get(&uri) {
                document = document.append(&uri, text, limits)?;
            }
            read.insert(uri);
        }
    }
}

/// The URIs of missing documents.
fn wanted(document: &Document, registry: &Registry) -> BTreeSet<String> {
    let rules = Rules::of_root(document).unwrap_or(Rules::ASSUMED);
    let resources = Resources::new(document, rules);
    let mut wanted = BTreeSet::new();
    for (key, place) in document.all_members() {
        let Value::String(reference) = document.value(place) else { continue };
        let uri = uri::split_fragment(reference).0;
        let absolute = match key {
            "$ref" | "$dynamicRef" if !uri.is_empty() => {
                uri::resolve(resources.uri_of(resources.around(document, place)), uri)
            }
            "$schema" if registry.get(uri).is_some() && Dialect::of_uri(reference).is_none() => {
                uri.to_owned()
            }
            _ => continue,
        };
        if resources.find(&absolute).is_none() {
            wanted.insert(absolute);
        }
    }
    wanted
}
