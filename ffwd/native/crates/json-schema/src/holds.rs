//! Whether a value satisfies a schema.

use std::sync::Arc;

use super::error::{LimitExceeded, Result};
use super::satisfy::{Context, Solver};
use super::values::{Constant, ValueId};
use super::{ArraySpec, ObjectSpec, SchemaId};

/// The depth to which values are examined.
const MAX_NESTING: u64 = 256;

impl Solver {
    pub(super) fn holds(
        &mut self,
        context: Context<'_>,
        schema: SchemaId,
        value: ValueId,
    ) -> Result<bool> {
        self.holds_at(context, schema, value, 0)
    }

    fn holds_at(
        &mut self,
        context: Context<'_>,
        schema: SchemaId,
        value: ValueId,
        depth: u64,
    ) -> Result<bool> {
        match schema {
            SchemaId::ANY => return Ok(true),
            SchemaId::NEVER => return Ok(false),
            _ => {}
        }
        if let Some(&known) = self.counts.held.get(&(schema, value)) {
            return Ok(known);
        }
        if depth > MAX_NESTING {
            let error = LimitExceeded { limit: "value_nesting", maximum: MAX_NESTING };
            return Err(self.exceeded(context, schema, error));
        }
        let alternatives = self.expander.alternatives(context.program, schema)?;
        let charged = self.expander.charge(1 + alternatives.width());
        charged.map_err(|e| self.exceeded(context, schema, e))?;
        let holds = match self.expander.values.get(value).clone() {
            Constant::Null => alternatives.null,
            Constant::Boolean(false) => alternatives.boolean_false,
            Constant::Boolean(true) => alternatives.boolean_true,
            Constant::Number(number) => {
                alternatives.numbers.iter().any(|range| range.contains(&number))
            }
            Constant::String(text) => {
                let mut holds = false;
                for spec in &alternatives.strings {
                    holds = spec.allows_plainly(&text);
                    for language in spec.languages.iter().filter(|_| holds).collect::<Vec<_>>() {
                        let contains = self.expander.languages.contains(language, &text);
                        holds &= contains.map_err(|e| self.exceeded(context, schema, e))?;
                    }
                    if holds {
                        break;
                    }
                }
                holds
            }
            Constant::Array(items) => {
                let mut holds = false;
                for spec in &alternatives.arrays {
                    holds = self.array_holds(context, spec, &items, depth)?;
                    if holds {
                        break;
                    }
                }
                holds
            }
            Constant::Object(members) => {
                let mut holds = false;
                for spec in &alternatives.objects {
                    holds = self.object_holds(context, spec, &members, depth)?;
                    if holds {
                        break;
                    }
                }
                holds
            }
        };
        self.counts.held.insert((schema, value), holds);
        Ok(holds)
    }

    fn array_holds(
        &mut self,
        context: Context<'_>,
        spec: &ArraySpec,
        items: &[ValueId],
        depth: u64,
    ) -> Result<bool> {
        let length = items.len() as u64;
        if length < spec.min_items || spec.max_items.is_some_and(|max| length > max) {
            return Ok(false);
        }
        if spec.unique || spec.repeats {
            let mut sorted = items.to_vec();
            sorted.sort_unstable();
            let repeats = sorted.windows(2).any(|pair| pair[0] == pair[1]);
            if spec.unique && repeats || spec.repeats && !repeats {
                return Ok(false);
            }
        }
        for (place, &item) in items.iter().enumerate() {
            let schema = spec.prefix.get(place).copied().or(spec.items);
            let schema = schema.unwrap_or(SchemaId::NEVER);
            if !self.holds_at(context, schema, item, depth + 1)? {
                return Ok(false);
            }
        }
        for contains in &spec.contains {
            let mut count = 0;
            for &item in items.iter().skip(usize::try_from(contains.from).unwrap_or(usize::MAX)) {
                count += u64::from(self.holds_at(context, contains.schema, item, depth + 1)?);
            }
            if count < contains.min || contains.max.is_some_and(|max| count > max) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn object_holds(
        &mut self,
        context: Context<'_>,
        spec: &ObjectSpec,
        members: &[(Arc<str>, ValueId)],
        depth: u64,
    ) -> Result<bool> {
        let count = members.len() as u64;
        if count < spec.min_properties || spec.max_properties.is_some_and(|max| count > max) {
            return Ok(false);
        }
        let charged = self.expander.charge(1 + spec.properties.len());
        charged.map_err(|e| self.exceeded(context, SchemaId::ANY, e))?;
        let mut declared = 0;
        for property in &spec.properties {
            match members.binary_search_by(|(name, _)| name.cmp(&property.name)) {
                Ok(place) => {
                    declared += 1;
                    if !self.holds_at(context, property.schema, members[place].1, depth + 1)? {
                        return Ok(false);
                    }
                }
                Err(_) if property.required => return Ok(false),
                Err(_) => {}
            }
        }
        if declared < members.len() {
            for (name, value) in members {
                if spec.properties.iter().any(|property| property.name == *name) {
                    continue;
                }
                let class = self.expander.class_schema(&spec.others, name);
                let class = class.map_err(|e| self.exceeded(context, SchemaId::ANY, e))?;
                if !self.holds_at(context, class, *value, depth + 1)? {
                    return Ok(false);
                }
            }
        }
        for excluded in &spec.excluded {
            if self.object_holds(context, excluded, members, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
