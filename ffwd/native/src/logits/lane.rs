//! Formats of logits, as far as masking needs them.

/// Minus infinity as an IEEE half.
pub const FLOAT16_MINUS_INFINITY: u16 = 0xFC00;
/// Minus infinity as a bfloat16.
pub const BFLOAT16_MINUS_INFINITY: u16 = 0xFF80;

/// One number of a row of logits. Halves of either kind are their bits.
pub trait Lane: Copy + Send + Sync {
    /// Writes `blocked` wherever the bit in `allowed` is 0.
    ///
    /// Both forms below are chosen by what the compiler makes of them with the instructions that
    /// every processor of an architecture has: straight vector code, no branch for a bit. It is
    /// bound by the memory that it writes, so wider vectors gain nothing worth an `unsafe`.
    fn blend(group: &mut [Self; 32], allowed: u32, blocked: Self);
}

macro_rules! lane_by_selection {
    ($type:ty) => {
        impl Lane for $type {
            #[inline(always)]
            fn blend(group: &mut [Self; 32], allowed: u32, blocked: Self) {
                for (bit, logit) in group.iter_mut().enumerate() {
                    *logit = if allowed >> bit & 1 == 1 { *logit } else { blocked };
                }
            }
        }
    };
}

lane_by_selection!(f32);
lane_by_selection!(f64);

impl Lane for u16 {
    #[inline(always)]
    fn blend(group: &mut [Self; 32], allowed: u32, blocked: Self) {
        // Bits are tested in lanes of the logits' own width; a selection would branch here.
        let (halves, _) = group.as_chunks_mut::<16>();
        for (half, bits) in halves.iter_mut().zip([allowed as u16, (allowed >> 16) as u16]) {
            for (bit, logit) in half.iter_mut().enumerate() {
                let keep = u16::from(bits & (1 << bit) != 0).wrapping_neg();
                *logit = (*logit & keep) | (blocked & !keep);
            }
        }
    }
}
