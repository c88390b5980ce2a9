//! Tokens in the order of their texts, and of the lengths of these.

use super::TokenId;

/// Returns tokens by their texts, and equal ones by their ids.
///
/// Most texts differ within eight bytes, which are compared as one number.
pub(crate) fn sorted_by_text<'t>(
    tokens: impl Iterator<Item = TokenId>,
    text: impl Fn(TokenId) -> &'t [u8],
) -> Vec<TokenId> {
    let start = |token: TokenId| {
        let text = text(token);
        let mut bytes = [0; 8];
        let length = text.len().min(8);
        bytes[..length].copy_from_slice(&text[..length]);
        u64::from_be_bytes(bytes)
    };
    let mut keys: Vec<(u64, TokenId)> = tokens.map(|token| (start(token), token)).collect();
    keys.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1))).then(a.1.cmp(&b.1))
    });
    keys.into_iter().map(|(_, token)| token).collect()
}

/// Returns tokens from the shortest to the longest, and those of one length by their ids.
pub(crate) fn sorted_by_length<'t>(
    tokens: impl Iterator<Item = TokenId> + Clone,
    text: impl Fn(TokenId) -> &'t [u8],
) -> Vec<TokenId> {
    // Few vocabularies have longer tokens.
    let mut starts = Vec::with_capacity(128);
    starts.push(0);
    for token in tokens.clone() {
        let length = text(token).len();
        if starts.len() < length + 2 {
            starts.resize(length + 2, 0);
        }
        starts[length + 1] += 1;
    }
    for length in 1..starts.len() {
        starts[length] += starts[length - 1];
    }
    let mut sorted = vec![TokenId(0); starts.last().copied().unwrap_or(0)];
    for token in tokens {
        let place = &mut starts[text(token).len()];
        sorted[*place] = token;
        *place += 1;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_texts() {
        let texts: Vec<Vec<u8>> = (0..2000u32)
            .map(|at| {
                let length = (at.wrapping_mul(2_654_435_761) >> 28) as usize;
                let byte = |place: usize| [0, b'a', 0xFF][(at as usize >> (place / 2)) % 3];
                (0..length).map(byte).collect()
            })
            .collect();
        let text = |token: TokenId| &texts[token.index()][..];
        let all = || (0..texts.len() as u32).map(TokenId);
        let mut expected: Vec<TokenId> = all().collect();
        expected.sort_by_key(|&token| text(token));
        assert_eq!(sorted_by_text(all(), text), expected);
        expected = all().collect();
        expected.sort_by_key(|&token| text(token).len());
        assert_eq!(sorted_by_length(all(), text), expected);
    }
}
