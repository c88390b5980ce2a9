//! How many texts a lexeme still allows, and which ones if they are few.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lexeme::{LexState, Lexeme};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How many states one call may enter.
pub const MAX_STEPS: usize = 200_000;

/// Up to this many texts are looked for in the first bytes alone.
const FEW: u64 = 64;

#[derive(Clone, Copy, Debug)]
enum Count {
    Exactly(u64),
    AtLeast(u64),
    Infinite,
}

/// Counts texts, and remembers the counts of the states on the way.
#[derive(Debug, Default)]
pub struct TextCounter {
    known: FxHashMap<(u64, LexState), Count>,
}

struct Open {
    state: LexState,
    byte: u16,
    count: u64,
}

impl TextCounter {
    /// About how many bytes of memory the counts hold.
    pub fn memory_bytes(&self) -> usize {
        self.known.capacity() * std::mem::size_of::<((u64, LexState), Count)>()
    }

    /// Counts the texts from a state, up to `limit`. Every state of a lexeme leads to some end, so
    /// a cycle of states means infinitely many.
    pub fn count(
        &mut self,
        lexeme: &Lexeme,
        start: LexState,
        limit: u64,
    ) -> Result<u64, LimitExceeded> {
        let id = lexeme.id();
        let mut path: Vec<Open> = Vec::new();
        let mut on_path: FxHashSet<LexState> = FxHashSet::default();
        let mut entering = Some(start);
        let mut steps = 0;
        let mut done = 0;
        loop {
            if let Some(state) = entering.take() {
                match self.known.get(&(id, state)) {
                    Some(Count::Exactly(count)) => done = *count,
                    Some(Count::AtLeast(count)) if *count >= limit => done = limit,
                    Some(Count::Infinite) => done = limit,
                    _ if on_path.contains(&state) => {
                        for open in &path {
                            self.known.insert((id, open.state), Count::Infinite);
                        }
                        return Ok(limit);
                    }
                    _ => {
                        meter::charge(16)?;
                        steps += 1;
                        if steps > MAX_STEPS {
                            let what = "key_count_steps";
                            return Err(LimitExceeded::new(what, MAX_STEPS));
                        }
                        if limit <= FEW && branches(lexeme, state, limit)? >= limit {
                            self.known.insert((id, state), Count::AtLeast(limit));
                            done = limit;
                        } else {
                            on_path.insert(state);
                            let count = u64::from(state.accepts());
                            path.push(Open { state, byte: 0, count });
                            continue;
                        }
                    }
                }
            }
            let Some(open) = path.last_mut() else { return Ok(done.min(limit)) };
            open.count = open.count.saturating_add(done);
            done = 0;
            let full = open.count >= limit;
            let last = full || open.state.is_final() || open.byte > 255;
            if last {
                let (state, count) = (open.state, open.count.min(limit));
                let known = if full { Count::AtLeast(limit) } else { Count::Exactly(count) };
                self.known.insert((id, state), known);
                on_path.remove(&state);
                path.pop();
                done = count;
                continue;
            }
            let byte = open.byte as u8;
            open.byte += 1;
            entering = lexeme.next(open.state, byte)?;
        }
    }
}

/// The number of ways on from a state, up to `limit`: as many texts differ in their first byte, or
/// are empty.
fn branches(lexeme: &Lexeme, state: LexState, limit: u64) -> Result<u64, LimitExceeded> {
    let mut count = u64::from(state.accepts());
    for byte in 0..=u8::MAX {
        if count >= limit || state.is_final() {
            break;
        }
        count += u64::from(lexeme.next(state, byte)?.is_some());
    }
    Ok(count)
}

/// The texts that lead from a state to an end, in order of their bytes, if there are at most
/// `limit`.
pub fn texts(
    counter: &mut TextCounter,
    lexeme: &Lexeme,
    start: LexState,
    limit: u64,
) -> Result<Option<Vec<Vec<u8>>>, LimitExceeded> {
    if counter.count(lexeme, start, limit.saturating_add(1))? > limit {
        return Ok(None);
    }
    let mut found = Vec::new();
    let mut text: Vec<u8> = Vec::new();
    let mut path: Vec<(LexState, u16)> = vec![(start, 0)];
    while let Some((state, byte)) = path.last_mut() {
        if *byte == 0 && state.accepts() {
            found.push(text.clone());
        }
        if state.is_final() || *byte > 255 {
            path.pop();
            text.pop();
            continue;
        }
        let next = *byte as u8;
        *byte += 1;
        if let Some(after) = lexeme.next(*state, next)? {
            text.push(next);
            path.push((after, 0));
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::expr::{LexemeSpec, Spelling};
    use crate::regex::rust_dialect;

    fn lexeme(pattern: &str) -> Lexeme {
        let languages = [rust_dialect::anchored(pattern).unwrap()];
        Lexeme::new(LexemeSpec::new(Spelling::JsonString, languages)).unwrap()
    }

    #[test]
    fn texts_are_counted_and_listed() {
        for (pattern, expected) in [
            ("ab", Some(vec!["\"ab\""])),
            ("a?b?", Some(vec!["\"\"", "\"a\"", "\"ab\"", "\"b\""])),
            ("[ab]{2}|é", Some(vec!["\"aa\"", "\"ab\"", "\"ba\"", "\"bb\"", "\"é\""])),
            ("a*", None),
            ("x{0,3000}y", None),
            ("[a-z]{20}", None),
            ("[a-z]{1,200}x*", None),
        ] {
            let lexeme = lexeme(pattern);
            let mut counter = TextCounter::default();
            let found = texts(&mut counter, &lexeme, lexeme.start(), 6).unwrap();
            let expected: Option<Vec<Vec<u8>>> =
                expected.map(|texts| texts.iter().map(|text| text.as_bytes().to_vec()).collect());
            assert_eq!(found, expected, "{pattern}");
            for limit in [1, 2, 3, 40] {
                let whole = expected.as_ref().map_or(40, |texts| texts.len() as u64);
                for counter in [&mut counter, &mut TextCounter::default()] {
                    let count = counter.count(&lexeme, lexeme.start(), limit).unwrap();
                    assert_eq!(count, whole.min(limit), "{pattern}");
                }
            }
        }
    }

    #[test]
    fn a_few_of_many_texts_are_counted_without_reading_them() {
        let lexeme = lexeme("[0-9A-Za-z_-]{1,255}");
        let count = TextCounter::default().count(&lexeme, lexeme.start(), 12).unwrap();
        assert_eq!(count, 12);
        assert!(lexeme.num_states() < 10, "{}", lexeme.num_states());
    }
}
