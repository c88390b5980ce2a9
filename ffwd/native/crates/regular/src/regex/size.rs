//! How much memory a language takes.

use super::ast::Ast;

impl Ast {
    /// About how many bytes of memory the language holds beside itself; what several parts share is
    /// counted for each of them.
    pub fn memory_bytes(&self) -> usize {
        // The two counts of what is shared.
        const COUNTS: usize = 16;
        let one = |inner: &Self| COUNTS + std::mem::size_of::<Self>() + inner.memory_bytes();
        let all = |parts: &[Self]| {
            COUNTS
                + std::mem::size_of_val(parts)
                + parts.iter().map(Self::memory_bytes).sum::<usize>()
        };
        match self {
            Self::Empty | Self::Epsilon | Self::Finite(_) => 0,
            Self::Class(class) => COUNTS + std::mem::size_of_val(class.ranges()),
            Self::Literal(text) => COUNTS + text.len(),
            Self::Magnitude(magnitude) => COUNTS + std::mem::size_of_val(&**magnitude),
            Self::Substring(chunks) => {
                COUNTS + std::mem::size_of_val(chunks.texts()) + chunks.num_bytes()
            }
            Self::Concat(parts) | Self::Alternation(parts) | Self::Intersection(parts) => {
                all(parts)
            }
            Self::Repeat { inner, .. }
            | Self::Complement(inner)
            | Self::Before(inner)
            | Self::After(inner) => one(inner),
            Self::Approximate { known, possible } => one(known) + one(possible),
        }
    }
}
