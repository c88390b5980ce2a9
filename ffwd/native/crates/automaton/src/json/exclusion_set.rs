//! Sets of the exclusions of one monitor.

use smallvec::SmallVec;

/// Exclusions by their number; all sets of one monitor have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExclusionSet(SmallVec<[u64; 2]>);

impl ExclusionSet {
    /// Returns a full set of this size.
    pub fn all(count: usize) -> Self {
        let mut words = SmallVec::from_elem(u64::MAX, count.div_ceil(64));
        if let Some(last) = words.last_mut().filter(|_| !count.is_multiple_of(64)) {
            *last = (1 << (count % 64)) - 1;
        }
        Self(words)
    }

    /// Returns an empty set of the same size.
    pub fn none(&self) -> Self {
        Self(SmallVec::from_elem(0, self.0.len()))
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[inline]
    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    pub fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub fn remove(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    pub fn with(&self, at: usize) -> Self {
        let mut more = self.clone();
        more.insert(at);
        more
    }

    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine | theirs).collect())
    }

    pub fn minus(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine & !theirs).collect())
    }

    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine & theirs).collect())
    }

    /// Whether the sets have an exclusion in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(mine, theirs)| mine & theirs != 0)
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(place, &word)| {
            let mut word = word;
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(place * 64 + bit)
            })
        })
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        if self.0.spilled() {
            std::mem::size_of_val(&*self.0)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_any_size_are_what_was_put_in() {
        for count in [0, 1, 63, 64, 65, 128, 200] {
            let all = ExclusionSet::all(count);
            assert_eq!(all.len(), count);
            assert_eq!(all.iter().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
            let mut even = all.clone();
            (1..count).step_by(2).for_each(|at| even.remove(at));
            let odd = all.minus(&even);
            assert!(even.iter().all(|at| at % 2 == 0) && odd.iter().all(|at| at % 2 == 1));
            assert_eq!(even.union(&odd), all);
            assert_eq!(all.intersection(&even), even);
            assert!(even.intersection(&odd).is_empty() && !even.meets(&odd));
            assert_eq!(all.meets(&even), count > 0);
            assert!(even.is_subset(&all) && (count < 2 || !all.is_subset(&even)));
            assert!(all.none().is_empty() && !all.contains(count));
        }
    }
}
