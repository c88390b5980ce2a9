//! The keywords of a schema resource: those of its draft in the vocabularies that are on.

use super::dialect::{Dialect, Keyword};
use super::document::{Document, NodeId, Value};
use super::uri::split_fragment;

/// The rules by which the schemas of one resource are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub dialect: Dialect,
    /// Whether the dialect is named, and not only assumed.
    pub named: bool,
    vocabularies: Vocabularies,
}

/// A set of vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vocabularies(u8);

impl Vocabularies {
    const CORE: Self = Self(1);
    const APPLICATOR: Self = Self(2);
    const UNEVALUATED: Self = Self(4);
    const VALIDATION: Self = Self(8);
    const FORMAT: Self = Self(16);
    const ALL: Self = Self(31);

    /// The vocabulary of this URI; one that only annotates is the empty set.
    fn named(uri: &str) -> Option<Self> {
        let path = uri.strip_prefix("https://json-schema.org/draft/")?;
        Some(match path.split_once("/vocab/")? {
            ("2019-09" | "2020-12", "core") => Self::CORE,
            ("2019-09", "applicator") => Self(Self::APPLICATOR.0 | Self::UNEVALUATED.0),
            ("2020-12", "applicator") => Self::APPLICATOR,
            ("2020-12", "unevaluated") => Self::UNEVALUATED,
            ("2019-09" | "2020-12", "validation") => Self::VALIDATION,
            ("2019-09", "format") | ("2020-12", "format-annotation" | "format-assertion") => {
                Self::FORMAT
            }
            ("2019-09" | "2020-12", "meta-data" | "content") => Self(0),
            _ => return None,
        })
    }

    fn of_keyword(keyword: Keyword) -> Self {
        match keyword {
            Keyword::Reference | Keyword::RecursiveReference | Keyword::DynamicReference => {
                Self::CORE
            }
            Keyword::UnevaluatedProperties | Keyword::UnevaluatedItems => Self::UNEVALUATED,
            Keyword::Format => Self::FORMAT,
            Keyword::AllOf
            | Keyword::AnyOf
            | Keyword::OneOf
            | Keyword::Not
            | Keyword::If
            | Keyword::Then
            | Keyword::Else
            | Keyword::Dependencies
            | Keyword::DependentSchemas
            | Keyword::Properties
            | Keyword::AdditionalProperties
            | Keyword::PatternProperties
            | Keyword::PropertyNames
            | Keyword::Items
            | Keyword::AdditionalItems
            | Keyword::PrefixItems
            | Keyword::Contains => Self::APPLICATOR,
            _ => Self::VALIDATION,
        }
    }
}

/// A vocabulary that a metaschema requires and that is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVocabulary(pub String);

impl Rules {
    /// The rules of a schema without `$schema`.
    pub const ASSUMED: Self =
        Self { dialect: Dialect::Draft2020, named: false, vocabularies: Vocabularies::ALL };

    /// All vocabularies of a draft.
    pub fn draft(dialect: Dialect) -> Self {
        Self { dialect, named: true, vocabularies: Vocabularies::ALL }
    }

    /// Returns the rules of the first document's `$schema`, or its unknown URI.
    pub fn of_root(document: &Document) -> Result<Self, String> {
        let named = document.members(NodeId::ROOT).get("$schema");
        let Some(Value::String(uri)) = named.map(|node| document.value(node)) else {
            return Ok(Self::ASSUMED);
        };
        if let Some(dialect) = Dialect::of_uri(uri) {
            return Ok(Self::draft(dialect));
        }
        let uri = split_fragment(uri).0;
        // Unknown required vocabularies are refused when the root is read.
        let metaschema = document.root_of(uri).map(|node| Self::of_metaschema(document, node));
        metaschema.and_then(Result::ok).ok_or_else(|| uri.to_owned())
    }

    /// Returns the rules of a metaschema, the value at a node: those of its own draft, without the
    /// vocabularies that it omits.
    pub fn of_metaschema(
        document: &Document,
        metaschema: NodeId,
    ) -> Result<Self, UnknownVocabulary> {
        let members = document.members(metaschema);
        let dialect = match members.get("$schema").map(|node| document.value(node)) {
            Some(Value::String(uri)) => Dialect::of_uri(uri),
            _ => None,
        };
        let mut rules = dialect.map_or(Self::ASSUMED, Self::draft);
        let Some(vocabularies) = members.get("$vocabulary") else { return Ok(rules) };
        if rules.dialect < Dialect::Draft2019 {
            return Ok(rules);
        }
        rules.vocabularies = Vocabularies::CORE;
        for (uri, required) in document.members(vocabularies).iter() {
            match Vocabularies::named(uri) {
                Some(vocabulary) => rules.vocabularies.0 |= vocabulary.0,
                None if matches!(document.value(required), Value::Boolean(true)) => {
                    return Err(UnknownVocabulary(uri.to_owned()));
                }
                None => {}
            }
        }
        Ok(rules)
    }

    /// The keyword of this name, if these rules know it.
    pub fn keyword(self, text: &str) -> Option<Keyword> {
        Keyword::of(text, self.dialect).filter(|&keyword| {
            self.vocabularies == Vocabularies::ALL
                || self.vocabularies.0 & Vocabularies::of_keyword(keyword).0 != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocumentLimits;

    fn rules(metaschema: &str) -> Result<Rules, UnknownVocabulary> {
        let limits = DocumentLimits { bytes: 1000, nodes: 100, nesting: 9 };
        Rules::of_metaschema(&Document::parse(metaschema, limits).unwrap(), NodeId::ROOT)
    }

    #[test]
    fn vocabularies_turn_keywords_off() {
        let rules = rules(
            r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "$vocabulary": {
                "https://json-schema.org/draft/2020-12/vocab/applicator": true,
                "https://example.com/own": false}}"#,
        )
        .unwrap();
        assert_eq!(rules.dialect, Dialect::Draft2020);
        assert_eq!(rules.keyword("$ref"), Some(Keyword::Reference));
        assert_eq!(rules.keyword("properties"), Some(Keyword::Properties));
        for name in ["minimum", "type", "format", "unevaluatedItems", "unknown"] {
            assert_eq!(rules.keyword(name), None, "{name}");
        }
    }

    #[test]
    fn metaschemas_without_vocabularies_mean_their_draft() {
        let draft7 = rules(r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#);
        assert_eq!(draft7, Ok(Rules::draft(Dialect::Draft7)));
        assert_eq!(rules("{}"), Ok(Rules::ASSUMED));
        let unknown = rules(r#"{"$vocabulary": {"https://example.com/own": true}}"#);
        assert_eq!(unknown, Err(UnknownVocabulary("https://example.com/own".into())));
    }
}
