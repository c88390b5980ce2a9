//! How many bytes end a lexeme at most.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{LexState, Lexeme};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

impl Lexeme {
    /// Returns the bytes of a shortest non-empty text, and the most bytes that complete the lexeme
    /// from any state after the first byte. `None` for more than this many states.
    ///
    /// # Errors
    /// A limit of the lexeme is exceeded.
    pub fn bytes_to_end(&self, max_states: usize) -> Result<Option<(u32, u32)>, LimitExceeded> {
        if !self.is_alive() {
            return Ok(None);
        }
        // The initial state is distinguished from the same state later.
        let mut order: Vec<LexState> = Vec::new();
        let mut places: FxHashMap<LexState, usize> = FxHashMap::default();
        let mut before: Vec<Vec<usize>> = Vec::new();
        let mut first: Vec<usize> = Vec::new();
        let mut next = 0;
        let mut from = None;
        meter::charge(256)?;
        loop {
            // All bytes are looked up.
            meter::charge(24)?;
            let state = match from {
                None => self.start(),
                Some(place) => order[place],
            };
            if !state.is_final() {
                for byte in 0..=u8::MAX {
                    let Some(after) = self.next(state, byte)? else { continue };
                    let place = *places.entry(after).or_insert(order.len());
                    if place == order.len() {
                        order.push(after);
                        before.push(Vec::new());
                    }
                    match from {
                        None => first.push(place),
                        Some(from) if before[place].last() != Some(&from) => {
                            before[place].push(from);
                        }
                        Some(_) => {}
                    }
                }
            }
            if order.len() > max_states {
                return Ok(None);
            }
            if next == order.len() {
                break;
            }
            from = Some(next);
            next += 1;
        }
        let mut left: Vec<Option<u32>> = vec![None; order.len()];
        let mut pending: VecDeque<usize> = VecDeque::new();
        for (place, state) in order.iter().enumerate().filter(|(_, state)| state.accepts()) {
            debug_assert!(self.accept(*state) != 0);
            left[place] = Some(0);
            pending.push_back(place);
        }
        while let Some(place) = pending.pop_front() {
            let bytes = left[place].unwrap_or(0) + 1;
            for &earlier in &before[place] {
                if left[earlier].is_none() {
                    left[earlier] = Some(bytes);
                    pending.push_back(earlier);
                }
            }
        }
        let whole = first.iter().filter_map(|&place| left[place]).min();
        let all: Option<Vec<u32>> = left.into_iter().collect();
        Ok(whole.zip(all).map(|(whole, all)| (whole + 1, all.into_iter().max().unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{LexemeSpec, Spelling};
    use crate::regex::rust_dialect;

    #[test]
    fn so_many_bytes_end_a_lexeme_and_no_fewer() {
        for (pattern, expected) in [
            ("a", Some((1, 0))),
            ("abc", Some((3, 2))),
            ("[a-z]*", Some((1, 0))),
            ("a*bcd", Some((3, 3))),
            (".*", Some((1, 3))),
            ("a{3}|bcdefgh", Some((3, 6))),
            ("(ab){2,}", Some((4, 3))),
            ("a{600}", None),
        ] {
            let language = rust_dialect::anchored(pattern).unwrap();
            let lexeme = Lexeme::new(LexemeSpec::new(Spelling::Utf8, [language])).unwrap();
            assert_eq!(lexeme.bytes_to_end(512).unwrap(), expected, "{pattern}");
        }
    }
}
