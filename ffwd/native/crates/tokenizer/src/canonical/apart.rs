//! Places within a piece that no token crosses, whatever the text.

use crate::pretokenizer::HypothesisId;
use crate::vocabulary::TokenId;

use super::context::{Canonicality, Role};

/// How many characters of one byte are looked at for all tokens at once.
pub(super) const MAX_APART: usize = 16;

/// Characters of one byte by the bytes that they follow in no token.
pub(super) struct Apart {
    /// By byte, these characters as bits.
    after: Box<[u128]>,
    /// Some of those that follow few bytes.
    first: Vec<u8>,
}

impl Canonicality {
    /// The characters of one byte, as bits, with which any text may continue after a token within its
    /// piece: nothing is known of the text before, and no token has both this character and the byte
    /// before it, so what is encoded before and after them does not depend on each other.
    pub(super) fn apart(&self, last: TokenId, open: HypothesisId) -> u128 {
        let (Some(boundaries), Some(byte)) = (self.boundaries(), self.table().text(last).last())
        else {
            return 0;
        };
        boundaries.anew(open) & self.apart_of_bytes().after[usize::from(*byte)]
    }

    /// Printable ASCII characters that are apart from most bytes.
    pub(super) fn apart_first(&self) -> &[u8] {
        &self.apart_of_bytes().first
    }

    fn apart_of_bytes(&self) -> &Apart {
        self.apart.get_or_init(|| {
            let mut after = vec![u128::MAX; 256];
            for token in (0..self.width() as u32).map(TokenId) {
                if self.role(token) != Role::Never {
                    for pair in self.table().text(token).windows(2) {
                        if pair[1] < 0x80 {
                            after[usize::from(pair[0])] &= !(1 << pair[1]);
                        }
                    }
                }
            }
            let mut order: Vec<u8> = (b' '..0x7F).collect();
            order.sort_by_cached_key(|byte| {
                after.iter().filter(|apart| *apart >> byte & 1 == 0).count()
            });
            order.truncate(MAX_APART);
            Apart { after: after.into(), first: order }
        })
    }
}
