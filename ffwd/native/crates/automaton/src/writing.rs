//! How JSON texts are written where schemas allow a choice.

use ffwd_grammar::Whitespace;
use ffwd_json_schema::Numbers;

/// In which order the properties of an object come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PropertyOrder {
    /// As they are declared, and undeclared ones last.
    #[default]
    Declared,
    /// In any order.
    Any,
}

/// Which escapes stand in the strings of a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Escapes {
    /// Those that JSON requires, each character in one way.
    #[default]
    Canonical,
    /// All that JSON has, for any character.
    Any,
}

/// How a JSON text is written where its schema allows a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Writing {
    /// Which white space stands between values.
    pub whitespace: Whitespace,
    /// In which order the members of objects come.
    pub property_order: PropertyOrder,
    /// Which notations of numbers are written.
    pub numbers: Numbers,
    /// How the characters of strings are written.
    pub escapes: Escapes,
}

impl Writing {
    /// Whether some valid texts are not written. Observed schemas are then separate from required
    /// ones.
    pub(crate) fn narrows(&self) -> bool {
        self.property_order != PropertyOrder::Any || self.numbers != Numbers::Any
    }
}

impl From<Whitespace> for Writing {
    fn from(whitespace: Whitespace) -> Self {
        Self { whitespace, ..Self::default() }
    }
}
