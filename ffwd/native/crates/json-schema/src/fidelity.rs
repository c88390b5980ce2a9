//! The fidelity report: the treatment of each keyword of a schema.

use std::collections::BTreeMap;

use super::dialect::{Dialect, Keyword};
use super::document::{escaped, Document, NodeId, Value};
use super::error::{LimitExceeded, Result, SchemaError};
use super::formats;
use super::options::{Policy, SchemaOptions};
use super::program::Program;
use super::resources::{WITH_SCHEMA, WITH_SCHEMA_MAP};
use super::rules::Rules;

/// The most characters of all pointers of a report together.
const MAX_CHARACTERS: usize = 64 << 20;

/// The support of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// It holds, exactly.
    Enforced,
    /// It has no effect: an annotation, or a keyword that its position or dialect makes one.
    Ignored,
    /// It is not supported and was left out.
    Widened,
    /// It is not supported, so the schema is refused.
    Refused,
}

impl Fidelity {
    /// The name in lower case, as reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Ignored => "ignored",
            Self::Widened => "widened",
            Self::Refused => "refused",
        }
    }
}

/// The support of one keyword at one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeywordFidelity {
    /// JSON pointer of the keyword's value.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// Its treatment.
    pub fidelity: Fidelity,
    /// Why it is not enforced.
    pub reason: String,
}

/// Returns the support of each keyword of a schema, and of the schemas in other documents that it
/// reaches.
///
/// # Errors
/// The text is not a schema, or exceeds a limit. Unsupported keywords are no error.
pub fn fidelity_report(text: &str, options: &SchemaOptions) -> Result<Vec<KeywordFidelity>> {
    let mut lenient = options.clone();
    lenient.parsing.policy = Policy::Lenient;
    let program = Program::read(text, &lenient)?;
    let left_out = program.left_out.iter().map(|error| (error.pointer.as_str(), error)).collect();
    let mut reporter = Reporter {
        program: &program,
        reached: program.reached(),
        left_out,
        unsupported: match options.parsing.policy {
            Policy::Strict => Fidelity::Refused,
            Policy::Lenient => Fidelity::Widened,
        },
        report: Vec::new(),
        characters: 0,
        pending: vec![PendingSchema { node: NodeId::ROOT, pointer: String::new(), applies: true }],
        seen: vec![false; program.document.len()],
    };
    reporter.walk()?;
    // Schemas that only references reach: under unknown keywords, and in other documents.
    for node in (0..program.document.len() as u32).map(NodeId) {
        if reporter.reached[node.index()] && !reporter.seen[node.index()] {
            let pointer = program.document.pointer(node);
            reporter.pending.push(PendingSchema { node, pointer, applies: true });
            reporter.walk()?;
        }
    }
    Ok(reporter.report)
}

/// A schema that is still to be looked at.
struct PendingSchema {
    node: NodeId,
    pointer: String,
    /// Whether it applies to values.
    applies: bool,
}

struct Reporter<'p> {
    program: &'p Program,
    /// Whether a reference or a keyword leads to the node.
    reached: Vec<bool>,
    left_out: BTreeMap<&'p str, &'p SchemaError>,
    unsupported: Fidelity,
    report: Vec<KeywordFidelity>,
    characters: usize,
    pending: Vec<PendingSchema>,
    seen: Vec<bool>,
}

impl Reporter<'_> {
    fn walk(&mut self) -> Result<()> {
        while let Some(place) = self.pending.pop() {
            if !std::mem::replace(&mut self.seen[place.node.index()], true) {
                self.schema(&place)?;
            }
        }
        Ok(())
    }

    fn schema(&mut self, place: &PendingSchema) -> Result<()> {
        let document = &self.program.document;
        let rules = self.program.rules_at(place.node);
        let first_child = self.pending.len();
        for (key, value) in document.members(place.node).iter() {
            let pointer = format!("{}/{}", place.pointer, escaped(key));
            self.characters += pointer.len();
            if self.characters > MAX_CHARACTERS {
                let exceeded = LimitExceeded {
                    limit: "fidelity_report_characters",
                    maximum: MAX_CHARACTERS as u64,
                };
                return Err(SchemaError::limit(exceeded, place.pointer.clone()));
            }
            let (fidelity, reason) = if place.applies {
                self.keyword(rules, place.node, key, value, &pointer)
            } else {
                (Fidelity::Ignored, "nothing leads to this schema".into())
            };
            let applies = fidelity == Fidelity::Enforced && rules.keyword(key).is_some();
            self.children(key, value, &pointer, applies);
            let keyword = key.to_owned();
            self.report.push(KeywordFidelity { pointer, keyword, fidelity, reason });
        }
        // The next of them is taken from the end.
        self.pending[first_child..].reverse();
        Ok(())
    }

    fn children(&mut self, keyword: &str, value: NodeId, pointer: &str, applies: bool) {
        let document = &self.program.document;
        let mut push = |node: NodeId, step: Option<String>| {
            if !matches!(document.value(node), Value::Object(_)) {
                return;
            }
            let pointer = match step {
                Some(step) => format!("{pointer}/{step}"),
                None => pointer.to_owned(),
            };
            let applies = applies || self.reached[node.index()];
            self.pending.push(PendingSchema { node, pointer, applies });
        };
        if WITH_SCHEMA.contains(&keyword) {
            match document.value(value) {
                Value::Array(items) => {
                    for (index, &item) in items.iter().enumerate() {
                        push(item, Some(index.to_string()));
                    }
                }
                _ => push(value, None),
            }
        } else if WITH_SCHEMA_MAP.contains(&keyword) {
            for (name, node) in document.members(value).iter() {
                push(node, Some(escaped(name)));
            }
        }
    }

    fn keyword(
        &self,
        rules: Rules,
        schema: NodeId,
        key: &str,
        value: NodeId,
        pointer: &str,
    ) -> (Fidelity, String) {
        let below = || {
            let (place, error) = self.left_out.range(pointer..).next()?;
            let rest = place.strip_prefix(pointer)?;
            (rest.is_empty() || key == "patternProperties" && rest.starts_with('/'))
                .then_some(*error)
        };
        if let Some(error) = below() {
            return (self.unsupported, error.message.clone());
        }
        let document = &self.program.document;
        let beside = document.members(schema);
        let hidden = rules.dialect.reference_hides_siblings()
            && key != "$ref"
            && matches!(
                beside.get("$ref").map(|node| document.value(node)),
                Some(Value::String(_))
            );
        let reason = match rules.keyword(key) {
            Some(_) if hidden => {
                Some(format!("`$ref` hides what is beside it in {}", rules.dialect.name()))
            }
            Some(keyword) => self.without_effect(keyword, schema, value).map(str::to_owned),
            None if key == "additionalItems" && reads_lists(document, rules, schema) => None,
            None => no_keyword(document, rules, key, value),
        };
        match reason {
            Some(reason) => (Fidelity::Ignored, reason),
            None => (Fidelity::Enforced, String::new()),
        }
    }

    /// Why a keyword has no effect at its position.
    fn without_effect(
        &self,
        keyword: Keyword,
        schema: NodeId,
        value: NodeId,
    ) -> Option<&'static str> {
        let document = &self.program.document;
        let beside = document.members(schema);
        let without = |other: &str| beside.get(other).is_none();
        match keyword {
            Keyword::Then | Keyword::Else if without("if") => Some("there is no `if` beside it"),
            Keyword::If if without("then") && without("else") => {
                Some("there is no `then` and no `else` beside it")
            }
            Keyword::MinContains | Keyword::MaxContains if without("contains") => {
                Some("there is no `contains` beside it")
            }
            Keyword::AdditionalItems
                if !reads_lists(document, self.program.rules_at(schema), schema) =>
            {
                Some("there is no list in `items` beside it")
            }
            Keyword::Format => match document.value(value) {
                Value::String(name) if formats::format(name).is_none() => Some("an unknown format"),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether `items` is a list and read as one.
fn reads_lists(document: &Document, rules: Rules, schema: NodeId) -> bool {
    let items = document.members(schema).get("items").map(|node| document.value(node));
    matches!(items, Some(Value::Array(_))) && !(rules.dialect == Dialect::Draft2020 && rules.named)
}

/// Why a member that is no keyword for values has no effect; `None` if it names something.
fn no_keyword(document: &Document, rules: Rules, key: &str, value: NodeId) -> Option<String> {
    let dialect = rules.dialect;
    Some(match key {
        "$defs" | "definitions" | "$vocabulary" => return None,
        "$id" | "id" if key == dialect.id_keyword() => return None,
        "$anchor" if dialect >= Dialect::Draft2019 => return None,
        "$dynamicAnchor" if dialect == Dialect::Draft2020 => return None,
        "$recursiveAnchor" if dialect == Dialect::Draft2019 => return None,
        "$schema" => match document.value(value) {
            Value::String(uri) if Dialect::of_uri(uri).is_some() => return None,
            Value::String(uri) if document.root_of(uri.trim_end_matches('#')).is_some() => {
                return None;
            }
            _ => format!("not a known dialect; read as {}", dialect.name()),
        },
        "$comment" | "contentEncoding" | "contentMediaType" | "contentSchema" | "default"
        | "deprecated" | "description" | "example" | "examples" | "readOnly" | "title"
        | "writeOnly" => "an annotation".into(),
        _ if Keyword::exists(key) => format!("not a keyword of {}", dialect.name()),
        _ => "an unknown keyword".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(schema: &str, policy: Policy) -> Vec<String> {
        let mut options = SchemaOptions::new(|_| Ok((false, 0)));
        options.parsing.policy = policy;
        let lines = fidelity_report(schema, &options).unwrap().into_iter().map(|line| {
            assert!(line.pointer.ends_with(&line.keyword), "{line:?}");
            assert_eq!(line.reason.is_empty(), line.fidelity == Fidelity::Enforced, "{line:?}");
            format!("{} {}", line.fidelity.name(), line.pointer)
        });
        lines.collect()
    }

    #[test]
    fn every_keyword_is_reported() {
        let schema = r##"{
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "t",
            "properties": {
                "a/b": {"$ref": "#/definitions/used", "minimum": 3},
                "c": {"type": "string", "format": "own", "minContains": 2, "x": {"y": 1}},
                "d": {"not": {"type": "null"}}
            },
            "then": {"minimum": 1},
            "definitions": {
                "used": {"items": [{}], "additionalItems": {"minLength": 2}},
                "unused": {"minLength": 2}
            }
        }"##;
        assert_eq!(
            report(schema, Policy::Strict),
            [
                "enforced /$schema",
                "ignored /title",
                "enforced /properties",
                "ignored /then",
                "enforced /definitions",
                "enforced /properties/a~1b/$ref",
                "ignored /properties/a~1b/minimum",
                "enforced /properties/c/type",
                "ignored /properties/c/format",
                "ignored /properties/c/minContains",
                "ignored /properties/c/x",
                "enforced /properties/d/not",
                "enforced /properties/d/not/type",
                "ignored /then/minimum",
                "enforced /definitions/used/items",
                "enforced /definitions/used/additionalItems",
                "enforced /definitions/used/additionalItems/minLength",
                "ignored /definitions/unused/minLength",
            ]
        );
    }

    #[test]
    fn what_is_not_supported_is_refused_or_widened() {
        let schema = r#"{
            "pattern": "(a)\\1",
            "patternProperties": {"b": {}, "(c)\\1": {}},
            "additionalProperties": false,
            "items": {"$ref": "http://example.com/none"}
        }"#;
        assert_eq!(
            report(schema, Policy::Strict),
            [
                "refused /pattern",
                "refused /patternProperties",
                "refused /additionalProperties",
                "enforced /items",
                "refused /items/$ref",
            ]
        );
        assert!(report(schema, Policy::Lenient).contains(&"widened /items/$ref".to_owned()));
    }
}
