//! The keywords that apply subschemas to the value itself.

use super::dialect::Keyword;
use super::document::{NodeId, Value};
use super::error::Result;
use super::reader::{Found, Reader};
use super::reference::{resolve, Unresolved};
use super::schema::{InPlace, Schema, Types};
use super::uri;

impl Reader<'_> {
    pub(super) fn in_place(&mut self, schema: &mut Schema, found: &Found) -> Result<()> {
        let mut own_seen = false;
        for &keyword in &found.in_order {
            if keyword.declares_properties() {
                if !own_seen {
                    own_seen = true;
                    schema.in_place_before_own = schema.in_place.len();
                }
                continue;
            }
            let Some(node) = found.get(keyword) else { continue };
            let kind = match keyword {
                Keyword::Reference | Keyword::DynamicReference | Keyword::RecursiveReference => {
                    self.reference(keyword, node)?
                }
                Keyword::AllOf => Some(InPlace::AllOf(self.branches(keyword, node)?)),
                Keyword::AnyOf => Some(InPlace::AnyOf(self.branches(keyword, node)?)),
                Keyword::OneOf => Some(InPlace::OneOf(self.branches(keyword, node)?)),
                Keyword::Not => self.negation(schema, node)?,
                Keyword::If => self.condition(found, node),
                Keyword::Dependencies | Keyword::DependentRequired | Keyword::DependentSchemas => {
                    self.dependencies(schema, keyword, node)?
                }
                _ => None,
            };
            schema.in_place.extend(kind);
        }
        if !own_seen {
            schema.in_place_before_own = schema.in_place.len();
        }
        Ok(())
    }

    /// The list of an `allOf` and its like.
    fn branches(&mut self, keyword: Keyword, node: NodeId) -> Result<NodeId> {
        match self.document.value(node) {
            Value::Array(branches) if !branches.is_empty() => self.visit_all(node),
            _ => return Err(self.wrong(keyword, node, "a list of at least one schema")),
        }
        Ok(node)
    }

    /// `not`; one that excludes whole types becomes `type`.
    fn negation(&mut self, schema: &mut Schema, node: NodeId) -> Result<Option<InPlace>> {
        if self.is_any(node) {
            schema.types = Types::NONE;
            return Ok(None);
        }
        match self.document.value(node) {
            Value::Boolean(_) => return Ok(None),
            Value::Object(members) => {
                let mut keywords =
                    members.iter().filter(|(key, _)| self.rules.keyword(key).is_some());
                if let (Some(("type", types)), None) = (keywords.next(), keywords.next()) {
                    let types = self.type_set(types)?;
                    let only_integers = types.has(Types::INTEGER) && !types.has(Types::NUMBER);
                    if !only_integers || !schema.types.has(Types::NUMBER) {
                        schema.types = schema.types.without(types);
                        return Ok(None);
                    }
                }
            }
            _ => return Err(self.wrong(Keyword::Not, node, "a schema")),
        }
        self.visit(node);
        Ok(Some(InPlace::Not(node)))
    }

    /// `if` with its branches.
    fn condition(&mut self, found: &Found, test: NodeId) -> Option<InPlace> {
        let [then, otherwise] = [Keyword::Then, Keyword::Else]
            .map(|keyword| found.get(keyword).filter(|&branch| !self.is_any(branch)));
        let settled = if self.is_any(test) {
            Some(then)
        } else if matches!(self.document.value(test), Value::Boolean(false)) {
            Some(otherwise)
        } else {
            None
        };
        if let Some(branch) = settled {
            return branch.map(|branch| {
                self.visit(branch);
                InPlace::Reference(branch)
            });
        }
        if then.is_none() && otherwise.is_none() && !self.collects_evaluated() {
            return None;
        }
        for node in [Some(test), then, otherwise].into_iter().flatten() {
            self.visit(node);
        }
        Some(InPlace::If { test, then, otherwise })
    }

    fn dependencies(
        &mut self,
        schema: &Schema,
        keyword: Keyword,
        node: NodeId,
    ) -> Result<Option<InPlace>> {
        let document = self.document;
        let Value::Object(members) = document.value(node) else {
            return Err(self.wrong(keyword, node, "an object"));
        };
        if !schema.types.has(Types::OBJECT) {
            return Ok(None);
        }
        let mut has_effect = false;
        for (_, needs) in members.iter() {
            match document.value(needs) {
                Value::Array(names) if keyword != Keyword::DependentSchemas => {
                    for &name in names {
                        if !matches!(document.value(name), Value::String(_)) {
                            return Err(self.wrong(keyword, name, "a property name"));
                        }
                    }
                    has_effect |= !names.is_empty();
                }
                _ if keyword == Keyword::DependentRequired => {
                    return Err(self.wrong(keyword, needs, "a list of property names"));
                }
                _ => {
                    self.visit(needs);
                    has_effect |= !self.is_any(needs);
                }
            }
        }
        Ok(has_effect.then_some(InPlace::Dependencies(node)))
    }

    /// `$ref` and its like.
    fn reference(&mut self, keyword: Keyword, node: NodeId) -> Result<Option<InPlace>> {
        let document = self.document;
        let Value::String(reference) = document.value(node) else {
            return Err(self.wrong(keyword, node, "a reference in a string"));
        };
        if keyword == Keyword::RecursiveReference && reference != "#" {
            return Err(self.wrong(keyword, node, "\"#\""));
        }
        let resources = self.resources();
        let target = match resolve(document, resources, keyword.name(), node, reference) {
            Ok(target) => target,
            Err(Unresolved::Wrong(error)) => return Err(error),
            Err(Unresolved::Missing(uri)) => {
                self.miss(keyword, node, uri)?;
                return Ok(None);
            }
        };
        // A dynamic reference to a dynamic anchor means the outermost schema of that name.
        let anchors = resources.dynamic_anchors(target.resource).iter();
        let mut anchors = anchors.filter(|(_, anchored)| *anchored == target.node);
        let dynamic = match keyword {
            Keyword::RecursiveReference => anchors.find(|(name, _)| name.is_empty()),
            Keyword::DynamicReference if target.by_name => {
                let fragment = uri::split_fragment(reference).1.and_then(uri::percent_decode);
                anchors.find(|(name, _)| Some(name) == fragment.as_ref())
            }
            _ => None,
        };
        let bound = dynamic.and_then(|(name, _)| self.bound(name));
        let target = bound.unwrap_or(target.node);
        self.visit(target);
        Ok(Some(InPlace::Reference(target)))
    }
}
