//! The keywords for arrays.

use super::dialect::{Dialect, Keyword};
use super::document::{NodeId, Value};
use super::error::Result;
use super::reader::{Found, Reader};
use super::schema::{ArrayKeywords, InPlace, Schema, Types};

impl Reader<'_> {
    pub(super) fn arrays(
        &mut self,
        schema: &mut Schema,
        node: NodeId,
        found: &Found,
    ) -> Result<()> {
        if !schema.types.has(Types::ARRAY) {
            return Ok(());
        }
        let mut keywords = ArrayKeywords::default();
        self.items(&mut keywords, node, found)?;
        if let Some(node) = found.get(Keyword::MinItems) {
            keywords.min_items = self.count(Keyword::MinItems, node)?;
        }
        if let Some(node) = found.get(Keyword::MaxItems) {
            keywords.max_items = Some(self.count(Keyword::MaxItems, node)?);
        }
        if let Some(node) = found.get(Keyword::Contains) {
            if !self.contains(&mut keywords, found, node)? {
                schema.types = schema.types.without(Types::ARRAY);
                return Ok(());
            }
        }
        if let Some(node) = found.get(Keyword::UnevaluatedItems) {
            let evaluated_elsewhere =
                schema.in_place.iter().any(|kind| !matches!(kind, InPlace::Not(_)))
                    || (keywords.contains.is_some() && self.rules.dialect.contains_evaluates());
            if keywords.items.is_none() {
                if evaluated_elsewhere && !self.is_any(node) {
                    keywords.unevaluated = Some(node);
                } else {
                    // The unevaluated items here are those past the prefix.
                    keywords.items = Some(node);
                }
            }
        }
        if let Some(node) = found.get(Keyword::UniqueItems) {
            keywords.unique = self.boolean(Keyword::UniqueItems, node)?
                && self.longest(&keywords).is_none_or(|longest| longest > 1);
        }
        if keywords.max_items.is_some_and(|maximum| maximum < keywords.min_items) {
            schema.types = schema.types.without(Types::ARRAY);
            return Ok(());
        }
        if let Some(prefix) = keywords.prefix {
            self.visit_all(prefix);
        }
        for child in [keywords.items, keywords.contains, keywords.unevaluated] {
            child.into_iter().for_each(|child| self.visit(child));
        }
        schema.array = (!keywords.is_any()).then(|| Box::new(keywords));
        Ok(())
    }

    /// The schemas of the items by their place, in the spelling of any draft.
    fn items(&self, keywords: &mut ArrayKeywords, schema: NodeId, found: &Found) -> Result<()> {
        let document = self.document;
        let list = |node: NodeId| matches!(document.value(node), Value::Array(_));
        match (found.get(Keyword::PrefixItems), found.get(Keyword::Items)) {
            (Some(prefix), _) if !list(prefix) => {
                return Err(self.wrong(Keyword::PrefixItems, prefix, "a list of schemas"));
            }
            (None, Some(items)) if list(items) => {
                if self.rules.dialect == Dialect::Draft2020 && self.rules.named {
                    let expected = "a schema in this draft; its list form is `prefixItems`";
                    return Err(self.wrong(Keyword::Items, items, expected));
                }
                keywords.prefix = Some(items);
                // Known to the drafts that have the list form, whichever is assumed.
                keywords.items = document.members(schema).get("additionalItems");
            }
            (prefix, items) => {
                keywords.prefix = prefix;
                keywords.items = items;
            }
        }
        Ok(())
    }

    /// The most items that an array clearly has.
    fn longest(&self, keywords: &ArrayKeywords) -> Option<u64> {
        let closed = keywords.items.is_some_and(|items| self.is_never(items));
        let prefix = keywords.prefix.map_or(0, |prefix| self.document.items(prefix).len());
        let by_place = closed.then_some(prefix as u64);
        [by_place, keywords.max_items].into_iter().flatten().min()
    }

    /// `contains` and its counts. If every item counts, or none does, the counts become those of
    /// the items. Returns whether any array is left.
    fn contains(
        &mut self,
        keywords: &mut ArrayKeywords,
        found: &Found,
        node: NodeId,
    ) -> Result<bool> {
        let minimum = match found.get(Keyword::MinContains) {
            Some(node) => self.count(Keyword::MinContains, node)?,
            None => 1,
        };
        let maximum = match found.get(Keyword::MaxContains) {
            Some(node) => Some(self.count(Keyword::MaxContains, node)?),
            None => None,
        };
        if maximum.is_some_and(|maximum| maximum < minimum) {
            return Ok(false);
        }
        if self.is_never(node) {
            return Ok(minimum == 0);
        }
        let evaluates = self.rules.dialect.contains_evaluates() && self.collects_evaluated();
        if self.is_any(node) {
            keywords.min_items = keywords.min_items.max(minimum);
            keywords.max_items = [keywords.max_items, maximum].into_iter().flatten().min();
            if evaluates {
                keywords.items = keywords.items.or(Some(node));
            }
        } else if minimum > 0 || maximum.is_some() || evaluates {
            keywords.contains = Some(node);
            keywords.min_contains = minimum;
            keywords.max_contains = maximum;
        }
        Ok(true)
    }
}
