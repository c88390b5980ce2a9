//! The object alternatives of one query: their names, and the languages of all other keys.

use std::sync::OnceLock;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::json::keys::Names;
use crate::json::monitor::{Monitor, Unnamed};
use crate::stacks::ids::{LexemeId, ObjectStateId};
use ffwd_regular::expr::lexeme::MAX_LANGUAGES;
use ffwd_regular::expr::Verdict;
use ffwd_regular::regex::Ast;

/// The languages of a group for a key without a name: it must belong to one of the `required` ones,
/// and its membership in the `observed` ones is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenKeys {
    pub required: Verdict,
    pub observed: Verdict,
}

impl OpenKeys {
    /// The group's languages, in the order of the bits of the lexeme for these keys.
    pub(crate) fn languages(self) -> impl Iterator<Item = usize> {
        let all = self.required | self.observed;
        (0..MAX_LANGUAGES).filter(move |language| all >> language & 1 == 1)
    }

    /// The group's languages to which a key belongs, from the verdict of the lexeme.
    pub fn of_verdict(self, accept: Verdict) -> Verdict {
        let holds = self.languages().enumerate().filter(|(bit, _)| accept >> bit & 1 == 1);
        holds.fold(0, |bits, (_, language)| bits | 1 << language)
    }
}

#[derive(Debug)]
pub struct ObjectGroup {
    pub monitors: Vec<Monitor>,
    /// The schemas of the query of which one must hold.
    pub(crate) required: Verdict,
    /// Every name that some alternative or exclusion declares, sorted by its bytes.
    pub names: Names,
    /// The languages of the other keys; `None` for any.
    pub(crate) languages: Vec<Option<Ast>>,
    pub(crate) lexemes: Mutex<FxHashMap<OpenKeys, LexemeId>>,
    /// The state at the start of an object of the group.
    pub start: OnceLock<ObjectStateId>,
    /// The number of members from which on counts make no difference.
    pub cap: u64,
    /// Whether keys without a name may be allowed, forbidden and allowed again, so that earlier
    /// ones are recorded separately.
    pub remembers_keys: bool,
}

impl ObjectGroup {
    /// Returns the estimated memory besides the lexemes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let names = self.names.iter().map(|name| name.len() + 16);
        let languages = self.languages.iter().flatten().map(Ast::memory_bytes);
        std::mem::size_of::<Self>()
            + names.sum::<usize>()
            + languages.sum::<usize>()
            + self.monitors.iter().map(Monitor::memory_bytes).sum::<usize>()
    }

    /// Whether a monitor can keep the object alive; the others are only observed.
    pub fn is_required(&self, monitor: &Monitor) -> bool {
        monitor.owners & self.required != 0
    }

    /// Whether all keys without a name are of a class.
    pub fn is_any_key(&self, class: &Unnamed) -> bool {
        matches!(self.languages.get(class.language as usize), Some(None))
    }

    /// The verdict of an object for which these schemas hold.
    pub fn verdict(&self, holds: Verdict) -> Verdict {
        if holds & self.required == 0 {
            0
        } else {
            holds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_lexeme_are_the_languages_in_order() {
        let open = OpenKeys { required: 0b100_0010, observed: 0b10_1000 };
        // Languages 1, 3, 5 and 6.
        assert_eq!(open.of_verdict(0), 0);
        assert_eq!(open.of_verdict(0b1), 0b10);
        assert_eq!(open.of_verdict(0b1010), 0b100_1000);
        assert_eq!(open.of_verdict(0b1111), open.required | open.observed);
        assert_eq!(OpenKeys::default().of_verdict(Verdict::MAX), 0);
    }
}
