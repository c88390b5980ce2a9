//! The states of objects.

use std::hash::{Hash, Hasher};

use crate::interning::memory::Held;
use crate::json::exclusion_set::ExclusionSet;
use crate::json::monitor::Place;
use crate::json::name_set::NameSet;
use crate::json::object_group::OpenKeys;
use crate::json::used_keys::UsedId;
use crate::stacks::ids::{KeyNodeId, NameId, ObjectGroupId, ObjectStateId};
use ffwd_regular::expr::Verdict;

/// The estimated length of an undeclared member: a key of one character, and a digit.
pub(crate) const LEAST_MEMBER: u32 = 5;

/// A monitor that has not failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Live {
    pub monitor: u32,
    pub place: Place,
}

/// The members so far, as far as they still matter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// Earlier names of the group, except those that the monitors' states imply.
    pub seen: NameSet,
    /// How many, at most the cap of the group.
    pub count: u64,
    /// Earlier undeclared keys, while they matter.
    pub(crate) used: UsedId,
}

/// The state of an object between its members, with cached consequences of the first three fields.
#[derive(Clone, Debug)]
pub struct ObjectState {
    pub(crate) group: ObjectGroupId,
    pub(crate) live: Box<[Live]>,
    pub(crate) members: Members,
    /// The allowed undeclared keys.
    pub(crate) open: OpenKeys,
    /// All allowed keys.
    pub keys: KeyNodeId,
}

impl ObjectState {
    pub(crate) fn identity(&self) -> (ObjectGroupId, &[Live], &Members) {
        (self.group, &self.live, &self.members)
    }
}

impl PartialEq for ObjectState {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for ObjectState {}

impl Hash for ObjectState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// A member whose value has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectPending {
    pub(crate) from: ObjectStateId,
    pub(crate) entries: Box<[Waiting]>,
    pub(crate) members: Members,
}

/// A monitor that waits for a member's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    pub(crate) monitor: u32,
    /// After the member.
    pub(crate) ordered: u32,
    /// The schema of the query that must hold.
    pub(crate) bit: u8,
    /// The required schemas of the query with which the object can be completed.
    pub(crate) ways: Verdict,
    /// Exclusions that the member suits whatever its value is.
    pub(crate) kept: ExclusionSet,
    /// Other exclusions, each with the schema of the query that must hold for the member to suit.
    pub(crate) watched: Box<[(u32, u8)]>,
    pub(crate) told: Option<Box<ToldApart>>,
}

/// Exclusions that are decided by the class of the value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ToldApart {
    pub(crate) name: NameId,
    pub(crate) exclusions: ExclusionSet,
    /// The schemas of the query that have the digits of the class.
    pub(crate) digits: Box<[u8]>,
}

impl Held for ObjectState {
    fn held_bytes(&self) -> usize {
        let pending = self.live.iter().map(|live| live.place.pending.bytes());
        std::mem::size_of_val(&*self.live) + pending.sum::<usize>() + self.members.seen.bytes()
    }
}

impl Held for ObjectPending {
    fn held_bytes(&self) -> usize {
        let told = |told: &ToldApart| {
            std::mem::size_of::<ToldApart>() + told.exclusions.bytes() + told.digits.len()
        };
        let watched = self.entries.iter().map(|entry| {
            std::mem::size_of_val(&*entry.watched)
                + entry.kept.bytes()
                + entry.told.as_deref().map_or(0, told)
        });
        let entries = std::mem::size_of_val(&*self.entries) + watched.sum::<usize>();
        entries + self.members.seen.bytes()
    }
}

/// The arguments of [`Json::is_feasible`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Feasibility {
    pub(crate) group: ObjectGroupId,
    pub(crate) monitor: u32,
    pub(crate) place: Place,
    pub(crate) seen: NameSet,
    pub(crate) count: u64,
}

/// The least bytes of the members that a component needs, and how many these are.
pub type LeastMembers = (u32, u32);
