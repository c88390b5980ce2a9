//! The keywords of one subschema, read and checked, its children named by their nodes.

use smallvec::SmallVec;

use super::dialect::Dialect;
use super::document::NodeId;
use super::number_range::NumberRange;
use super::StringSpec;
use ffwd_regular::regex::Ast;

/// A set of JSON types. `NUMBER` is all numbers, `INTEGER` those that are integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types(u8);

impl Types {
    pub const NONE: Types = Types(0);
    pub const NULL: Types = Types(1);
    pub const BOOLEAN: Types = Types(2);
    pub const INTEGER: Types = Types(4);
    pub const NUMBER: Types = Types(8);
    pub const STRING: Types = Types(16);
    pub const ARRAY: Types = Types(32);
    pub const OBJECT: Types = Types(64);
    pub const ALL: Types = Types(127);

    /// The type of this name in `type`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self(Self::NUMBER.0 | Self::INTEGER.0),
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A keyword that applies a subschema to the value itself.
#[derive(Clone, Copy, Debug)]
pub enum InPlace {
    Reference(NodeId),
    /// The node is the array of branches.
    AllOf(NodeId),
    AnyOf(NodeId),
    OneOf(NodeId),
    Not(NodeId),
    If {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    /// `dependencies`, `dependentRequired` or `dependentSchemas`: the node is the object whose
    /// members are lists of names or schemas.
    Dependencies(NodeId),
}

/// The keywords for objects.
#[derive(Clone, Debug, Default)]
pub struct ObjectKeywords {
    pub properties: Option<NodeId>,
    pub required: Option<NodeId>,
    pub additional: Option<NodeId>,
    /// `patternProperties`: the keys of each pattern, and the schema of their values.
    pub patterns: Vec<(Ast, NodeId)>,
    /// `propertyNames`
    pub names: Option<NodeId>,
    pub min_properties: u64,
    pub max_properties: Option<u64>,
    pub unevaluated: Option<NodeId>,
}

impl ObjectKeywords {
    /// Whether they ask for nothing and evaluate nothing.
    pub fn is_any(&self) -> bool {
        self.properties.is_none()
            && self.required.is_none()
            && self.additional.is_none()
            && self.patterns.is_empty()
            && self.names.is_none()
            && self.min_properties == 0
            && self.max_properties.is_none()
            && self.unevaluated.is_none()
    }
}

/// The keywords for arrays; `items` in either of its spellings.
#[derive(Clone, Debug, Default)]
pub struct ArrayKeywords {
    pub prefix: Option<NodeId>,
    pub items: Option<NodeId>,
    pub min_items: u64,
    pub max_items: Option<u64>,
    pub contains: Option<NodeId>,
    /// Beside `contains`; 1 by default.
    pub min_contains: u64,
    pub max_contains: Option<u64>,
    pub unique: bool,
    pub unevaluated: Option<NodeId>,
}

impl ArrayKeywords {
    /// Whether they ask for nothing and evaluate nothing.
    pub fn is_any(&self) -> bool {
        self.prefix.is_none()
            && self.items.is_none()
            && self.min_items == 0
            && self.max_items.is_none()
            && self.contains.is_none()
            && !self.unique
            && self.unevaluated.is_none()
    }
}

/// A subschema with keywords.
#[derive(Clone, Debug)]
pub struct Schema {
    /// Its identity.
    pub node: NodeId,
    pub dialect: Dialect,
    pub types: Types,
    pub number: Option<Box<NumberRange>>,
    pub string: Option<Box<StringSpec>>,
    pub object: Option<Box<ObjectKeywords>>,
    pub array: Option<Box<ArrayKeywords>>,
    /// The array of values of `enum`.
    pub enumeration: Option<NodeId>,
    /// The value of `const`.
    pub constant: Option<NodeId>,
    /// In the order written.
    pub in_place: SmallVec<[InPlace; 2]>,
    /// How many of `in_place` stand before the object keywords: properties are declared in the
    /// order written.
    pub in_place_before_own: usize,
}

impl Schema {
    pub fn new(node: NodeId, dialect: Dialect) -> Self {
        Self {
            node,
            dialect,
            types: Types::ALL,
            number: None,
            string: None,
            object: None,
            array: None,
            enumeration: None,
            constant: None,
            in_place: SmallVec::new(),
            in_place_before_own: 0,
        }
    }

    /// Whether it has `unevaluatedProperties` or `unevaluatedItems`.
    pub fn asks_what_is_evaluated(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.unevaluated.is_some())
            || self.array.as_ref().is_some_and(|array| array.unevaluated.is_some())
    }

    fn has_own(&self) -> bool {
        self.types != Types::ALL
            || self.number.is_some()
            || self.string.is_some()
            || self.object.is_some()
            || self.array.is_some()
    }

    /// The schema in its simplest form.
    pub fn meaning(&self, branches: impl Fn(NodeId) -> SmallVec<[NodeId; 1]>) -> Meaning {
        if self.types == Types::NONE {
            return Meaning::Never;
        }
        match (self.has_own(), self.enumeration, self.constant, &self.in_place[..]) {
            (false, None, None, []) => Meaning::Any,
            (false, None, Some(value), []) => Meaning::Equal(value),
            (false, Some(values), None, []) => match branches(values)[..] {
                [] => Meaning::Never,
                [value] => Meaning::Equal(value),
                _ => Meaning::Other,
            },
            (false, None, None, [InPlace::Reference(target)]) => Meaning::Same(*target),
            (
                false,
                None,
                None,
                [InPlace::AllOf(node) | InPlace::AnyOf(node) | InPlace::OneOf(node)],
            ) => match branches(*node)[..] {
                [branch] => Meaning::Same(branch),
                _ => Meaning::Other,
            },
            _ => Meaning::Other,
        }
    }

    /// Whether some value certainly satisfies the schema, judged without looking elsewhere.
    pub fn is_plainly_satisfiable(&self) -> bool {
        self.enumeration.is_none()
            && self.constant.is_none()
            && self.in_place.is_empty()
            && (self.types.has(Types::NULL.with(Types::BOOLEAN))
                || (self.types.has(Types::NUMBER.with(Types::INTEGER)) && self.number.is_none())
                || (self.types.has(Types::STRING) && self.string.is_none())
                || (self.types.has(Types::OBJECT)
                    && self.object.as_ref().is_none_or(|object| {
                        object.required.is_none() && object.min_properties == 0
                    }))
                || (self.types.has(Types::ARRAY)
                    && self
                        .array
                        .as_ref()
                        .is_none_or(|array| array.min_items == 0 && array.min_contains == 0)))
    }
}

/// The meaning of a subschema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// No reference leads to the node.
    Unseen,
    /// Found, not read yet.
    Pending,
    Any,
    Never,
    /// The same as another subschema.
    Same(NodeId),
    /// Equal to the value at the node.
    Equal(NodeId),
    /// A schema with keywords, by its number.
    Schema(u32),
    /// Still to be numbered.
    Other,
}
