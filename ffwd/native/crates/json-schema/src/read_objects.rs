//! The keywords for objects.

use smallvec::SmallVec;

use super::dialect::Keyword;
use super::document::{NodeId, Value};
use super::error::{Result, SchemaError};
use super::reader::{Found, Reader};
use super::schema::{InPlace, ObjectKeywords, Schema, Types};

impl<'d> Reader<'d> {
    pub(super) fn objects(&mut self, schema: &mut Schema, found: &Found) -> Result<()> {
        if !schema.types.has(Types::OBJECT) {
            return Ok(());
        }
        let document = self.document;
        let mut keywords = ObjectKeywords {
            properties: found.get(Keyword::Properties),
            additional: found.get(Keyword::AdditionalProperties),
            names: found.get(Keyword::PropertyNames).filter(|&names| !self.is_any(names)),
            ..ObjectKeywords::default()
        };
        if let Some(node) = keywords.properties {
            let Value::Object(members) = document.value(node) else {
                return Err(self.wrong(Keyword::Properties, node, "an object"));
            };
            members.iter().for_each(|(_, property)| self.visit(property));
        }
        let mut required: SmallVec<[&str; 8]> = SmallVec::new();
        if let Some(node) = found.get(Keyword::Required) {
            let Value::Array(names) = document.value(node) else {
                return Err(self.wrong(Keyword::Required, node, "a list of property names"));
            };
            for &name in names {
                let Value::String(name) = document.value(name) else {
                    return Err(self.wrong(Keyword::Required, name, "a property name"));
                };
                required.push(name);
            }
            keywords.required = Some(node).filter(|_| !names.is_empty());
        }
        if let Some(node) = found.get(Keyword::UnevaluatedProperties) {
            let evaluated_elsewhere =
                schema.in_place.iter().any(|kind| !matches!(kind, InPlace::Not(_)));
            if keywords.additional.is_none() {
                if evaluated_elsewhere && !self.is_any(node) {
                    keywords.unevaluated = Some(node);
                } else {
                    // The unevaluated members here are the additional ones.
                    keywords.additional = Some(node);
                }
            }
        }
        if let Some(node) = found.get(Keyword::PatternProperties) {
            self.key_patterns(&mut keywords, node)?;
        }
        self.member_counts(&mut keywords, found, &mut required)?;
        let least = keywords.min_properties.max(required.len() as u64);
        if keywords.max_properties.is_some_and(|maximum| maximum < least) {
            schema.types = schema.types.without(Types::OBJECT);
            return Ok(());
        }
        for child in [keywords.additional, keywords.names, keywords.unevaluated] {
            child.into_iter().for_each(|child| self.visit(child));
        }
        schema.object = (!keywords.is_any()).then(|| Box::new(keywords));
        Ok(())
    }

    /// `patternProperties`.
    fn key_patterns(&mut self, keywords: &mut ObjectKeywords, node: NodeId) -> Result<()> {
        let document = self.document;
        let Value::Object(members) = document.value(node) else {
            return Err(self.wrong(Keyword::PatternProperties, node, "an object"));
        };
        let others_free = match keywords.additional {
            Some(additional) => self.is_any(additional),
            None => members.is_empty() || !self.collects_evaluated(),
        };
        for (pattern, child) in members.iter() {
            match self.pattern_language(Keyword::PatternProperties, pattern, child)? {
                // Without the pattern, further keys are equally unrestricted.
                Some(_) if others_free && self.is_any(child) => {}
                Some(language) => {
                    self.visit(child);
                    keywords.patterns.push((language, child));
                }
                // Any further key may match the pattern.
                None => {
                    for further in [keywords.additional.take(), keywords.unevaluated.take()] {
                        let Some(further) = further else { continue };
                        let pointer = document.pointer(further);
                        let keyword = match pointer.ends_with(Keyword::AdditionalProperties.name())
                        {
                            true => Keyword::AdditionalProperties,
                            false => Keyword::UnevaluatedProperties,
                        };
                        let message = "a pattern of `patternProperties` beside it is not supported";
                        self.leave_out(SchemaError::unsupported(
                            keyword.name(),
                            pointer,
                            message.into(),
                        ))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// `minProperties` and `maxProperties`, left out where the other keywords imply them. Also
    /// removes repetitions in `required`.
    fn member_counts(
        &self,
        keywords: &mut ObjectKeywords,
        found: &Found,
        required: &mut SmallVec<[&'d str; 8]>,
    ) -> Result<()> {
        let minimum = found.get(Keyword::MinProperties);
        let maximum = found.get(Keyword::MaxProperties);
        if minimum.is_none() && maximum.is_none() {
            return Ok(());
        }
        required.sort_unstable();
        required.dedup();
        if let Some(node) = minimum {
            let minimum = self.count(Keyword::MinProperties, node)?;
            if minimum > required.len() as u64 {
                keywords.min_properties = minimum;
            }
        }
        if let Some(node) = maximum {
            let maximum = self.count(Keyword::MaxProperties, node)?;
            let closed = keywords.patterns.is_empty()
                && keywords.additional.is_some_and(|additional| self.is_never(additional));
            let declared = keywords.properties.map_or(0, |node| self.document.members(node).len());
            if !(closed && declared as u64 <= maximum) {
                keywords.max_properties = Some(maximum);
            }
        }
        Ok(())
    }
}
