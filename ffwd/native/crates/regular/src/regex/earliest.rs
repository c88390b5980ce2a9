//! Texts that end as early as they can.

use super::{Ast, CharClass};

impl Ast {
    /// Returns the texts of at most this many characters, and those longer ones of which no proper
    /// prefix of at least this length is a text.
    #[must_use]
    pub fn earliest(&self, characters: u32) -> Self {
        let any = || Self::Class(CharClass::any());
        if let Self::Repeat { inner, min, max } = self {
            // Characters that may end anywhere from the least number on.
            if matches!(**inner, Self::Class(_)) {
                let most = characters.max(*min);
                let max = max.map_or(most, |max| max.min(most));
                return Self::repeat((**inner).clone(), *min, Some(max));
            }
        }
        let long = Self::repeat(any(), characters, None);
        let ended = match characters {
            0 => self.clone(),
            _ => Self::intersection([self.clone(), long]),
        };
        let ended_before = Self::concat([ended, any(), Self::any_text()]);
        Self::intersection([self.clone(), Self::complement(ended_before)])
    }
}
