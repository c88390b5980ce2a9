//! A set of bytes.

/// A set of bytes, as 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const EMPTY: Self = Self([0; 4]);
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    /// The bytes from `low` to `high`, both included; none if `low` is the greater.
    pub fn range(low: u8, high: u8) -> Self {
        // In each word the bits from the lowest to below the highest; shifts by 64 are none.
        let below = |end: u32| if end >= 64 { u64::MAX } else { (1 << end) - 1 };
        let (low, end) = (u32::from(low), u32::from(high) + 1);
        Self(
            [0, 64, 128, 192].map(|base: u32| {
                below(end.saturating_sub(base)) & !below(low.saturating_sub(base))
            }),
        )
    }

    pub(crate) fn single(byte: u8) -> Self {
        Self::range(byte, byte)
    }

    /// Adds one byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Whether a byte belongs to the set.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// The bytes of either set.
    pub fn union(&self, other: &Self) -> Self {
        Self([0, 1, 2, 3].map(|i| self.0[i] | other.0[i]))
    }

    /// The bytes of both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self([0, 1, 2, 3].map(|i| self.0[i] & other.0[i]))
    }

    /// These bytes below 128, as bits.
    pub(crate) fn of_ascii(bits: u128) -> Self {
        Self([bits as u64, (bits >> 64) as u64, 0, 0])
    }

    /// The bytes below 128, as bits.
    pub(crate) fn ascii(&self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    /// Whether the set has no byte.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// How many bytes the set has.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The bytes in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..4u8).flat_map(|place| {
            let mut word = self.0[usize::from(place)];
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as u8;
                (word != 0).then(|| {
                    word &= word - 1;
                    place << 6 | bit
                })
            })
        })
    }
}

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.iter().map(char::from)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSet;

    #[test]
    fn ranges_have_the_bytes_between_their_ends() {
        for low in 0..=255u8 {
            for high in 0..=255u8 {
                let set = ByteSet::range(low, high);
                let bytes: Vec<u8> = (low..=high).collect();
                assert!(set.iter().eq(bytes.iter().copied()), "{low} to {high}");
                assert_eq!(set.len() as usize, bytes.len());
                assert_eq!(set.is_empty(), bytes.is_empty());
            }
        }
    }

    #[test]
    fn iteration_finds_what_membership_does() {
        let mut set = ByteSet::EMPTY;
        for byte in [0, 1, 63, 64, 127, 128, 200, 255] {
            set.insert(byte);
        }
        assert!(set.iter().eq((0..=255).filter(|&byte| set.contains(byte))));
        assert_eq!(ByteSet::of_ascii(set.ascii()).iter().collect::<Vec<_>>(), [0, 1, 63, 64, 127]);
    }
}
