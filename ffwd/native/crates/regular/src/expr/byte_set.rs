//! A set of bytes.

/// A set of bytes, as 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    pub const EMPTY: Self = Self([0; 4]);
    pub const ALL: Self = Self([u64::MAX; 4]);

    pub fn range(low: u8, high: u8) -> Self {
        let mut set = Self::EMPTY;
        for byte in low..=high {
            set.insert(byte);
        }
        set
    }

    pub fn single(byte: u8) -> Self {
        Self::range(byte, byte)
    }

    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    pub fn union(&self, other: &Self) -> Self {
        Self([0, 1, 2, 3].map(|i| self.0[i] | other.0[i]))
    }

    pub fn intersection(&self, other: &Self) -> Self {
        Self([0, 1, 2, 3].map(|i| self.0[i] & other.0[i]))
    }

    /// The bytes below 128, as bits.
    pub fn ascii(&self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=255u8).filter(|&byte| self.contains(byte))
    }
}

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.iter().map(char::from)).finish()
    }
}
