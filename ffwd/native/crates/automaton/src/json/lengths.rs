//! The estimated length of required values, in bytes.

use ffwd_json_schema::{ArraySpec, SchemaId};
use ffwd_regular::expr::{spell, Spelling};

/// Nothing is known to satisfy it.
pub(crate) const UNKNOWN: u32 = u32::MAX / 4;
/// How many items or members of one kind are counted.
const MAX_COUNTED: u64 = 1 << 20;

/// Lengths of required members or items.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    sum: u64,
    pub count: u64,
}

impl Lengths {
    /// One, with the length of its key and colon, and that of its value.
    pub fn add(&mut self, key: u32, value: u32) {
        self.sum += u64::from(key) + u64::from(value);
        self.count += 1;
    }

    /// Several of the same length.
    pub fn add_more(&mut self, count: u64, length: u32) {
        self.sum = self.sum.saturating_add(count.min(MAX_COUNTED) * u64::from(length));
        self.count = self.count.saturating_add(count);
    }

    /// Several, with the length of all of them.
    pub fn add_members(&mut self, bytes: u32, count: u32) {
        self.sum = self.sum.saturating_add(u64::from(bytes));
        self.count += u64::from(count);
    }

    /// With the commas between them.
    pub fn length(&self) -> u32 {
        let commas = self.count.saturating_sub(1).min(MAX_COUNTED);
        u32::try_from(self.sum + commas).unwrap_or(UNKNOWN).min(UNKNOWN)
    }
}

/// Returns the length of a name with its quotes and the colon.
pub(crate) fn name_length(name: &str) -> u32 {
    spell(name, Spelling::JsonString).len() as u32 + 3
}

/// Returns the estimated length of the required items after this many, with their commas.
pub(crate) fn array_length(
    spec: &ArraySpec,
    came: u64,
    mut of: impl FnMut(SchemaId) -> u32,
) -> u32 {
    let mut items = Lengths::default();
    let mut least = spec.min_items.saturating_sub(came);
    for contains in &spec.contains {
        let from = contains.from.saturating_sub(came);
        least = least.max(contains.min.saturating_add(if contains.min > 0 { from } else { 0 }));
    }
    if spec.repeats {
        least = least.max(2);
    }
    let counted = spec.contains.iter().filter(|contains| contains.min > 0);
    let counted = counted.map(|contains| of(contains.schema)).max().unwrap_or(0);
    let prefix = usize::try_from(came).unwrap_or(usize::MAX).min(spec.prefix.len());
    let prefix = spec.prefix[prefix..].iter().take(usize::try_from(least).unwrap_or(usize::MAX));
    for &schema in prefix {
        items.add(0, of(schema));
    }
    let more = least.saturating_sub(items.count);
    if more > 0 {
        let item = spec.items.map_or(UNKNOWN, &mut of);
        items.add_more(more, item.max(counted));
    }
    items.length()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(min_items: u64, prefix: &[u32], items: Option<u32>) -> ArraySpec {
        ArraySpec {
            prefix: prefix.iter().copied().map(SchemaId).collect(),
            items: items.map(SchemaId),
            min_items,
            max_items: None,
            contains: Vec::new(),
            unique: false,
            repeats: false,
        }
    }

    /// Schemas are as long as their ids.
    #[test]
    fn items_and_their_commas_are_counted() {
        let length = |spec: &ArraySpec, came| array_length(spec, came, |schema| schema.0);
        assert_eq!(length(&array(0, &[], Some(3)), 0), 0);
        assert_eq!(length(&array(2, &[], Some(3)), 0), 7);
        assert_eq!(length(&array(3, &[1, 2], Some(5)), 0), 1 + 2 + 5 + 2);
        assert_eq!(length(&array(3, &[1, 2], Some(5)), 1), 2 + 5 + 1);
        assert_eq!(length(&array(3, &[1, 2], Some(5)), 9), 0);
        // No third item may come.
        assert_eq!(length(&array(3, &[1, 2], None), 0), UNKNOWN);
    }

    #[test]
    fn names_are_as_long_as_they_are_written() {
        assert_eq!([name_length("a"), name_length("é"), name_length("\n")], [4, 5, 5]);
    }

    #[test]
    fn many_members_do_not_overflow() {
        let mut lengths = Lengths::default();
        lengths.add(4, 1);
        assert_eq!((lengths.length(), lengths.count), (5, 1));
        lengths.add_more(u64::MAX, UNKNOWN);
        assert_eq!(lengths.length(), UNKNOWN);
    }
}
