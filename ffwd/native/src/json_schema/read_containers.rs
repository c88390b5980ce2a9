//! The keywords for objects and arrays.

use smallvec::SmallVec;

use super::dialect::{Dialect, Keyword};
use super::document::{NodeId, Value};
use super::error::SchemaError;
use super::reader::{Found, Reader};
use super::schema::{ArrayKeywords, ObjectKeywords, Schema, Types};

impl Reader<'_> {
    pub(super) fn objects(
        &mut self,
        schema: &mut Schema,
        found: &Found,
    ) -> Result<(), SchemaError> {
        if !schema.types.has(Types::OBJECT) {
            return Ok(());
        }
        let document = self.document;
        let mut keywords = ObjectKeywords {
            properties: found.get(Keyword::Properties),
            required: found.get(Keyword::Required),
            additional: found.get(Keyword::AdditionalProperties),
            ..ObjectKeywords::default()
        };
        for keyword in [
            Keyword::Properties,
            Keyword::PatternProperties,
            Keyword::Dependencies,
            Keyword::DependentRequired,
            Keyword::DependentSchemas,
        ] {
            if let Some(node) = found.get(keyword) {
                if !matches!(document.value(node), Value::Object(_)) {
                    return Err(self.wrong(keyword, node, "an object"));
                }
            }
        }
        let mut required: SmallVec<[&str; 8]> = SmallVec::new();
        if let Some(node) = keywords.required {
            let Value::Array(names) = document.value(node) else {
                return Err(self.wrong(Keyword::Required, node, "a list of property names"));
            };
            for &name in names {
                let Value::String(name) = document.value(name) else {
                    return Err(self.wrong(Keyword::Required, name, "a property name"));
                };
                required.push(name);
            }
        }
        if let Some(node) = found.get(Keyword::UnevaluatedProperties) {
            // Without in-place applicators, what is not evaluated is what is additional.
            let evaluated_elsewhere =
                !schema.in_place.is_empty() || found.get(Keyword::If).is_some();
            if evaluated_elsewhere && !self.is_any(node) {
                let hint = "use `additionalProperties` in one object schema";
                return Err(self.unsupported(Keyword::UnevaluatedProperties, node, hint));
            }
            keywords.additional = keywords.additional.or(Some(node));
        }
        if let Some(node) = found.get(Keyword::PatternProperties) {
            let members = document.members(node);
            let free = keywords.additional.is_none_or(|additional| self.is_any(additional));
            if !(members.is_empty() || free && members.iter().all(|(_, s)| self.is_any(s))) {
                let hint = "list the names in `properties`";
                return Err(self.unsupported(Keyword::PatternProperties, node, hint));
            }
        }
        for keyword in
            [Keyword::Dependencies, Keyword::DependentRequired, Keyword::DependentSchemas]
        {
            if let Some(node) = found.get(keyword) {
                let no_effect = |(_, needs)| match document.value(needs) {
                    Value::Array(names) => names.is_empty(),
                    _ => self.is_any(needs),
                };
                if !document.members(node).iter().all(no_effect) {
                    let hint = "use `anyOf` with both cases";
                    return Err(self.unsupported(keyword, node, hint));
                }
            }
        }
        if let Some(node) = found.get(Keyword::PropertyNames) {
            if !self.is_any(node) {
                let hint = "list the names in `properties`";
                return Err(self.unsupported(Keyword::PropertyNames, node, hint));
            }
        }
        if let Some(node) = found.get(Keyword::MaxProperties) {
            let maximum = self.count(Keyword::MaxProperties, node)?;
            let closed = keywords
                .additional
                .is_some_and(|node| matches!(document.value(node), Value::Boolean(false)));
            let declared =
                keywords.properties.map_or(0, |node| document.members(node).len()) as u64;
            keywords.max_properties = Some(0).filter(|_| maximum == 0);
            if maximum > 0 && !(closed && declared <= maximum) {
                let hint = "only 0, and what `additionalProperties: false` already implies, is";
                return Err(self.unsupported(Keyword::MaxProperties, node, hint));
            }
        }
        if let Some(node) = found.get(Keyword::MinProperties) {
            required.sort_unstable();
            required.dedup();
            if self.count(Keyword::MinProperties, node)? > required.len() as u64 {
                let hint = "list in `required` what must be there";
                return Err(self.unsupported(Keyword::MinProperties, node, hint));
            }
        }
        if keywords.max_properties == Some(0) && !required.is_empty() {
            schema.types = schema.types.without(Types::OBJECT);
            return Ok(());
        }
        for (_, property) in keywords.properties.iter().flat_map(|&n| document.members(n).iter()) {
            self.visit(property);
        }
        keywords.required = keywords.required.filter(|_| !required.is_empty());
        if let Some(additional) = keywords.additional {
            self.visit(additional);
        }
        let says_something = keywords.properties.is_some()
            || keywords.required.is_some()
            || keywords.additional.is_some()
            || keywords.max_properties.is_some();
        schema.object = says_something.then(|| Box::new(keywords));
        Ok(())
    }

    pub(super) fn arrays(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        if !schema.types.has(Types::ARRAY) {
            return Ok(());
        }
        let document = self.document;
        let mut keywords = ArrayKeywords::default();
        let list = |node: NodeId| matches!(document.value(node), Value::Array(_));
        match (found.get(Keyword::PrefixItems), found.get(Keyword::Items)) {
            (Some(prefix), _) if !list(prefix) => {
                return Err(self.wrong(Keyword::PrefixItems, prefix, "a list of schemas"));
            }
            (None, Some(items)) if list(items) => {
                if self.dialect == Dialect::Draft2020 && self.explicit {
                    let expected = "a schema in this draft; its list form is `prefixItems`";
                    return Err(self.wrong(Keyword::Items, items, expected));
                }
                keywords.prefix = Some(items);
                // Known to the drafts that have the list form, whichever is assumed.
                keywords.items = document.members(schema.node).get("additionalItems");
            }
            (prefix, items) => {
                keywords.prefix = prefix;
                keywords.items = items;
            }
        }
        if let Some(node) = found.get(Keyword::MinItems) {
            keywords.min_items = self.count(Keyword::MinItems, node)?;
        }
        if let Some(node) = found.get(Keyword::MaxItems) {
            keywords.max_items = Some(self.count(Keyword::MaxItems, node)?);
        }
        if let Some(node) = found.get(Keyword::Contains) {
            self.contains(&mut keywords, found, node)?;
        }
        if let Some(node) = found.get(Keyword::UnevaluatedItems) {
            let evaluated_elsewhere = !schema.in_place.is_empty()
                || found.get(Keyword::If).is_some()
                || found.get(Keyword::Contains).is_some();
            if evaluated_elsewhere && !self.is_any(node) {
                let hint = "use `items` in one array schema";
                return Err(self.unsupported(Keyword::UnevaluatedItems, node, hint));
            }
            keywords.items = keywords.items.or(Some(node));
        }
        if let Some(node) = found.get(Keyword::UniqueItems) {
            let closed = keywords
                .items
                .is_some_and(|items| matches!(document.value(items), Value::Boolean(false)));
            let longest = match keywords.prefix {
                prefix if closed => prefix.map_or(0, |prefix| document.items(prefix).len()) as u64,
                _ => u64::MAX,
            };
            if self.boolean(Keyword::UniqueItems, node)?
                && longest.min(keywords.max_items.unwrap_or(u64::MAX)) > 1
            {
                return Err(self.unsupported(Keyword::UniqueItems, node, "remove it"));
            }
        }
        if keywords.max_items.is_some_and(|maximum| maximum < keywords.min_items) {
            schema.types = schema.types.without(Types::ARRAY);
            return Ok(());
        }
        if let Some(prefix) = keywords.prefix {
            self.visit_all(prefix);
        }
        if let Some(items) = keywords.items {
            self.visit(items);
        }
        let says_something = keywords.prefix.is_some()
            || keywords.items.is_some()
            || keywords.min_items > 0
            || keywords.max_items.is_some();
        schema.array = says_something.then(|| Box::new(keywords));
        Ok(())
    }

    /// `contains`, where it asks nothing or counts all items.
    pub(super) fn contains(
        &mut self,
        keywords: &mut ArrayKeywords,
        found: &Found,
        node: NodeId,
    ) -> Result<(), SchemaError> {
        let minimum = match found.get(Keyword::MinContains) {
            Some(node) => self.count(Keyword::MinContains, node)?,
            None => 1,
        };
        let maximum = match found.get(Keyword::MaxContains) {
            Some(node) => Some(self.count(Keyword::MaxContains, node)?),
            None => None,
        };
        if self.is_any(node) {
            keywords.min_items = keywords.min_items.max(minimum);
            let bounds = [keywords.max_items, maximum];
            keywords.max_items = bounds.into_iter().flatten().min();
        } else if minimum > 0 || maximum.is_some() {
            let hint = "constrain the items with `items` or `prefixItems`";
            return Err(self.unsupported(Keyword::Contains, node, hint));
        }
        Ok(())
    }
}
