//! Tokens in the order of their texts, and of the lengths of these.

use super::TokenId;

/// Returns tokens by their texts, and equal ones by their ids.
///
/// Most texts differ within sixteen bytes, which are compared as two numbers.
pub(crate) fn sorted_by_text<'t>(
    tokens: impl Iterator<Item = TokenId>,
    text: impl Fn(TokenId) -> &'t [u8],
) -> Vec<TokenId> {
    let start = |token: TokenId| {
        let text = text(token);
        let mut bytes = [0; 16];
        let length = text.len().min(16);
        bytes[..length].copy_from_slice(&text[..length]);
        let number = u128::from_be_bytes(bytes);
        // Two halves need no padding beside a token.
        ((number >> 64) as u64, number as u64)
    };
    let mut keys: Vec<(u64, u64, TokenId)> = tokens
        .map(|token| {
            let (first, second) = start(token);
            (first, second, token)
        })
        .collect();
    keys.sort_unstable_by(|a, b| {
        (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| text(a.2).cmp(text(b.2))).then(a.2.cmp(&b.2))
    });
    keys.into_iter().map(|(_, _, token)| token).collect()
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
                let length = (at.wrapping_mul(2_654_435_761) >> 27) as usize;
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
