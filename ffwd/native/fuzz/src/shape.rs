//! Bytes to decisions about the shape of what is built: how deep, how wide, which part of many.

use arbitrary::Unstructured;

/// The input with what is left of the size of the thing that is being built.
pub struct Shape<'u, 'd> {
    input: &'u mut Unstructured<'d>,
    left: usize,
}

impl<'u, 'd> Shape<'u, 'd> {
    pub fn new(input: &'u mut Unstructured<'d>, parts: usize) -> Self {
        Self { input, left: parts }
    }

    /// A number below `bound`; 0 where the input is at its end.
    pub fn below(&mut self, bound: usize) -> usize {
        self.input.int_in_range(0..=bound - 1).unwrap_or(0)
    }

    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Whether one more part may be built.
    pub fn part(&mut self) -> bool {
        let more = self.left > 0 && !self.input.is_empty();
        self.left = self.left.saturating_sub(1);
        more
    }

    /// How many parts something has.
    pub fn count(&mut self, most: usize) -> usize {
        self.below(most + 1)
    }
}
