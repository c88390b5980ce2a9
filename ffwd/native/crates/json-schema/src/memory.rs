//! The estimated memory of the results about schemas.

use super::alternatives::Alternatives;
use super::intern::Interner;
use super::number_range::NumberRange;
use super::values::{Constant, Values};
use super::{ArraySpec, Normal, NumberSpec, ObjectSpec, StringSpec};
use ffwd_regular::regex::{Ast, Decimal};

use std::mem::{size_of, size_of_val};
use std::sync::Arc;

fn languages(languages: &[Ast]) -> usize {
    size_of_val(languages) + languages.iter().map(Ast::memory_bytes).sum::<usize>()
}

impl ObjectSpec {
    /// Beside the names of properties, which are the document's.
    pub(crate) fn memory_bytes(&self) -> usize {
        let keys = self.others.iter().filter_map(|class| class.keys.as_ref());
        size_of::<Self>()
            + size_of_val(&*self.properties)
            + size_of_val(&*self.others)
            + keys.map(Ast::memory_bytes).sum::<usize>()
            + self.excluded.len() * size_of::<Arc<Self>>()
    }
}

impl ArraySpec {
    /// About how many bytes of memory it holds.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.prefix) + size_of_val(&*self.contains)
    }
}

impl StringSpec {
    fn memory_bytes(&self) -> usize {
        let listed = self.one_of.as_ref().map_or(0, |list| size_of_val(&**list));
        size_of::<Self>() + languages(&self.languages) + listed
    }
}

fn number(range: &NumberRange) -> usize {
    let listed = range.one_of.as_ref().map_or(0, |list| list.len());
    let decimals = range.multiple_of.len() + range.not_multiple_of.len() + range.none_of.len();
    size_of::<NumberRange>() + (listed + decimals) * size_of::<Decimal>()
}

impl Alternatives {
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.numbers.iter().map(number).sum::<usize>()
            + self.strings.iter().map(StringSpec::memory_bytes).sum::<usize>()
            + self.objects.iter().map(|object| object.memory_bytes()).sum::<usize>()
            + self.arrays.iter().map(|array| array.memory_bytes()).sum::<usize>()
    }
}

impl Normal {
    /// Beside what it shares with the alternatives.
    pub(super) fn memory_bytes(&self) -> usize {
        let narrow = |spec: &NumberSpec| spec.narrow.as_ref().map_or(0, Ast::memory_bytes);
        let number =
            |spec: &NumberSpec| size_of::<NumberSpec>() + spec.text.memory_bytes() + narrow(spec);
        let numbers = self.numbers.iter().map(number);
        size_of::<Self>()
            + numbers.sum::<usize>()
            + self.strings.iter().map(StringSpec::memory_bytes).sum::<usize>()
            + (self.objects.len() + self.arrays.len()) * size_of::<usize>()
    }
}

impl Constant {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Boolean(_) | Self::Number(_) => 0,
            Self::String(text) => text.len() + 16,
            Self::Array(items) => size_of_val(&**items) + 16,
            Self::Object(members) => {
                size_of_val(&**members)
                    + members.iter().map(|(name, _)| name.len() + 32).sum::<usize>()
            }
        }
    }
}

/// Returns the memory of a value in the list and in the map of values.
pub(super) fn value(constant: &Constant) -> usize {
    3 * size_of::<Constant>() + 64 + constant.memory_bytes()
}

impl Interner {
    /// Returns the memory of sets and their map; few sets exceed their inline capacity.
    pub(super) fn memory_bytes(&self) -> usize {
        self.len() * 5 * size_of::<usize>() * 3
    }
}

impl Values {
    pub(super) fn memory_bytes(&self) -> usize {
        self.held
    }
}
