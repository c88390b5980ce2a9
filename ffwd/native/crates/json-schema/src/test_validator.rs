//! Validation by normal forms, for the tests: tries every alternative.

#![allow(clippy::unwrap_used, reason = "only tests use it")]

use super::{ArraySpec, KeyClass, Normal, ObjectSpec, SchemaId, SchemaSet};
use ffwd_regular::regex::oracle::matches;
use ffwd_regular::regex::Decimal;
use serde_json::Value;

/// Whether keys must come in the order of [`ObjectSpec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Keys may come in any order.
    Free,
    /// Declared keys come in the order of their declaration.
    Declared,
}

/// Whether some alternative of the normal form of `id` has the value.
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
    let ordered =
        |name: &str| place(name).filter(|&i| !spec.properties[i].free).unwrap_or(usize::MAX);
    let count = members.len() as u64;
    let schema = |name: &str| match place(name) {
        Some(place) => Some(spec.properties[place].schema),
        None => {
            let inside =
                |class: &&KeyClass| class.keys.as_ref().is_none_or(|keys| matches(keys, name));
            let mut classes = spec.others.iter().filter(inside);
            let class = classes.next().map(|class| class.schema);
            assert!(classes.next().is_none(), "classes overlap on {name}");
            class
        }
    };
    spec.properties.iter().all(|p| !p.required || members.contains_key(&*p.name))
        && (order == Order::Free || members.keys().map(|name| ordered(name)).is_sorted())
        && count >= spec.min_properties
        && spec.max_properties.is_none_or(|max| count <= max)
        && members.iter().all(|(name, value)| {
            schema(name).is_some_and(|schema| validates(set, schema, value, order))
        })
        && !spec.excluded.iter().any(|excluded| object(set, excluded, members, Order::Free))
}

fn array(set: &SchemaSet, spec: &ArraySpec, items: &[Value], order: Order) -> bool {
    let length = items.len() as u64;
    let repeats = || (1..items.len()).any(|i| items[..i].iter().any(|v| equal(v, &items[i])));
    length >= spec.min_items
        && spec.max_items.is_none_or(|maximum| length <= maximum)
        && items.iter().enumerate().all(|(place, item)| {
            let schema = spec.prefix.get(place).copied().or(spec.items);
            schema.is_some_and(|schema| validates(set, schema, item, order))
        })
        && spec.contains.iter().all(|contains| {
            let from = items.iter().skip(contains.from as usize);
            let holds = |item: &&Value| validates(set, contains.schema, item, Order::Free);
            let count = from.filter(holds).count() as u64;
            count >= contains.min && contains.max.is_none_or(|max| count <= max)
        })
        && !(spec.unique && repeats())
        && (!spec.repeats || repeats())
}

/// Equality of JSON values, numbers by value.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            Decimal::parse(&left.to_string()) == Decimal::parse(&right.to_string())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| equal(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(k, a)| right.get(k).is_some_and(|b| equal(a, b)))
        }
        _ => left == right,
    }
}
