//! The normal form of a schema: for each JSON type, the alternatives of which one must hold.

use std::sync::Arc;

use crate::regex::Ast;

/// An interned schema: a set of subschemas of the document that must hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub u32);

/// What a schema allows, per JSON type. A value is valid if and only if one alternative of its
/// type accepts it; a type without alternatives is not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normal {
    pub null: bool,
    pub boolean_false: bool,
    pub boolean_true: bool,
    pub numbers: Vec<NumberSpec>,
    pub strings: Vec<StringSpec>,
    pub objects: Vec<Arc<ObjectSpec>>,
    pub arrays: Vec<Arc<ArraySpec>>,
}

/// The spellings of the allowed numbers, as text (ASCII), already combined from type, bounds,
/// enum and const.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NumberSpec {
    pub text: Ast,
}

/// The allowed strings, as decoded text. All of it must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringSpec {
    /// Code points.
    pub min_length: u32,
    pub max_length: Option<u32>,
    /// Languages that the whole text must belong to (patterns are already made searched, formats
    /// are whole). Sorted and without duplicates.
    pub languages: Vec<Ast>,
    /// `enum`/`const`: the text must be one of these. Sorted and without duplicates; those that
    /// break another constraint have been removed where that is cheap to know.
    pub one_of: Option<Arc<[Arc<str>]>>,
}

/// One kind of object. Keys come in the order of `properties`, those not required may be left
/// out; any further keys come after them and take `additional`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectSpec {
    /// Declared properties, then names that are only in `required`, in this order. Names are
    /// unique. A property that is not required may have a schema that nothing satisfies: its key
    /// is forbidden, also as a further one.
    pub properties: Vec<Property>,
    /// What a key that is not in `properties` must satisfy; `None` forbids such keys.
    pub additional: Option<SchemaId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Property {
    pub name: Arc<str>,
    pub schema: SchemaId,
    pub required: bool,
}

/// One kind of array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArraySpec {
    pub prefix: Vec<SchemaId>,
    /// What items past the prefix must satisfy; `None` forbids them.
    pub items: Option<SchemaId>,
    pub min_items: u64,
    pub max_items: Option<u64>,
}
