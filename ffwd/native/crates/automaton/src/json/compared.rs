//! Items that later ones are compared with: whether an unused value is left.

use crate::json::tables::Json;

/// JSON values on their stacks, as items of arrays without duplicates see them.
pub struct Compared<'a, O> {
    pub(crate) json: &'a Json,
    pub(crate) on: &'a O,
}

impl<O> Clone for Compared<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Compared<'_, O> {}

impl Json {
    /// The same values, as items.
    pub(crate) fn compared<'a, O>(&'a self, on: &'a O) -> Compared<'a, O> {
        Compared { json: self, on }
    }
}
