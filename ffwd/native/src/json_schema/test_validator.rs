//! Validation by normal forms, for the tests: tries every alternative.

use super::{ArraySpec, Normal, ObjectSpec, SchemaId, SchemaSet};
use crate::regex::oracle::matches;
use serde_json::Value;

/// Whether keys must come in the order of [`ObjectSpec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Free,
    Declared,
}

pub fn validates(set: &SchemaSet, id: SchemaId, value: &Value, order: Order) -> bool {
    let normal: &Normal = &set.normal(id).unwrap();
    match value {
        Value::Null => normal.null,
        Value::Bool(true) => normal.boolean_true,
        Value::Bool(false) => normal.boolean_false,
        Value::Number(number) => {
            let text = number.to_string();
            normal.numbers.iter().any(|spec| matches(&spec.text, &text))
        }
        Value::String(text) => normal.strings.iter().any(|spec| {
            let length = text.chars().count();
            length >= spec.min_length as usize
                && spec.max_length.is_none_or(|maximum| length <= maximum as usize)
                && spec.one_of.as_ref().is_none_or(|values| {
                    values.binary_search_by(|value| (**value).cmp(text)).is_ok()
                })
                && spec.languages.iter().all(|language| matches(language, text))
        }),
        Value::Object(members) => {
            normal.objects.iter().any(|spec| object(set, spec, members, order))
        }
        Value::Array(items) => normal.arrays.iter().any(|spec| array(set, spec, items, order)),
    }
}

fn object(
    set: &SchemaSet,
    spec: &ObjectSpec,
    members: &serde_json::Map<String, Value>,
    order: Order,
) -> bool {
    let place = |name: &str| spec.properties.iter().position(|p| *p.name == *name);
    let places = members.keys().map(|name| place(name).unwrap_or(usize::MAX));
    spec.properties.iter().all(|p| !p.required || members.contains_key(&*p.name))
        && (order == Order::Free || places.is_sorted())
        && members.iter().all(|(name, value)| {
            let schema = place(name).map(|i| spec.properties[i].schema).or(spec.additional());
            schema.is_some_and(|schema| validates(set, schema, value, order))
        })
}

fn array(set: &SchemaSet, spec: &ArraySpec, items: &[Value], order: Order) -> bool {
    let length = items.len() as u64;
    length >= spec.min_items
        && spec.max_items.is_none_or(|maximum| length <= maximum)
        && items.iter().enumerate().all(|(place, item)| {
            let schema = spec.prefix.get(place).copied().or(spec.items);
            schema.is_some_and(|schema| validates(set, schema, item, order))
        })
}
