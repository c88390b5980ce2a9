//! The constraints of keywords for single types, and of listed values.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::alternatives::Alternatives;
use super::document::{NodeId, Value};
use super::error::{LimitExceeded, Result, SchemaError};
use super::expand::Expander;
use super::intern::Atom;
use super::languages::MAX_KEYS;
use super::merge::{settle_array, settle_string};
use super::number_range::NumberRange;
use super::numbers::NumberKinds;
use super::program::Program;
use super::read_scalars::decimal;
use super::schema::{ObjectKeywords, Schema, Types};
use super::values::{Constant, ValueId};
use super::{ArraySpec, Contains, KeyClass, ObjectSpec, Property, SchemaId, StringSpec};
use ffwd_regular::regex::Ast;

impl Expander {
    /// Returns the values that `type` and the keywords for single types allow.
    pub(super) fn own(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
    ) -> Result<Alternatives> {
        let types = schema.types;
        let mut own = Alternatives {
            null: types.has(Types::NULL),
            boolean_false: types.has(Types::BOOLEAN),
            boolean_true: types.has(Types::BOOLEAN),
            ..Alternatives::default()
        };
        if types.has(Types::NUMBER.with(Types::INTEGER)) {
            let mut range = schema.number.as_deref().cloned().unwrap_or_default();
            if !types.has(Types::NUMBER) {
                let fraction_zero = schema.dialect.integer_allows_fraction_zero();
                range.kinds = range.kinds.intersect(NumberKinds::integers(fraction_zero));
            }
            own.numbers.extend(range.settle());
        }
        if types.has(Types::STRING) {
            let spec = schema.string.as_deref().cloned().unwrap_or_else(StringSpec::any);
            own.strings.extend(settle_string(spec));
        }
        if types.has(Types::OBJECT) {
            match schema.object.as_deref() {
                None => own.objects.push(Arc::new(ObjectSpec::any())),
                Some(keywords) => {
                    let spec = self.own_object(program, id, schema, keywords)?;
                    own.objects.extend(spec.map(Arc::new));
                }
            }
        }
        if types.has(Types::ARRAY) {
            own.arrays.extend(self.own_array(program, id, schema)?.map(Arc::new));
        }
        Ok(own)
    }

    fn own_object(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
        keywords: &ObjectKeywords,
    ) -> Result<Option<ObjectSpec>> {
        if keywords.max_properties == Some(0) {
            let forbidden =
                keywords.required.is_some_and(|r| !program.document.items(r).is_empty())
                    || keywords.min_properties > 0;
            return Ok((!forbidden).then(|| ObjectSpec::new(Vec::new(), None)));
        }
        let document = &program.document;
        let additional = match keywords.additional {
            Some(node) => self.id_of(program, program.child(schema, node))?,
            None => SchemaId::ANY,
        };
        let mut patterns = Vec::with_capacity(keywords.patterns.len());
        for (keys, node) in &keywords.patterns {
            patterns.push((keys, self.id_of(program, program.child(schema, *node))?));
        }
        let names = match keywords.names {
            Some(node) => {
                let names = self.id_of(program, program.child(schema, node))?;
                name_language(&self.expanded(names))
            }
            None => None,
        };
        let exceeded = |error| SchemaError::limit(error, program.pointer(schema.node));
        let mut required: Vec<Arc<str>> = Vec::new();
        let mut is_required: FxHashSet<&str> = FxHashSet::default();
        for &name in keywords.required.map_or(&[][..], |node| document.items(node)) {
            if let Value::String(name) = document.value(name) {
                if is_required.insert(name) {
                    required.push(name.into());
                }
            }
        }
        let declared = keywords.properties.map(|node| document.members(node));
        self.charge(required.len() + declared.map_or(0, |members| members.len()))
            .map_err(exceeded)?;
        // Patterns with few keys stand for these.
        let mut endless = Vec::with_capacity(patterns.len());
        let mut listed: Vec<Arc<str>> = Vec::new();
        for &(keys, schema) in &patterns {
            match self.languages.list(keys, MAX_KEYS).map_err(exceeded)? {
                Some(names) => listed.extend(names),
                None => endless.push((keys, schema)),
            }
        }
        listed.sort_unstable();
        listed.dedup();
        self.charge(listed.len() * patterns.len()).map_err(exceeded)?;
        let others = self.key_classes(program, &endless, additional).map_err(exceeded)?;
        let simple = patterns.is_empty();
        let mut properties = Vec::new();
        for (name, node) in declared.iter().flat_map(|members| members.iter()) {
            let mut schema = self.id_of(program, program.child(schema, node))?;
            let required = is_required.contains(name);
            let name: Arc<str> = name.into();
            if !simple {
                let mut all = vec![schema];
                for (keys, schema) in &patterns {
                    if self.languages.contains(keys, &name).map_err(exceeded)? {
                        all.push(*schema);
                    }
                }
                schema = self.both(program, &all).map_err(exceeded)?;
            }
            properties.push(Property { name, schema, required, free: false });
        }
        listed.retain(|name| !is_required.contains(&**name));
        let undeclared = required.into_iter().map(|name| (name, true));
        for (name, required) in undeclared.chain(listed.into_iter().map(|name| (name, false))) {
            if declared.is_some_and(|members| members.get(&name).is_some()) {
                continue;
            }
            let mut all = Vec::new();
            for (keys, schema) in &patterns {
                if self.languages.contains(keys, &name).map_err(exceeded)? {
                    all.push(*schema);
                }
            }
            let schema = match all.is_empty() {
                true => additional,
                false => self.both(program, &all).map_err(exceeded)?,
            };
            properties.push(Property { schema, required, ..Property::required(name) });
        }
        let mut spec = ObjectSpec {
            properties,
            others,
            min_properties: keywords.min_properties,
            max_properties: keywords.max_properties,
            excluded: Vec::new(),
        };
        if let Some(names) = names {
            for property in &mut spec.properties {
                if !self.languages.contains(&names, &property.name).map_err(exceeded)? {
                    property.schema = SchemaId::NEVER;
                }
            }
            let allowed = [KeyClass { keys: Some(names), schema: SchemaId::ANY }];
            spec.others = self.classes_both(program, &spec.others, &allowed).map_err(exceeded)?;
        }
        self.settle_object(program, spec).map_err(|e| self.exceeded(program, id, e))
    }

    fn own_array(
        &mut self,
        program: &Program,
        id: SchemaId,
        schema: &Schema,
    ) -> Result<Option<ArraySpec>> {
        let Some(keywords) = schema.array.as_deref() else { return Ok(Some(ArraySpec::any())) };
        let items = match keywords.items {
            Some(node) => self.id_of(program, program.child(schema, node))?,
            None => SchemaId::ANY,
        };
        let prefix = keywords.prefix.map_or(&[][..], |node| program.document.items(node));
        self.charge(prefix.len()).map_err(|e| self.exceeded(program, id, e))?;
        let prefix = prefix
            .iter()
            .map(|&node| self.id_of(program, program.child(schema, node)))
            .collect::<Result<_, _>>()?;
        let contains = match keywords.contains {
            Some(node) => {
                let schema = self.id_of(program, program.child(schema, node))?;
                let (min, max) = (keywords.min_contains, keywords.max_contains);
                vec![Contains { schema, from: 0, min, max }]
            }
            None => Vec::new(),
        };
        Ok(settle_array(ArraySpec {
            prefix,
            items: Some(items),
            min_items: keywords.min_items,
            max_items: keywords.max_items,
            contains,
            unique: keywords.unique,
            repeats: false,
        }))
    }

    /// Returns the values that equal one of those at the nodes.
    pub(super) fn any_of_values(
        &mut self,
        program: &Program,
        nodes: &[NodeId],
    ) -> Result<Alternatives> {
        let document = &program.document;
        let mut alternatives = Alternatives::default();
        let mut strings: Vec<Arc<str>> = Vec::new();
        let mut numbers = Vec::new();
        for &node in nodes {
            match document.value(node) {
                Value::Null => alternatives.null = true,
                Value::Boolean(false) => alternatives.boolean_false = true,
                Value::Boolean(true) => alternatives.boolean_true = true,
                Value::Number(text) => numbers.push(decimal(document, node, text)?),
                Value::String(text) => strings.push(text.into()),
                Value::Array(_) | Value::Object(_) => {
                    let value = self.values.of_node(document, node)?;
                    let equal = self.equal_to(value);
                    alternatives
                        .add(&equal.map_err(|e| SchemaError::limit(e, document.pointer(node)))?);
                }
            }
        }
        if !strings.is_empty() {
            alternatives.strings.push(StringSpec::values(strings));
        }
        if !numbers.is_empty() {
            alternatives.numbers.push(NumberRange::values(numbers));
        }
        Ok(alternatives)
    }

    /// Returns the values that equal one of some values.
    pub(super) fn equal_to_any(
        &mut self,
        values: &[ValueId],
    ) -> Result<Alternatives, LimitExceeded> {
        let mut alternatives = Alternatives::default();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        self.charge(values.len())?;
        for &value in values {
            match self.values.get(value).clone() {
                Constant::Number(number) => numbers.push(number),
                Constant::String(text) => strings.push(text),
                _ => alternatives.add(&self.equal_to(value)?),
            }
        }
        if !strings.is_empty() {
            alternatives.strings.push(StringSpec::values(strings));
        }
        if !numbers.is_empty() {
            alternatives.numbers.push(NumberRange::values(numbers));
        }
        Ok(alternatives)
    }

    /// Returns the values that equal a value.
    pub(super) fn equal_to(&mut self, value: ValueId) -> Result<Alternatives, LimitExceeded> {
        let mut alternatives = Alternatives::default();
        match self.values.get(value).clone() {
            Constant::Null => alternatives.null = true,
            Constant::Boolean(false) => alternatives.boolean_false = true,
            Constant::Boolean(true) => alternatives.boolean_true = true,
            Constant::Number(number) => {
                alternatives.numbers.push(NumberRange::values(vec![number]));
            }
            Constant::String(text) => alternatives.strings.push(StringSpec::values(vec![text])),
            Constant::Array(items) => {
                self.charge(items.len())?;
                let prefix = items.iter().map(|&item| self.interner.single(Atom::equal(item)));
                let length = items.len() as u64;
                alternatives.arrays.push(Arc::new(ArraySpec {
                    prefix: prefix.collect::<Result<_, _>>()?,
                    items: None,
                    min_items: length,
                    max_items: Some(length),
                    ..ArraySpec::any()
                }));
            }
            Constant::Object(members) => {
                self.charge(members.len())?;
                let (interner, values) = (&mut self.interner, &self.values);
                let properties = values.written(value).map(|(name, value)| {
                    let schema = interner.single(Atom::equal(value))?;
                    Ok(Property { name: name.clone(), schema, required: true, free: false })
                });
                let properties = properties.collect::<Result<_, LimitExceeded>>()?;
                alternatives.objects.push(Arc::new(ObjectSpec::new(properties, None)));
            }
        }
        Ok(alternatives)
    }
}

/// The names that `propertyNames` allows; `None` for all.
fn name_language(names: &Alternatives) -> Option<Ast> {
    if names.strings.iter().any(StringSpec::is_any) {
        return None;
    }
    Some(Ast::alternation(names.strings.iter().map(StringSpec::language)))
}
