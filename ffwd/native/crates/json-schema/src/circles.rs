//! Schemas that apply themselves to the same value.
//!
//! A circle of references and `allOf` demands nothing beyond its members. Each member means the
//! conjunction of all of them, because a schema conjoined with itself adds nothing. Such circles
//! are opened. Others, through `not` or `oneOf` above all, have no meaning, and are refused.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::document::NodeId;
use super::error::{Result, SchemaError};
use super::expand::in_place_nodes;
use super::program::Program;
use super::schema::{InPlace, Meaning};

type Targets = SmallVec<[NodeId; 4]>;

/// The colour of a node in the search for cycles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Fresh,
    Open,
    Done,
}

impl Program {
    /// Opens circles of references and `allOf`, and refuses other ones.
    pub(super) fn settle_circles(&mut self) -> Result<()> {
        if self.circle().is_none() {
            return Ok(());
        }
        for members in self.conjoined_circles() {
            self.open_circle(&members);
        }
        match self.circle() {
            None => Ok(()),
            Some(node) => Err(SchemaError::invalid(
                Some("$ref"),
                self.document.pointer(node),
                "the schema refers to itself for the same value, without end; put the reference \
                 under a property or an item"
                    .into(),
            )),
        }
    }

    /// The nodes that apply to the same value.
    fn targets(&self, node: NodeId) -> Targets {
        match self.meaning(node) {
            Meaning::Same(target) => SmallVec::from_slice(&[target]),
            Meaning::Schema(number) => {
                let schema = &self.schemas[number as usize];
                let nodes = schema.in_place.iter().flat_map(|kind| in_place_nodes(self, kind));
                nodes.map(|node| self.child(schema, node)).collect()
            }
            _ => Targets::new(),
        }
    }

    /// A schema that applies itself to the same value.
    fn circle(&self) -> Option<NodeId> {
        let mut colours = vec![Colour::Fresh; self.document.len()];
        for start in 0..self.document.len() as u32 {
            if colours[start as usize] != Colour::Fresh
                || !matches!(self.meaning(NodeId(start)), Meaning::Same(_) | Meaning::Schema(_))
            {
                continue;
            }
            colours[start as usize] = Colour::Open;
            let mut path = vec![(NodeId(start), self.targets(NodeId(start)), 0)];
            while let Some((node, next, place)) = path.last_mut() {
                let Some(&target) = next.get(*place) else {
                    colours[node.index()] = Colour::Done;
                    path.pop();
                    continue;
                };
                *place += 1;
                match colours[target.index()] {
                    Colour::Fresh => {
                        colours[target.index()] = Colour::Open;
                        path.push((target, self.targets(target), 0));
                    }
                    Colour::Open => return Some(target),
                    Colour::Done => {}
                }
            }
        }
        None
    }

    /// Returns the unconditional subschemas of an in-place keyword.
    fn conjuncts<'a>(&'a self, kind: &'a InPlace) -> &'a [NodeId] {
        match kind {
            InPlace::Reference(node) => std::slice::from_ref(node),
            InPlace::AllOf(list) => self.document.items(*list),
            InPlace::AnyOf(list) | InPlace::OneOf(list) => match self.document.items(*list) {
                only @ [_] => only,
                _ => &[],
            },
            InPlace::Not(_) | InPlace::If { .. } | InPlace::Dependencies(_) => &[],
        }
    }

    fn conjoined(&self, node: NodeId) -> Targets {
        match self.meaning(node) {
            Meaning::Same(target) => SmallVec::from_slice(&[target]),
            Meaning::Schema(number) => {
                let schema = &self.schemas[number as usize];
                let nodes = schema.in_place.iter().flat_map(|kind| self.conjuncts(kind));
                nodes.map(|&node| self.child(schema, node)).collect()
            }
            _ => Targets::new(),
        }
    }

    /// The sets of schemas that all demand each other: the strongly connected components with a
    /// circle (Tarjan), in no particular order.
    fn conjoined_circles(&self) -> Vec<Vec<NodeId>> {
        const FRESH: u32 = u32::MAX;
        const LEFT: u32 = u32::MAX - 1;
        // The number of a node in the order of visits, and then the least that it leads back to.
        let mut least = vec![FRESH; self.document.len()];
        let mut visits = 0;
        let mut waiting: Vec<NodeId> = Vec::new();
        let mut circles = Vec::new();
        for start in (0..self.document.len() as u32).map(NodeId) {
            if least[start.index()] != FRESH {
                continue;
            }
            let mut path: Vec<(NodeId, Targets, usize, u32)> = Vec::new();
            let mut next = Some(start);
            loop {
                if let Some(node) = next.take() {
                    least[node.index()] = visits;
                    waiting.push(node);
                    path.push((node, self.conjoined(node), 0, visits));
                    visits += 1;
                }
                let Some((node, targets, place, number)) = path.last_mut() else { break };
                let (node, number) = (*node, *number);
                if let Some(&target) = targets.get(*place) {
                    *place += 1;
                    match least[target.index()] {
                        FRESH => next = Some(target),
                        LEFT => {}
                        back => least[node.index()] = least[node.index()].min(back),
                    }
                    continue;
                }
                let itself = targets.contains(&node);
                path.pop();
                let back = least[node.index()];
                if let Some((parent, ..)) = path.last() {
                    least[parent.index()] = least[parent.index()].min(back);
                }
                if back < number {
                    continue;
                }
                let first = waiting.iter().rposition(|&waits| waits == node).unwrap_or(0);
                let members = waiting.split_off(first);
                for member in &members {
                    least[member.index()] = LEFT;
                }
                if members.len() > 1 || itself {
                    circles.push(members);
                }
            }
        }
        circles
    }

    /// Gives all members of a circle their common meaning: their keywords without the circle
    /// itself. Not if some ask what the others have evaluated, which has no end.
    fn open_circle(&mut self, members: &[NodeId]) {
        let mut numbers: Vec<(NodeId, usize)> = Vec::new();
        for &member in members {
            if let Meaning::Schema(number) = self.meaning(member) {
                numbers.push((member, number as usize));
            }
        }
        let asks = |&(_, number): &(NodeId, usize)| self.schemas[number].asks_what_is_evaluated();
        if numbers.iter().any(asks) {
            return;
        }
        numbers.sort_unstable();
        let Some(&(first, of_first)) = numbers.first() else {
            for member in members {
                self.set_meaning(*member, Meaning::Any);
            }
            return;
        };
        let circle: FxHashSet<NodeId> = members.iter().copied().collect();
        for &(_, number) in &numbers {
            self.leave_circle(number, &circle);
        }
        for &(member, number) in &numbers[1..] {
            // The member's own part gets a separate name.
            let part = self.add_part(member, number);
            self.schemas[of_first].in_place.push(InPlace::Reference(part));
        }
        for &member in members {
            if member != first {
                self.set_meaning(member, Meaning::Same(first));
            }
        }
    }

    /// Removes the members of a circle from a schema's in-place demands.
    fn leave_circle(&mut self, number: usize, members: &FxHashSet<NodeId>) {
        let schema = &self.schemas[number];
        let is_member = |node: NodeId| members.contains(&self.child(schema, node));
        let mut in_place: SmallVec<[InPlace; 2]> = SmallVec::new();
        let mut before_own = 0;
        for (place, kind) in schema.in_place.iter().enumerate() {
            if place == schema.in_place_before_own {
                before_own = in_place.len();
            }
            let conjuncts = self.conjuncts(kind);
            if conjuncts.iter().any(|&node| is_member(node)) {
                let others = conjuncts.iter().filter(|&&node| !is_member(node));
                in_place.extend(others.map(|&node| InPlace::Reference(node)));
            } else {
                in_place.push(*kind);
            }
        }
        if schema.in_place_before_own >= schema.in_place.len() {
            before_own = in_place.len();
        }
        let schema = &mut self.schemas[number];
        schema.in_place = in_place;
        schema.in_place_before_own = before_own;
    }
}

/// The names of the own keywords of circles' members, and the members.
pub type CircleParts = FxHashMap<NodeId, NodeId>;
