//! The normal form of a schema: for each JSON type, the alternatives of which one must hold.

use std::sync::Arc;

use ffwd_regular::regex::Ast;

/// An interned schema: a set of subschemas of the document that must hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub u32);

/// The values that a schema allows, per JSON type. A value is valid if and only if one alternative
/// of its type accepts it; a type without alternatives is not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    /// Whether `null` is allowed.
    pub null: bool,
    /// Whether `false` is allowed.
    pub boolean_false: bool,
    /// Whether `true` is allowed.
    pub boolean_true: bool,
    /// The alternatives of numbers.
    pub numbers: Vec<NumberSpec>,
    /// The alternatives of strings.
    pub strings: Vec<StringSpec>,
    /// The alternatives of objects.
    pub objects: Vec<Arc<ObjectSpec>>,
    /// The alternatives of arrays.
    pub arrays: Vec<Arc<ArraySpec>>,
}

/// The spellings of the allowed numbers, as text (ASCII), already combined from type, bounds,
/// enum and const.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberSpec {
    /// All spellings that are valid.
    pub text: Ast,
    /// Those that are written, where they are fewer.
    pub(crate) narrow: Option<Ast>,
}

impl NumberSpec {
    /// The spellings that are written.
    pub fn written(&self) -> &Ast {
        self.narrow.as_ref().unwrap_or(&self.text)
    }
}

/// The allowed strings, as decoded text. All constraints must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringSpec {
    /// Code points.
    pub(crate) min_length: u32,
    pub(crate) max_length: Option<u32>,
    /// Languages that the whole text must belong to (patterns are already made searched, formats
    /// are whole). Sorted and without duplicates.
    pub(crate) languages: Vec<Ast>,
    /// `enum`/`const`: the text must be one of these. Sorted and without duplicates; those that
    /// break another constraint have been removed where that is cheap to know.
    pub one_of: Option<Arc<[Arc<str>]>>,
}

/// One kind of object: all constraints must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectSpec {
    /// Names are unique. Those that are not `free` come first, in the order in which they are
    /// declared. A property that is not required may have a schema that nothing satisfies: its key
    /// is forbidden, also as a further one.
    pub properties: Vec<Property>,
    /// The allowed further keys, and the schemas of their values. The classes have no key in
    /// common, and each has infinitely many keys beside those in `properties`. A further key that
    /// is in no class is forbidden.
    pub others: Vec<KeyClass>,
    /// The least number of all members together.
    pub min_properties: u64,
    /// The most members; `None` if their number is not bounded.
    pub max_properties: Option<u64>,
    /// The objects that it must not equal. None of these has exclusions itself.
    pub excluded: Vec<Arc<ObjectSpec>>,
}

/// Some of the keys that an object does not declare.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyClass {
    /// As decoded text; `None` for every key.
    pub keys: Option<Ast>,
    /// What the values of these keys must satisfy.
    pub schema: SchemaId,
}

/// A key that an object knows by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    /// The key, as decoded text.
    pub name: Arc<str>,
    /// What its value must satisfy.
    pub schema: SchemaId,
    /// Whether the object must have it.
    pub required: bool,
    /// The schema does not declare the name; it was found by listing a pattern's keys. In declared
    /// order it has no place among the others, and is allowed wherever further keys are.
    pub free: bool,
}

/// One kind of array: all constraints must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArraySpec {
    /// What the first items must satisfy, each by its index.
    pub prefix: Vec<SchemaId>,
    /// The schema of items past the prefix; `None` forbids them.
    pub items: Option<SchemaId>,
    /// The fewest items.
    pub min_items: u64,
    /// The most items; `None` if their number is not bounded.
    pub max_items: Option<u64>,
    /// How many items must satisfy which schemas.
    pub contains: Vec<Contains>,
    /// No two items are equal.
    pub unique: bool,
    /// Some two items are equal.
    pub repeats: bool,
}

/// How many items must satisfy a schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contains {
    /// What is counted.
    pub schema: SchemaId,
    /// Items before this place do not count.
    pub from: u64,
    /// The fewest items that satisfy it.
    pub min: u64,
    /// The most items that satisfy it; `None` if their number is not bounded.
    pub max: Option<u64>,
}
