//! The formats of logits that masking needs.

/// Minus infinity as an IEEE half.
pub const FLOAT16_MINUS_INFINITY: u16 = 0xFC00;
/// Minus infinity as a bfloat16.
pub const BFLOAT16_MINUS_INFINITY: u16 = 0xFF80;

/// One number of a row of logits. Halves of either kind are their bits.
pub trait Lane: Copy + PartialEq + Send + Sync {
    /// Writes `blocked` wherever the bit in `allowed` is 0.
    fn blend(group: &mut [Self; 32], allowed: u32, blocked: Self);
}

/// Arithmetic instead of a choice: compilers make vector code of it for what every processor of an
/// architecture has. The memory bounds that code, so wider vectors gain nothing worth an `unsafe`.
macro_rules! lane {
    ($type:ty, $bits:ty, $to:expr, $from:expr) => {
        impl Lane for $type {
            #[inline(always)]
            fn blend(group: &mut [Self; 32], allowed: u32, blocked: Self) {
                let blocked: $bits = $to(blocked);
                for (bit, logit) in group.iter_mut().enumerate() {
                    let keep = (((allowed >> bit) & 1) as $bits).wrapping_neg();
                    *logit = $from((($to(*logit) ^ blocked) & keep) ^ blocked);
                }
            }
        }
    };
}

lane!(u16, u16, |bits| bits, |bits| bits);
lane!(f32, u32, f32::to_bits, f32::from_bits);
lane!(f64, u64, f64::to_bits, f64::from_bits);
