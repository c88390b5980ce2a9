//! A bound on the work of compiling any pattern.

use ffwd_bounds::error::LimitExceeded;

/// Steps of compiling one stage, or the boundaries of all. Patterns of real tokenizers take less
/// than a hundredth of it.
const MAX_WORK: usize = 100_000_000;

pub(super) struct Work {
    left: usize,
}

impl Work {
    pub fn new() -> Self {
        Self { left: MAX_WORK }
    }

    pub fn spend(&mut self, steps: usize) -> Result<(), LimitExceeded> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(LimitExceeded::new("pre_tokenizer_steps", MAX_WORK)),
        }
    }
}
