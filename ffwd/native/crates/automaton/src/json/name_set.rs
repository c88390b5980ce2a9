//! Sets of an object's names.

use crate::stacks::ids::NameId;

/// Names by their place in the sorted list of all names of an object's alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameSet(Box<[u64]>);

impl NameSet {
    /// How many bytes of memory the set holds beside itself.
    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.0)
    }

    /// Whether a name is in the set, by its place among the names.
    #[inline]
    pub fn contains(&self, name: NameId) -> bool {
        self.0.get(name.0 as usize / 64).is_some_and(|word| word >> (name.0 % 64) & 1 == 1)
    }

    /// The set with one more name.
    pub fn with(&self, name: NameId) -> Self {
        if self.contains(name) {
            return self.clone();
        }
        let mut words = self.0.to_vec();
        let word = name.0 as usize / 64;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (name.0 % 64);
        Self(words.into())
    }

    /// Whether some name of a range is in the set.
    pub(crate) fn has_any(&self, from: u32, to: u32) -> bool {
        let to = to.min(self.0.len() as u32 * 64);
        if from >= to {
            return false;
        }
        let (first, last) = (from as usize / 64, (to as usize - 1) / 64);
        (first..=last).any(|at| {
            let above = if at == first { u64::MAX << (from % 64) } else { u64::MAX };
            let below = if at == last { u64::MAX >> (63 - (to - 1) % 64) } else { u64::MAX };
            self.0[at] & above & below != 0
        })
    }
}

impl FromIterator<bool> for NameSet {
    /// Whether each name is in the set, in order.
    fn from_iter<I: IntoIterator<Item = bool>>(names: I) -> Self {
        let mut words: Vec<u64> = Vec::new();
        for (name, is_in) in names.into_iter().enumerate() {
            if is_in {
                words.resize(name / 64 + 1, 0);
                words[name / 64] |= 1 << (name % 64);
            }
        }
        Self(words.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_equal_if_their_names_are() {
        let small = NameSet::default().with(NameId(3)).with(NameId(70)).with(NameId(3));
        let listed: NameSet = (0..300).map(|name| name == 3 || name == 70).collect();
        assert_eq!(small, listed);
        assert!([(70, true), (69, false), (4000, false)]
            .iter()
            .all(|&(name, is_in)| small.contains(NameId(name)) == is_in));
        for from in 0..260 {
            for to in 0..260 {
                let expected = (from..to).any(|name| small.contains(NameId(name)));
                assert_eq!(small.has_any(from, to), expected, "{from}..{to}");
            }
        }
    }
}
