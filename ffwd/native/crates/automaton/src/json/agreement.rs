//! Which of the containers that came an item agrees with so far.
//!
//! A container has an entry for each of its members, at any depth: for the place with the value, and
//! for a name alone. Behind an entry lie the ids of the containers that have it. So those that agree
//! with what is written are an intersection of such sets, whatever containers are open.

use rustc_hash::FxHashMap;

use crate::error::EngineError;
use crate::interning::memory::map_entry;
use crate::json::history::{
    is_limit, key_of, members, nibbles, read_members, string_end, Histories, Member, MEMBER,
};
use crate::json::used_keys::UsedId;
use ffwd_bounds::meter;
use ffwd_json_schema::{SchemaError, SchemaId, SchemaSet};

/// The most containers to distinguish that an item may become.
const MAX_RIVALS: usize = 64;

/// How deep containers within an item have entries. Those further in are compared as a whole.
pub(super) const MAX_DEPTH: usize = 16;

/// The value of a name whose value is not looked at.
const ANY_VALUE: &[u8] = b"*";

/// Containers that came, and that an item that is being written may still equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreeing {
    /// The set of their ids, as nibbles; `None` for all earlier items.
    ids: Option<UsedId>,
    /// How many they are, at most.
    pub count: u32,
}

impl Agreeing {
    pub fn is_none(self) -> bool {
        self.count == 0
    }
}

/// The numbers of parts of containers: of a place with a value, of a name alone, and of a place
/// whose parts have numbers. Equal parts have one number.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    numbers: FxHashMap<Box<[u8]>, u32>,
    bytes: usize,
}

impl Parts {
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.numbers.len() * map_entry::<Box<[u8]>, u32>()
    }

    fn find(&self, part: &[u8]) -> Option<u32> {
        self.numbers.get(part).copied()
    }

    fn number(&mut self, part: Vec<u8>) -> u32 {
        if let Some(known) = self.find(&part) {
            return known;
        }
        // 0 is outside all containers.
        let number = self.numbers.len() as u32 + 1;
        self.bytes += part.len();
        self.numbers.insert(part.into(), number);
        number
    }
}

/// An open container, or the value in it that is being written.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The number of the place that the container is at.
    around: u32,
    /// In an array, the number of the items before it: the entry of an item is one of all up to it.
    before: u32,
}

impl Place {
    /// A member with a value there.
    fn part(self, container: &[u8], member: &Member, value: &[u8]) -> Vec<u8> {
        let name = member.name.as_ref().map_or(&[][..], |name| &container[name.clone()]);
        let mut part = Vec::with_capacity(13 + name.len() + value.len());
        part.extend_from_slice(&container[..1]);
        part.extend_from_slice(&self.around.to_le_bytes());
        match &member.name {
            Some(_) => part.extend_from_slice(name),
            None => {
                part.extend_from_slice(&(member.place as u32).to_le_bytes());
                part.extend_from_slice(&self.before.to_le_bytes());
            }
        }
        part.extend_from_slice(value);
        part
    }

    /// Passes a member that has ended, and returns its number. `None` if it has none.
    fn pass(
        &mut self,
        set: &SchemaSet,
        container: &[u8],
        member: &Member,
        mut number: impl FnMut(Vec<u8>) -> Option<u32>,
    ) -> Result<Option<u32>, SchemaError> {
        let text = &container[member.value.clone()];
        let value = match key_of(set, text) {
            // No item that came has a number with so many digits: it would have been the last one.
            Err(error) if is_limit(&error) => text.to_vec(),
            key => key?,
        };
        let found = number(self.part(container, member, &value));
        if let (None, Some(found)) = (&member.name, found) {
            self.before = found;
        }
        Ok(found)
    }

    /// The place of the parts of a member.
    fn within(
        self,
        container: &[u8],
        member: &Member,
        number: impl FnOnce(Vec<u8>) -> Option<u32>,
    ) -> Option<Self> {
        let around = number(self.part(container, member, b""))?;
        Some(Self { around, before: 0 })
    }
}

fn entry_of(number: u32) -> impl Iterator<Item = u8> {
    [MEMBER].into_iter().chain(nibbles(number))
}

impl Histories {
    /// The entries of a container, before the ids of those that have them.
    pub(super) fn entries_of(
        &self,
        set: &SchemaSet,
        item: &[u8],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let number = |part: Vec<u8>| Some(self.members.lock().parts.number(part));
        let mut entries: Vec<Vec<u8>> = Vec::new();
        let mut pending = vec![(item, Place::default(), 0)];
        while let Some((container, mut place, depth)) = pending.pop() {
            for member in members(container) {
                meter::charge(1)?;
                let value = &container[member.value.clone()];
                if depth < MAX_DEPTH && matches!(value.first(), Some(b'{' | b'[')) {
                    if let Some(within) = place.within(container, &member, number) {
                        pending.push((value, within, depth + 1));
                    }
                }
                if member.name.is_some() {
                    let name = number(place.part(container, &member, ANY_VALUE));
                    entries.extend(name.map(|name| entry_of(name).collect()));
                }
                let found = place.pass(set, container, &member, number)?;
                entries.extend(found.map(|found| entry_of(found).collect()));
            }
        }
        Ok(entries)
    }

    fn number_of(&self, part: &[u8]) -> Option<u32> {
        self.members.lock().parts.find(part)
    }

    /// The containers that agree with what is written of one so far: a set of their ids, as nibbles.
    pub(crate) fn agreed(
        &self,
        set: &SchemaSet,
        history: UsedId,
        item: &[u8],
    ) -> Result<UsedId, EngineError> {
        let kind = item.first().and_then(|&kind| self.sets.child(history, kind));
        let Some(all) = kind else { return Ok(UsedId::EMPTY) };
        let number = |part: Vec<u8>| self.number_of(&part);
        let mut agreed = None;
        let mut keep = |histories: &Self, number: u32| -> Result<bool, EngineError> {
            meter::charge(1)?;
            let entry: Vec<u8> = entry_of(number).collect();
            let found = histories.find(history, &entry).unwrap_or(UsedId::EMPTY);
            let next = match agreed {
                Some(others) => histories.sets.common(others, found)?,
                None => found,
            };
            agreed = Some(next);
            Ok(next != UsedId::EMPTY)
        };
        let (mut container, mut place) = (item, Place::default());
        for _ in 0..=MAX_DEPTH {
            let (members, open) = read_members(container);
            let mut last = None;
            for member in &members {
                // Parts without a number are in no container.
                let Some(part) = place.pass(set, container, member, number)? else {
                    return Ok(UsedId::EMPTY);
                };
                // The entry of an item is one of all up to it.
                if member.name.is_none() {
                    last = Some(part);
                } else if !keep(self, part)? {
                    return Ok(UsedId::EMPTY);
                }
            }
            if let Some(last) = last {
                if !keep(self, last)? {
                    return Ok(UsedId::EMPTY);
                }
            }
            let Some(open) = open else { break };
            if open.name.is_some() {
                match number(place.part(container, &open, ANY_VALUE)) {
                    Some(name) if keep(self, name)? => {}
                    _ => return Ok(UsedId::EMPTY),
                }
            }
            if !matches!(container.get(open.value.start), Some(b'{' | b'[')) {
                break;
            }
            let Some(within) = place.within(container, &open, number) else {
                return Ok(UsedId::EMPTY);
            };
            place = within;
            container = &container[open.value];
        }
        Ok(agreed.unwrap_or(all))
    }

    /// The same, counted.
    pub(crate) fn agreeing(
        &self,
        set: &SchemaSet,
        history: UsedId,
        item: &[u8],
    ) -> Result<Agreeing, EngineError> {
        if item.is_empty() {
            return Ok(Agreeing { ids: None, count: u32::MAX });
        }
        let agreed = self.agreed(set, history, item)?;
        Ok(Agreeing { ids: Some(agreed), count: self.sets.count(agreed) })
    }

    /// The containers of such a set, if they are few.
    pub(crate) fn listed(&self, agreeing: Agreeing) -> Option<Vec<SchemaId>> {
        let ids = agreeing.ids.filter(|_| agreeing.count as usize <= MAX_RIVALS)?;
        let mut found = Vec::with_capacity(agreeing.count as usize);
        // The first nibble is the number of the others.
        let counts = self.sets.children(ids).iter();
        let mut pending: Vec<(UsedId, u32)> = counts.map(|&(_, digits)| (digits, 0)).collect();
        while let Some((node, id)) = pending.pop() {
            if self.sets.ends(node) {
                found.push(SchemaId(id));
            }
            let children = self.sets.children(node).iter();
            pending.extend(children.map(|&(digit, child)| (child, id << 4 | u32::from(digit))));
        }
        found.sort_unstable();
        Some(found)
    }
}

/// A container in which a string has not ended, which is a member of it or of one within it.
#[derive(Clone, Debug)]
pub struct OpenMember {
    /// The innermost open container.
    container: Vec<u8>,
    member: Member,
    /// `None` if no container that came has such a place.
    place: Option<Place>,
}

impl OpenMember {
    pub(crate) fn of(
        set: &SchemaSet,
        histories: &Histories,
        item: &[u8],
    ) -> Result<Option<Self>, SchemaError> {
        let number = |part: Vec<u8>| histories.number_of(&part);
        let (mut container, mut place) = (item, Some(Place::default()));
        for _ in 0..=MAX_DEPTH {
            let (members, Some(member)) = read_members(container) else { return Ok(None) };
            for member in &members {
                if let Some(mut at) = place {
                    place = at.pass(set, container, member, number)?.map(|_| at);
                }
            }
            match container.get(member.value.start) {
                Some(b'"') => {
                    return Ok(Some(Self { container: container.to_vec(), member, place }))
                }
                Some(b'{' | b'[') => {
                    place = place.and_then(|place| place.within(container, &member, number));
                    container = &container[member.value];
                }
                _ => break,
            }
        }
        Ok(None)
    }

    /// Whether the string has ended after some bytes more, and no item that came has such a member.
    pub(crate) fn is_apart(&self, histories: &Histories, history: UsedId, bytes: &[u8]) -> bool {
        let text = [&self.container[self.member.value.start..], bytes].concat();
        let Some(end) = string_end(&text, 0) else { return false };
        let part = self.place.map(|place| place.part(&self.container, &self.member, &text[..end]));
        let Some(number) = part.and_then(|part| histories.number_of(&part)) else { return true };
        let mut entry = entry_of(number);
        entry.try_fold(history, |node, byte| histories.sets.child(node, byte)).is_none()
    }
}
