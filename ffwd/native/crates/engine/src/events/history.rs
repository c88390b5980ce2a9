//! The marks of parses: lists with shared prefixes.

use rustc_hash::FxHashMap;

use ffwd_automaton::Mark;

/// A list of marks with their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HistoryId(u32);

impl HistoryId {
    pub const EMPTY: Self = Self(0);
}

/// A mark, and how many bytes of the text come before it.
pub type PlacedMark = (Mark, usize);

#[derive(Clone, Debug)]
struct MarkEntry {
    placed: PlacedMark,
    before: HistoryId,
    length: u32,
}

/// Equal lists have equal ids.
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// The list with number `i + 1`.
    entries: Vec<MarkEntry>,
    ids: FxHashMap<(HistoryId, PlacedMark), HistoryId>,
}

impl Histories {
    fn entry(&self, id: HistoryId) -> Option<&MarkEntry> {
        self.entries.get((id.0 as usize).checked_sub(1)?)
    }

    fn length(&self, id: HistoryId) -> u32 {
        self.entry(id).map_or(0, |entry| entry.length)
    }

    /// A list with one more mark.
    pub fn push(&mut self, before: HistoryId, placed: PlacedMark) -> HistoryId {
        let next = HistoryId(self.entries.len() as u32 + 1);
        let length = self.length(before) + 1;
        let id = *self.ids.entry((before, placed)).or_insert(next);
        if id == next {
            self.entries.push(MarkEntry { placed, before, length });
        }
        id
    }

    /// The longest common prefix of both.
    pub fn common(&self, one: HistoryId, other: HistoryId) -> HistoryId {
        let (mut one, mut other) = (one, other);
        while one != other {
            // The shorter one of two different lists cannot extend the longer one.
            let longer = if self.length(one) >= self.length(other) { &mut one } else { &mut other };
            match self.entry(*longer) {
                Some(entry) => *longer = entry.before,
                None => return HistoryId::EMPTY,
            }
        }
        one
    }

    /// Yields the rest of a list after a prefix of it, the last mark first.
    fn back_to(&self, from: HistoryId, id: HistoryId) -> impl Iterator<Item = PlacedMark> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            let entry = self.entry(at).filter(|_| at != from)?;
            at = entry.before;
            Some(entry.placed)
        })
    }

    /// Returns the rest of a list after a prefix of it.
    pub fn since(&self, from: HistoryId, id: HistoryId) -> Vec<PlacedMark> {
        let mut marks: Vec<PlacedMark> = self.back_to(from, id).collect();
        marks.reverse();
        marks
    }

    /// The first mark of a list after a prefix of it.
    pub fn first_since(&self, from: HistoryId, id: HistoryId) -> Option<PlacedMark> {
        self.back_to(from, id).last()
    }

    /// Compares two parses by their first different marks: the one that begins a part first
    /// precedes, or else the one whose current part lasts longer.
    pub fn compare(&self, one: HistoryId, other: HistoryId) -> std::cmp::Ordering {
        let common = self.common(one, other);
        let key = |id| match self.first_since(common, id) {
            Some((mark @ (Mark::Open(_) | Mark::ValueBegins | Mark::KeyBegins), at)) => {
                (0, at, Some(mark))
            }
            None => (1, 0, None),
            Some((mark @ (Mark::Close(_) | Mark::ValueEnds | Mark::KeyEnds), at)) => {
                (2, usize::MAX - at, Some(mark))
            }
        };
        key(one).cmp(&key(other))
    }

    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * std::mem::size_of::<MarkEntry>()
            + self.ids.capacity() * (std::mem::size_of::<(HistoryId, PlacedMark, HistoryId)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffwd_grammar::NodeId;
    use std::cmp::Ordering;

    fn list(histories: &mut Histories, marks: &[(u32, usize)]) -> HistoryId {
        marks.iter().fold(HistoryId::EMPTY, |id, &(node, at)| {
            histories.push(id, (Mark::Open(NodeId(node)), at))
        })
    }

    #[test]
    fn lists_share_their_beginnings() {
        let mut histories = Histories::default();
        let one = list(&mut histories, &[(1, 0), (2, 3), (3, 5)]);
        let other = list(&mut histories, &[(1, 0), (2, 3), (4, 4), (5, 9)]);
        let begin = list(&mut histories, &[(1, 0), (2, 3)]);
        assert_eq!(histories.common(one, other), begin);
        assert_eq!(histories.common(begin, other), begin);
        assert_eq!(histories.common(HistoryId::EMPTY, other), HistoryId::EMPTY);
        assert_eq!(
            histories.since(begin, other),
            [(Mark::Open(NodeId(4)), 4), (Mark::Open(NodeId(5)), 9)]
        );
        assert_eq!(histories.first_since(begin, one), Some((Mark::Open(NodeId(3)), 5)));
        assert_eq!(list(&mut histories, &[(1, 0), (2, 3), (3, 5)]), one);
        // An earlier start precedes, and then a longer part.
        assert_eq!(histories.compare(other, one), Ordering::Less);
        assert_eq!(histories.compare(one, begin), Ordering::Less);
        assert_eq!(histories.compare(one, one), Ordering::Equal);
        let mut close = |at| histories.push(begin, (Mark::Close(NodeId(2)), at));
        let (early, late) = (close(4), close(6));
        assert_eq!(histories.compare(late, early), Ordering::Less);
        assert_eq!(histories.compare(begin, late), Ordering::Less);
    }
}
