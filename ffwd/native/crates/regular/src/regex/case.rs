//! Sets of characters whose case is ignored.

use super::CharClass;

/// Which characters are the same when case is ignored.
pub(super) struct CaseMap {
    /// Characters that count as others, with these.
    pub(super) moved: Vec<(u32, u32)>,
    /// Groups of characters without folding that match each other nevertheless.
    pub(super) alike: Vec<Vec<u32>>,
}

impl CaseMap {
    /// All characters that are the same as one of a set.
    pub(super) fn closure(&self, class: &CharClass) -> CharClass {
        let one = |&code: &u32| (code, code);
        let (mut gone, mut targets) = (Vec::new(), Vec::new());
        for (code, target) in &self.moved {
            gone.push(one(code));
            if has(class, *code) {
                targets.push(one(target));
            }
        }
        let meant = class.intersect(&CharClass::new(gone).negate());
        let meant = meant.union(&CharClass::new(targets));
        let alike = self.alike.iter().filter(|group| group.iter().any(|&code| has(&meant, code)));
        let meant = meant.union(&CharClass::new(alike.flatten().map(one)));
        let moved = self.moved.iter().filter(|(_, target)| has(&meant, *target));
        meant.union(&CharClass::new(moved.map(|(code, _)| one(code))))
    }
}

fn has(class: &CharClass, code: u32) -> bool {
    let ranges = class.ranges();
    let after = ranges.partition_point(|&(low, _)| low <= code);
    after > 0 && code <= ranges[after - 1].1
}
