//! The states of a sequence that a rollback needs.

use ffwd_automaton::StateId;

/// The number of tokens between two permanently stored states.
const STRIDE: usize = 64;

/// The states after the last tokens, one by one, and after every [`STRIDE`] tokens before. A rollback
/// over a few tokens looks its state up; a longer one reads at most [`STRIDE`] tokens again.
#[derive(Clone, Debug)]
pub struct History {
    /// After 0, `STRIDE`, 2 `STRIDE`, … tokens, up to where `recent` begins.
    kept: Vec<StateId>,
    /// After each token since then, that state first; so it is never empty.
    recent: Vec<StateId>,
}

impl History {
    pub fn new(start: StateId) -> Self {
        Self { kept: vec![start], recent: vec![start] }
    }

    /// The number of tokens before `recent`.
    fn begins(&self) -> usize {
        (self.kept.len() - 1) * STRIDE
    }

    /// Returns the number of tokens with known states.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.begins() + self.recent.len() - 1
    }

    /// The state after one more token.
    pub fn push(&mut self, state: StateId) {
        self.recent.push(state);
        if self.recent.len() > 2 * STRIDE {
            self.kept.push(self.recent[STRIDE]);
            self.recent.drain(..STRIDE);
        }
    }

    /// Returns whether the state at this position of `length` tokens is stored.
    pub fn keeps(read: usize, length: usize) -> bool {
        read.is_multiple_of(STRIDE) || read > length / STRIDE * STRIDE
    }

    /// Stores the state after `read` of `length` tokens. Call it in order, for the positions that
    /// [`Self::keeps`] returns.
    pub fn push_kept(&mut self, read: usize, length: usize, state: StateId) {
        if read <= length / STRIDE * STRIDE {
            self.kept.push(state);
            self.recent.clear();
        }
        self.recent.push(state);
    }

    /// The state after all tokens.
    pub fn last(&self) -> StateId {
        self.recent.last().or(self.kept.last()).copied().unwrap_or(StateId(0))
    }

    /// The last stored state after at most `length` tokens, and its number of tokens.
    pub fn last_before(&self, length: usize) -> (StateId, usize) {
        if let Some(place) = length.checked_sub(self.begins()) {
            let place = place.min(self.recent.len() - 1);
            return (self.recent[place], self.begins() + place);
        }
        (self.kept[length / STRIDE], length / STRIDE * STRIDE)
    }

    /// Drops the states after more tokens than [`Self::last_before`] returns.
    pub fn shorten(&mut self, length: usize) {
        if let Some(place) = length.checked_sub(self.begins()) {
            self.recent.truncate(place + 1);
        } else {
            self.kept.truncate(length / STRIDE + 1);
            self.recent.clear();
            self.recent.extend(self.kept.last());
        }
    }

    pub fn memory_bytes(&self) -> usize {
        (self.kept.capacity() + self.recent.capacity()) * std::mem::size_of::<StateId>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_is_made_anew_is_the_same() {
        for length in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE, 5 * STRIDE + 7] {
            let (mut one, mut anew) = (History::new(StateId(0)), History::new(StateId(0)));
            for read in 1..=length {
                one.push(StateId(read as u32));
                if History::keeps(read, length) {
                    anew.push_kept(read, length, StateId(read as u32));
                }
            }
            assert_eq!((one.len(), one.last()), (anew.len(), anew.last()));
            for back in 0..=length {
                for history in [&one, &anew] {
                    let (state, known) = history.last_before(back);
                    assert_eq!(state, StateId(known as u32));
                    assert!(known <= back && back - known < STRIDE);
                }
            }
        }
    }

    #[test]
    fn states_come_back_as_they_were() {
        let mut history = History::new(StateId(0));
        let mut all = vec![StateId(0)];
        let mut random = 12345u32;
        for step in 1..5000u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 24 < 3 {
                let length = (all.len() - 1).saturating_sub((random >> 8) as usize % 150);
                let (state, known) = history.last_before(length);
                assert!(known <= length && length - known < STRIDE);
                assert_eq!(state, all[known]);
                history.shorten(length);
                assert_eq!(history.len(), known);
                all.truncate(history.len() + 1);
            } else {
                history.push(StateId(step));
                all.push(StateId(step));
            }
            assert_eq!(history.len(), all.len() - 1);
        }
        assert!(all.len() > 300);
        assert!(history.memory_bytes() < 4 * (all.len() / STRIDE * 2 + 4 * STRIDE + 8));
        // Few steps back are not read again.
        (0..STRIDE as u32).for_each(|state| history.push(StateId(state)));
        let length = history.len() - STRIDE / 2;
        let state = StateId(STRIDE as u32 / 2 - 1);
        assert_eq!(history.last_before(length), (state, length));
    }
}
