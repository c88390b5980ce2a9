//! Reads every subschema that can be reached from the root, and refuses what is not supported.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::dialect::{Dialect, Keyword};
use super::document::{Document, NodeId, Value};
use super::error::{LimitExceeded, SchemaError};
use super::number_range::{NumberRange, RangeEnd};
use super::reference::References;
use super::schema::{ArrayKeywords, InPlace, Meaning, ObjectKeywords, Schema, Types};
use super::StringSpec;
use crate::regex::decimal::{MAX_DIGITS, MAX_EXPONENT};
use crate::regex::{ecma, formats, Ast, Decimal, DecimalError, PatternErrorKind};

/// A document whose reachable subschemas have been read.
#[derive(Debug)]
pub struct Program {
    pub document: Document,
    pub dialect: Dialect,
    pub schemas: Vec<Schema>,
    meanings: Vec<Meaning>,
}

impl Program {
    /// What a subschema comes down to: never `Same`, which is followed.
    pub fn meaning(&self, node: NodeId) -> Meaning {
        // Chains of `Same` are finite: circles are refused when the document is read.
        let mut node = node;
        loop {
            match self.meanings[node.index()] {
                Meaning::Same(target) => node = target,
                meaning => return meaning,
            }
        }
    }

    pub fn read(document: Document) -> Result<Self, SchemaError> {
        let (dialect, explicit) =
            match document.members(NodeId::ROOT).get("$schema").map(|node| document.value(node)) {
                Some(Value::String(uri)) => (Dialect::of_uri(uri), true),
                _ => (Dialect::Draft2020, false),
            };
        let mut meanings = vec![Meaning::Unseen; document.len()];
        meanings[NodeId::ROOT.index()] = Meaning::Pending;
        let mut reader = Reader {
            document: &document,
            dialect,
            explicit,
            references: None,
            languages: FxHashMap::default(),
            meanings,
            schemas: Vec::new(),
            pending: vec![NodeId::ROOT],
        };
        while let Some(node) = reader.pending.pop() {
            let meaning = reader.schema(node)?;
            reader.meanings[node.index()] = meaning;
        }
        reader.refuse_circles()?;
        let Reader { meanings, schemas, .. } = reader;
        Ok(Self { document, dialect, schemas, meanings })
    }
}

/// The keywords of a subschema by kind.
struct Found([Option<NodeId>; Keyword::COUNT]);

impl Found {
    fn get(&self, keyword: Keyword) -> Option<NodeId> {
        self.0[keyword as usize]
    }
}

struct Reader<'d> {
    document: &'d Document,
    dialect: Dialect,
    /// Whether the document names its dialect.
    explicit: bool,
    references: Option<References>,
    /// Patterns (by text, `false`) and formats (by name, `true`) that were read before.
    languages: FxHashMap<(bool, &'d str), Option<Ast>>,
    meanings: Vec<Meaning>,
    schemas: Vec<Schema>,
    pending: Vec<NodeId>,
}

impl<'d> Reader<'d> {
    fn schema(&mut self, node: NodeId) -> Result<Meaning, SchemaError> {
        let members = match self.document.value(node) {
            Value::Boolean(true) => return Ok(Meaning::Any),
            Value::Boolean(false) => return Ok(Meaning::Never),
            Value::Object(members) => members,
            other => {
                let message =
                    format!("a schema is an object or a boolean, not {}", other.type_name());
                return Err(SchemaError::invalid(None, self.document.pointer(node), message));
            }
        };
        let mut found = Found([None; Keyword::COUNT]);
        let mut schema = Schema::new(node);
        let mut own_seen = false;
        for (key, value) in members.iter() {
            let Some(keyword) = Keyword::of(key, self.dialect) else { continue };
            found.0[keyword as usize] = Some(value);
            let in_place = match keyword {
                Keyword::Reference => InPlace::Reference(self.reference(value)?),
                Keyword::AllOf => InPlace::AllOf(value),
                Keyword::AnyOf => InPlace::AnyOf(value),
                Keyword::OneOf => InPlace::OneOf(value),
                Keyword::Properties | Keyword::Required | Keyword::AdditionalProperties => {
                    if !own_seen {
                        own_seen = true;
                        schema.in_place_before_own = schema.in_place.len();
                    }
                    continue;
                }
                _ => continue,
            };
            schema.in_place.push(in_place);
        }
        if !own_seen {
            schema.in_place_before_own = schema.in_place.len();
        }
        if self.dialect.reference_hides_siblings() && found.get(Keyword::Reference).is_some() {
            schema.in_place.retain(|kind| matches!(kind, InPlace::Reference(_)));
            schema.in_place_before_own = schema.in_place.len();
            found = Found([None; Keyword::COUNT]);
        }
        self.types(&mut schema, &found)?;
        self.logic(&mut schema, &found)?;
        self.numbers(&mut schema, &found)?;
        self.strings(&mut schema, &found)?;
        self.objects(&mut schema, &found)?;
        self.arrays(&mut schema, &found)?;
        self.values(&mut schema, &found)?;
        for kind in schema.in_place.clone() {
            match kind {
                InPlace::Reference(target) => self.visit(target),
                InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
                    self.visit_all(list);
                }
            }
        }
        let meaning = schema.meaning(|list| SmallVec::from_slice(self.document.items(list)));
        if meaning != Meaning::Other {
            return Ok(meaning);
        }
        self.schemas.push(schema);
        Ok(Meaning::Schema(self.schemas.len() as u32 - 1))
    }

    fn visit(&mut self, node: NodeId) {
        let meaning = &mut self.meanings[node.index()];
        if *meaning == Meaning::Unseen {
            *meaning = Meaning::Pending;
            self.pending.push(node);
        }
    }

    fn visit_all(&mut self, list: NodeId) {
        let document = self.document;
        for &item in document.items(list) {
            self.visit(item);
        }
    }

    fn types(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        if let Some(node) = found.get(Keyword::Type) {
            schema.types = self.type_set(node)?;
        }
        Ok(())
    }

    fn type_set(&self, node: NodeId) -> Result<Types, SchemaError> {
        let single = [node];
        let names = match self.document.value(node) {
            Value::Array(names) if !names.is_empty() => names,
            Value::String(_) => &single[..],
            _ => return Err(self.wrong(Keyword::Type, node, "a type's name or a list of them")),
        };
        names.iter().try_fold(Types::NONE, |types, &name| match self.document.value(name) {
            Value::String(text) => match Types::named(text) {
                Some(more) => Ok(types.with(more)),
                None => Err(SchemaError::invalid(
                    Some("type"),
                    self.document.pointer(name),
                    format!(
                        "{text:?} is not a type; the types are null, boolean, integer, number, \
                         string, array and object"
                    ),
                )),
            },
            _ => Err(self.wrong(Keyword::Type, name, "a type's name")),
        })
    }

    /// `allOf` and its like, and the logic that is only supported where it has no effect.
    fn logic(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        for keyword in [Keyword::AllOf, Keyword::AnyOf, Keyword::OneOf] {
            if let Some(node) = found.get(keyword) {
                match self.document.value(node) {
                    Value::Array(branches) if !branches.is_empty() => {}
                    _ => return Err(self.wrong(keyword, node, "a list of at least one schema")),
                }
            }
        }
        for keyword in [Keyword::RecursiveReference, Keyword::DynamicReference] {
            if let Some(node) = found.get(keyword) {
                return Err(self.unsupported(keyword, node, "use `$ref`"));
            }
        }
        if let Some(node) = found.get(Keyword::If) {
            let branches = [Keyword::Then, Keyword::Else].map(|keyword| found.get(keyword));
            if branches.into_iter().flatten().any(|branch| !self.is_any(branch)) {
                return Err(self.unsupported(Keyword::If, node, "use `anyOf` with both cases"));
            }
        }
        if let Some(node) = found.get(Keyword::Not) {
            self.negation(schema, node)?;
        }
        Ok(())
    }

    /// `not`, where it comes down to types.
    fn negation(&mut self, schema: &mut Schema, node: NodeId) -> Result<(), SchemaError> {
        if self.is_any(node) {
            schema.types = Types::NONE;
            return Ok(());
        }
        let members = match self.document.value(node) {
            Value::Boolean(_) => return Ok(()),
            Value::Object(members) => members,
            _ => return Err(self.wrong(Keyword::Not, node, "a schema")),
        };
        let mut keywords =
            members.iter().filter(|(key, _)| Keyword::of(key, self.dialect).is_some());
        if let (Some(("type", types)), None) = (keywords.next(), keywords.next()) {
            let types = self.type_set(types)?;
            let only_integers = types.has(Types::INTEGER) && !types.has(Types::NUMBER);
            if !only_integers || !schema.types.has(Types::NUMBER) {
                schema.types = schema.types.without(types);
                return Ok(());
            }
        }
        let hint = "say what is allowed, by `enum`, `anyOf` or `type`";
        Err(self.unsupported(Keyword::Not, node, hint))
    }

    fn numbers(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        let numeric = Types::NUMBER.with(Types::INTEGER);
        if !schema.types.has(numeric) {
            return Ok(());
        }
        let mut range = NumberRange::default();
        for (keyword, exclusive_keyword, is_minimum) in [
            (Keyword::Minimum, Keyword::ExclusiveMinimum, true),
            (Keyword::Maximum, Keyword::ExclusiveMaximum, false),
        ] {
            let mut limit = |value, exclusive| {
                let end = RangeEnd { value, exclusive };
                if is_minimum {
                    range.limit_below(end);
                } else {
                    range.limit_above(end);
                }
            };
            let mut exclusive = false;
            if let Some(node) = found.get(exclusive_keyword) {
                if self.dialect == Dialect::Draft4 {
                    exclusive = self.boolean(exclusive_keyword, node)?;
                } else {
                    limit(self.number(exclusive_keyword, node)?, true);
                }
            }
            if let Some(node) = found.get(keyword) {
                limit(self.number(keyword, node)?, exclusive);
            }
        }
        if let Some(node) = found.get(Keyword::MultipleOf) {
            let step = self.number(Keyword::MultipleOf, node)?;
            if step <= Decimal::zero() {
                return Err(self.wrong(Keyword::MultipleOf, node, "a number above 0"));
            }
            let integers_only = !schema.types.has(Types::NUMBER);
            if Decimal::parse("1").is_ok_and(|one| step == one)
                && self.dialect.integer_allows_fraction_zero()
            {
                range.integer = true;
            } else if !integers_only || !divides_one(&step) {
                let hint = "only 1 (integers) is";
                return Err(self.unsupported(Keyword::MultipleOf, node, hint));
            }
        }
        if range.is_any() {
            return Ok(());
        }
        match range.settle() {
            Some(range) => schema.number = Some(Box::new(range)),
            None => schema.types = schema.types.without(numeric),
        }
        Ok(())
    }

    fn strings(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        if !schema.types.has(Types::STRING) {
            return Ok(());
        }
        let mut spec = StringSpec::any();
        if let Some(node) = found.get(Keyword::MinLength) {
            spec.min_length =
                u32::try_from(self.count(Keyword::MinLength, node)?).map_err(|_| {
                    let exceeded = LimitExceeded { limit: "min_length", maximum: u32::MAX.into() };
                    SchemaError::limit(exceeded, self.document.pointer(node))
                })?;
        }
        if let Some(node) = found.get(Keyword::MaxLength) {
            // No string in memory is longer than what does not fit.
            spec.max_length = u32::try_from(self.count(Keyword::MaxLength, node)?).ok();
        }
        if let Some(node) = found.get(Keyword::Pattern) {
            spec.languages.push(self.pattern(node)?);
        }
        if let Some(node) = found.get(Keyword::Format) {
            spec.languages.extend(self.format(node)?);
        }
        spec.languages.sort_unstable();
        spec.languages.dedup();
        if spec.max_length.is_some_and(|maximum| maximum < spec.min_length)
            || spec.languages.contains(&Ast::Empty)
        {
            schema.types = schema.types.without(Types::STRING);
        } else if !spec.is_any() {
            schema.string = Some(Box::new(spec));
        }
        Ok(())
    }

    fn pattern(&mut self, node: NodeId) -> Result<Ast, SchemaError> {
        let Value::String(pattern) = self.document.value(node) else {
            return Err(self.wrong(Keyword::Pattern, node, "a regular expression in a string"));
        };
        if let Some(Some(known)) = self.languages.get(&(false, pattern)) {
            return Ok(known.clone());
        }
        let language = ecma::search(pattern).map_err(|error| {
            let pointer = self.document.pointer(node);
            let message = format!("the pattern {pattern:?}: {error}");
            match error.kind {
                PatternErrorKind::Unsupported(_) => {
                    SchemaError::unsupported("pattern", pointer, message)
                }
                _ => SchemaError::invalid(Some("pattern"), pointer, message),
            }
        })?;
        self.languages.insert((false, pattern), Some(language.clone()));
        Ok(language)
    }

    fn format(&mut self, node: NodeId) -> Result<Option<Ast>, SchemaError> {
        let Value::String(name) = self.document.value(node) else {
            return Err(self.wrong(Keyword::Format, node, "a format's name"));
        };
        if let Some(known) = self.languages.get(&(true, name)) {
            return Ok(known.clone());
        }
        let language = formats::format(name);
        if language.is_none() && formats::KNOWN_2020_12.contains(&name) {
            let message =
                format!("the format {name:?} is not supported; remove it or use `pattern`");
            return Err(SchemaError::unsupported("format", self.document.pointer(node), message));
        }
        self.languages.insert((true, name), language.clone());
        Ok(language)
    }

    fn objects(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        if !schema.types.has(Types::OBJECT) {
            return Ok(());
        }
        let document = self.document;
        let mut keywords = ObjectKeywords {
            properties: found.get(Keyword::Properties),
            required: found.get(Keyword::Required),
            additional: found.get(Keyword::AdditionalProperties),
            empty: false,
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
            if !schema.in_place.is_empty() && !self.is_any(node) {
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
            keywords.empty = maximum == 0;
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
        if keywords.empty && !required.is_empty() {
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
            || keywords.empty;
        schema.object = says_something.then_some(keywords);
        Ok(())
    }

    fn arrays(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
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
            if !schema.in_place.is_empty() && !self.is_any(node) {
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
        schema.array = says_something.then_some(keywords);
        Ok(())
    }

    /// `contains`, where it asks nothing or counts all items.
    fn contains(
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

    /// `enum` and `const`.
    fn values(&mut self, schema: &mut Schema, found: &Found) -> Result<(), SchemaError> {
        schema.constant = found.get(Keyword::Const);
        if let Some(node) = found.get(Keyword::Enum) {
            if !matches!(self.document.value(node), Value::Array(_)) {
                return Err(self.wrong(Keyword::Enum, node, "a list of values"));
            }
            schema.enumeration = Some(node);
        }
        // A value that passes the other keywords as a matter of course needs none of them.
        let single = match (schema.constant, schema.enumeration) {
            (Some(value), None) => Some(value),
            (None, Some(list)) => match self.document.items(list) {
                &[value] => Some(value),
                _ => None,
            },
            _ => None,
        };
        if let Some(value) = single {
            let free = match self.document.value(value) {
                Value::Null => schema.types.has(Types::NULL),
                Value::Boolean(_) => schema.types.has(Types::BOOLEAN),
                Value::String(_) => schema.types.has(Types::STRING) && schema.string.is_none(),
                _ => false,
            };
            if free {
                schema.types = Types::ALL;
                schema.number = None;
                schema.object = None;
                schema.array = None;
            }
        }
        Ok(())
    }

    fn reference(&mut self, node: NodeId) -> Result<NodeId, SchemaError> {
        let Value::String(reference) = self.document.value(node) else {
            return Err(self.wrong(Keyword::Reference, node, "a reference in a string"));
        };
        let references =
            self.references.get_or_insert_with(|| References::new(self.document, self.dialect));
        references.resolve(self.document, node, reference)
    }

    /// Refuses subschemas that apply themselves to the same value again.
    fn refuse_circles(&self) -> Result<(), SchemaError> {
        const FRESH: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut colours = vec![FRESH; self.document.len()];
        let targets = |node: NodeId| -> SmallVec<[NodeId; 4]> {
            let mut targets = SmallVec::new();
            match self.meanings[node.index()] {
                Meaning::Same(target) => targets.push(target),
                Meaning::Schema(number) => {
                    for kind in &self.schemas[number as usize].in_place {
                        match *kind {
                            InPlace::Reference(target) => targets.push(target),
                            InPlace::AllOf(list) | InPlace::AnyOf(list) | InPlace::OneOf(list) => {
                                targets.extend_from_slice(self.document.items(list));
                            }
                        }
                    }
                }
                _ => {}
            }
            targets
        };
        for start in 0..self.document.len() as u32 {
            if colours[start as usize] != FRESH
                || !matches!(self.meanings[start as usize], Meaning::Same(_) | Meaning::Schema(_))
            {
                continue;
            }
            colours[start as usize] = OPEN;
            let mut path = vec![(NodeId(start), targets(NodeId(start)), 0)];
            while let Some((node, next, place)) = path.last_mut() {
                let Some(&target) = next.get(*place) else {
                    colours[node.index()] = DONE;
                    path.pop();
                    continue;
                };
                *place += 1;
                match colours[target.index()] {
                    FRESH => {
                        colours[target.index()] = OPEN;
                        path.push((target, targets(target), 0));
                    }
                    OPEN => {
                        return Err(SchemaError::invalid(
                            Some("$ref"),
                            self.document.pointer(target),
                            "the schema refers to itself for the same value, without end; put the \
                             reference under a property or an item"
                                .into(),
                        ));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Whether a schema plainly accepts every value.
    fn is_any(&self, node: NodeId) -> bool {
        match self.document.value(node) {
            Value::Boolean(accepts) => accepts,
            Value::Object(members) => {
                members.iter().all(|(key, _)| Keyword::of(key, self.dialect).is_none())
            }
            _ => false,
        }
    }

    fn boolean(&self, keyword: Keyword, node: NodeId) -> Result<bool, SchemaError> {
        match self.document.value(node) {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.wrong(keyword, node, "a boolean")),
        }
    }

    fn number(&self, keyword: Keyword, node: NodeId) -> Result<Decimal, SchemaError> {
        match self.document.value(node) {
            Value::Number(text) => decimal(self.document, node, text),
            _ => Err(self.wrong(keyword, node, "a number")),
        }
    }

    /// A count; the largest `u64` stands for all above it.
    fn count(&self, keyword: Keyword, node: NodeId) -> Result<u64, SchemaError> {
        let value = self.number(keyword, node)?;
        if value.is_negative() || !value.is_integer() {
            return Err(self.wrong(keyword, node, "an integer of at least 0"));
        }
        Ok(value.to_u64().unwrap_or(u64::MAX))
    }

    fn wrong(&self, keyword: Keyword, node: NodeId, expected: &str) -> SchemaError {
        let name = keyword.name();
        let actual = self.document.value(node).type_name();
        let message = format!("`{name}` must be {expected}; it is {actual}");
        SchemaError::invalid(Some(name), self.document.pointer(node), message)
    }

    fn unsupported(&self, keyword: Keyword, node: NodeId, hint: &str) -> SchemaError {
        let name = keyword.name();
        let message = format!("`{name}` is not supported in this form; {hint}");
        SchemaError::unsupported(name, self.document.pointer(node), message)
    }
}

/// The value of a number in the document.
pub fn decimal(document: &Document, node: NodeId, text: &str) -> Result<Decimal, SchemaError> {
    Decimal::parse(text).map_err(|error| {
        let exceeded = match error {
            DecimalError::ExponentTooLarge => {
                LimitExceeded { limit: "number_exponent", maximum: MAX_EXPONENT as u64 }
            }
            _ => LimitExceeded { limit: "number_digits", maximum: MAX_DIGITS as u64 },
        };
        SchemaError::limit(exceeded, document.pointer(node))
    })
}

/// Whether every integer is a multiple of the step.
fn divides_one(step: &Decimal) -> bool {
    let (integer, fraction) = step.plain_parts();
    let Ok(places) = u32::try_from(fraction.len()) else { return false };
    match (format!("{integer}{fraction}").parse::<u128>(), 10u128.checked_pow(places)) {
        (Ok(numerator), Some(denominator)) => denominator % numerator == 0,
        _ => false,
    }
}
