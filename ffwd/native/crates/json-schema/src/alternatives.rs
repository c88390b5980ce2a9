//! The values that a schema allows before dead alternatives are pruned: the normal form without the
//! parts that need other schemas.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::number_range::NumberRange;
use super::numbers::NumberKinds;
use super::{ArraySpec, KeyClass, ObjectSpec, Property, SchemaId, StringSpec};
use ffwd_regular::regex::{Ast, CharClass};

/// Per JSON type, the alternatives of which one must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternatives {
    pub null: bool,
    pub boolean_false: bool,
    pub boolean_true: bool,
    pub numbers: Vec<NumberRange>,
    pub strings: Vec<StringSpec>,
    pub objects: Vec<Arc<ObjectSpec>>,
    pub arrays: Vec<Arc<ArraySpec>>,
    /// The same objects in one specification, with exclusions instead of alternatives. Conjunctions
    /// use it where alternatives would multiply.
    pub joined: Option<Arc<ObjectSpec>>,
}

impl StringSpec {
    pub(super) fn any() -> Self {
        Self { min_length: 0, max_length: None, languages: Vec::new(), one_of: None }
    }

    pub(super) fn is_any(&self) -> bool {
        self.min_length == 0
            && self.max_length.is_none()
            && self.languages.is_empty()
            && self.one_of.is_none()
    }

    /// All constraints as one language.
    pub fn language(&self) -> Ast {
        let mut parts = self.languages.clone();
        if let Some(values) = &self.one_of {
            let text = |value: &Arc<str>| match value.is_empty() {
                true => Ast::Epsilon,
                false => Ast::Literal(value.clone()),
            };
            parts.push(Ast::alternation(values.iter().map(text)));
        }
        if self.min_length > 0 || self.max_length.is_some() {
            let any = Ast::Class(CharClass::any());
            parts.push(Ast::repeat(any, self.min_length, self.max_length));
        }
        Ast::intersection(parts)
    }

    /// Whether a text has the right length and is one of the values, if these are listed.
    pub(super) fn allows_plainly(&self, text: &Arc<str>) -> bool {
        let length = text.chars().count() as u64;
        length >= u64::from(self.min_length)
            && self.max_length.is_none_or(|maximum| length <= u64::from(maximum))
            && self.one_of.as_ref().is_none_or(|values| values.binary_search(text).is_ok())
    }

    pub(super) fn values(values: Vec<Arc<str>>) -> Self {
        // Usually the first bytes, which are stored inline, already differ.
        let begin = |value: &Arc<str>| {
            let mut bytes = [0; 8];
            let length = value.len().min(8);
            bytes[..length].copy_from_slice(&value.as_bytes()[..length]);
            u64::from_be_bytes(bytes)
        };
        let mut keyed: Vec<(u64, Arc<str>)> =
            values.into_iter().map(|value| (begin(&value), value)).collect();
        keyed.sort_unstable();
        let mut values: Vec<Arc<str>> = keyed.into_iter().map(|(_, value)| value).collect();
        values.dedup();
        Self { one_of: Some(values.into()), ..Self::any() }
    }
}

impl Property {
    /// A required name to which the schema gives no place in the order.
    pub(super) fn required(name: Arc<str>) -> Self {
        Self { name, schema: SchemaId::ANY, required: true, free: true }
    }
}

impl KeyClass {
    /// Whether it has all keys, with any value.
    pub fn is_any(&self) -> bool {
        self.keys.is_none() && self.schema == SchemaId::ANY
    }
}

impl ObjectSpec {
    /// With these properties, and one class of further keys or none.
    pub(super) fn new(properties: Vec<Property>, additional: Option<SchemaId>) -> Self {
        Self {
            properties,
            others: additional.map(|schema| KeyClass { keys: None, schema }).into_iter().collect(),
            min_properties: 0,
            max_properties: None,
            excluded: Vec::new(),
        }
    }

    /// Returns the schema of every further key, if they form at most one class.
    #[cfg(test)]
    pub(crate) fn additional(&self) -> Option<SchemaId> {
        self.others.first().map(|class| class.schema)
    }

    pub(super) fn any() -> Self {
        Self::new(Vec::new(), Some(SchemaId::ANY))
    }

    pub(super) fn is_any(&self) -> bool {
        *self == Self::any()
    }

    /// Whether `{}` is plainly one of these.
    pub(super) fn may_be_empty(&self) -> bool {
        self.min_properties == 0
            && self.excluded.is_empty()
            && self.properties.iter().all(|property| !property.required)
    }
}

impl ArraySpec {
    pub(super) fn any() -> Self {
        Self {
            prefix: Vec::new(),
            items: Some(SchemaId::ANY),
            min_items: 0,
            max_items: None,
            contains: Vec::new(),
            unique: false,
            repeats: false,
        }
    }

    pub(super) fn is_any(&self) -> bool {
        *self == Self::any()
    }

    /// Whether it has no constraint over several items.
    pub(crate) fn is_plain(&self) -> bool {
        self.contains.is_empty() && !self.unique && !self.repeats
    }

    /// Whether `[]` is plainly one of these.
    pub(super) fn may_be_empty(&self) -> bool {
        self.min_items == 0 && !self.repeats && self.contains.iter().all(|c| c.min == 0)
    }
}

impl Alternatives {
    pub fn any() -> Self {
        Self {
            null: true,
            boolean_false: true,
            boolean_true: true,
            numbers: vec![NumberRange::default()],
            strings: vec![StringSpec::any()],
            objects: vec![Arc::new(ObjectSpec::any())],
            arrays: vec![Arc::new(ArraySpec::any())],
            joined: None,
        }
    }

    pub fn is_any(&self) -> bool {
        self.null
            && self.boolean_false
            && self.boolean_true
            && matches!(&self.numbers[..], [number] if number.is_any())
            && matches!(&self.strings[..], [string] if string.is_any())
            && matches!(&self.objects[..], [object] if object.is_any())
            && matches!(&self.arrays[..], [array] if array.is_any())
    }

    /// The most alternatives that one type has.
    pub fn width(&self) -> usize {
        let containers = self.objects.len().max(self.arrays.len());
        self.numbers.len().max(self.strings.len()).max(containers)
    }

    /// Adds what `other` allows.
    pub fn add(&mut self, other: &Self) {
        self.null |= other.null;
        self.boolean_false |= other.boolean_false;
        self.boolean_true |= other.boolean_true;
        self.numbers.extend_from_slice(&other.numbers);
        self.strings.extend_from_slice(&other.strings);
        self.objects.extend_from_slice(&other.objects);
        self.arrays.extend_from_slice(&other.arrays);
        self.joined = None;
    }

    /// Merges lists of values, and drops alternatives that repeat or are covered by one that has
    /// no constraint.
    pub fn simplify(&mut self) {
        simplify(&mut self.numbers, NumberRange::is_any, merge_numbers);
        simplify(&mut self.strings, StringSpec::is_any, merge_strings);
        simplify(&mut self.objects, |object| object.is_any(), |_| {});
        simplify(&mut self.arrays, |array| array.is_any(), |_| {});
    }
}

fn simplify<T: Clone + Eq + Hash>(
    alternatives: &mut Vec<T>,
    is_any: impl Fn(&T) -> bool,
    merge_values: impl Fn(&mut Vec<T>),
) {
    if alternatives.len() < 2 {
        return;
    }
    if let Some(place) = alternatives.iter().position(is_any) {
        alternatives.swap(0, place);
        alternatives.truncate(1);
        return;
    }
    merge_values(alternatives);
    let mut seen = FxHashSet::default();
    alternatives.retain(|alternative| seen.insert(alternative.clone()));
}

/// Merges all alternatives that are only lists of values.
fn merge_strings(strings: &mut Vec<StringSpec>) {
    let is_list = |spec: &StringSpec| spec.one_of.is_some() && spec.languages.is_empty();
    if strings.iter().filter(|spec| is_list(spec)).count() < 2 {
        return;
    }
    let mut values = Vec::new();
    strings.retain(|spec| {
        let list = is_list(spec);
        if list {
            values.extend(spec.one_of.iter().flat_map(|list| list.iter().cloned()));
        }
        !list
    });
    strings.push(StringSpec::values(values));
}

fn merge_numbers(numbers: &mut Vec<NumberRange>) {
    for kinds in [NumberKinds::ALL, NumberKinds::INTEGERS, NumberKinds::DIGITS] {
        let is_list = |range: &NumberRange| range.one_of.is_some() && range.kinds == kinds;
        if numbers.iter().filter(|range| is_list(range)).count() < 2 {
            continue;
        }
        let mut values = Vec::new();
        numbers.retain(|range| {
            let list = is_list(range);
            if list {
                values.extend(range.one_of.iter().flat_map(|list| list.iter().cloned()));
            }
            !list
        });
        numbers.push(NumberRange { kinds, ..NumberRange::values(values) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_values_become_one_and_repeats_go() {
        let list = |values: &[&str]| StringSpec::values(values.iter().map(|&v| v.into()).collect());
        let pattern = StringSpec { languages: vec![Ast::literal("x")], ..StringSpec::any() };
        let mut alternatives = Alternatives {
            strings: vec![list(&["b", "a"]), pattern.clone(), list(&["c", "a"]), pattern.clone()],
            ..Alternatives::default()
        };
        alternatives.simplify();
        assert_eq!(alternatives.strings, [pattern, list(&["a", "b", "c"])]);
        alternatives.add(&Alternatives::any());
        alternatives.simplify();
        assert_eq!(alternatives, Alternatives::any());
        assert!(alternatives.is_any());
    }
}
