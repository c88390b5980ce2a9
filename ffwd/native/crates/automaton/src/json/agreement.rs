//! Which of the containers that came an item agrees with so far.
//!
//! A container has an entry for each of its members, at any depth: for the place with the value, and
//! for a name alone. Behind an entry lie the ids of the containers that have it. So those that agree
//! with what is written are an intersection of such sets, whatever containers are open.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::error::EngineError;
use crate::json::history::{
    is_limit, key_of, members, nibbles, read_members, string_end, Histories, Member, MEMBER,
};
use crate::json::used_keys::UsedId;
use ffwd_bounds::meter;
use ffwd_json_schema::{SchemaError, SchemaId, SchemaSet};

/// The most containers to distinguish that an item may become.
const MAX_RIVALS: usize = 64;

/// How deep containers within an item have entries. Those further in are compared as a whole.
const MAX_DEPTH: usize = 16;

/// The value of a name whose value is not looked at.
const ANY_VALUE: &[u8] = b"*";

/// Containers that came, and that an item that is being written may still equal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Agreeing {
    None,
    Few(Vec<SchemaId>),
    /// At most this many.
    Many(u32),
}

/// An open container, or the value in it that is being written.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The hash of the places of the containers around it.
    around: u64,
    /// In an array, the hash of the items before it: the entry of an item is one of all up to it.
    before: u64,
}

impl Place {
    /// The hash of a member with a value there.
    fn hash(self, container: &[u8], member: &Member, value: &[u8]) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(self.around);
        hasher.write(&container[..1]);
        match &member.name {
            Some(name) => hasher.write(&container[name.clone()]),
            None => {
                hasher.write_usize(member.place);
                hasher.write_u64(self.before);
            }
        }
        hasher.write(value);
        hasher.finish()
    }

    /// The hash of a member that has ended, and the place behind it.
    fn pass(
        &mut self,
        set: &SchemaSet,
        container: &[u8],
        member: &Member,
    ) -> Result<u64, SchemaError> {
        let text = &container[member.value.clone()];
        let value = match key_of(set, text) {
            // No item that came has a number with so many digits: it would have been the last one.
            Err(error) if is_limit(&error) => text.to_vec(),
            key => key?,
        };
        let hash = self.hash(container, member, &value);
        if member.name.is_none() {
            self.before = hash;
        }
        Ok(hash)
    }

    /// The place of the parts of a member.
    fn within(self, container: &[u8], member: &Member) -> Self {
        Self { around: self.hash(container, member, b""), before: 0 }
    }
}

fn entry_of(hash: u64) -> impl Iterator<Item = u8> {
    [MEMBER].into_iter().chain(nibbles((hash >> 32) as u32 ^ hash as u32))
}

/// The entries of a container, before the ids of those that have them.
pub(super) fn entries_of(set: &SchemaSet, item: &[u8]) -> Result<Vec<Vec<u8>>, EngineError> {
    let mut entries = Vec::new();
    let mut pending = vec![(item, Place::default(), 0)];
    while let Some((container, mut place, depth)) = pending.pop() {
        for member in members(container) {
            meter::charge(1)?;
            let value = &container[member.value.clone()];
            if depth < MAX_DEPTH && matches!(value.first(), Some(b'{' | b'[')) {
                pending.push((value, place.within(container, &member), depth + 1));
            }
            if member.name.is_some() {
                entries.push(entry_of(place.hash(container, &member, ANY_VALUE)).collect());
            }
            entries.push(entry_of(place.pass(set, container, &member)?).collect());
        }
    }
    Ok(entries)
}

impl Histories {
    /// The containers that agree with what is written of one so far: a set of their ids, as nibbles.
    pub(crate) fn agreed(
        &self,
        set: &SchemaSet,
        history: UsedId,
        item: &[u8],
    ) -> Result<UsedId, EngineError> {
        let kind = item.first().and_then(|&kind| self.sets.child(history, kind));
        let Some(all) = kind else { return Ok(UsedId::EMPTY) };
        let mut agreed = None;
        let mut keep = |histories: &Self, hash: u64| -> Result<bool, EngineError> {
            meter::charge(1)?;
            let entry: Vec<u8> = entry_of(hash).collect();
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
                let hash = place.pass(set, container, member)?;
                // The entry of an item is one of all up to it.
                if member.name.is_none() {
                    last = Some(hash);
                } else if !keep(self, hash)? {
                    return Ok(UsedId::EMPTY);
                }
            }
            if let Some(last) = last {
                if !keep(self, last)? {
                    return Ok(UsedId::EMPTY);
                }
            }
            let Some(open) = open else { break };
            if open.name.is_some() && !keep(self, place.hash(container, &open, ANY_VALUE))? {
                return Ok(UsedId::EMPTY);
            }
            place = place.within(container, &open);
            container = &container[open.value];
            if !matches!(container.first(), Some(b'{' | b'[')) {
                break;
            }
        }
        Ok(agreed.unwrap_or(all))
    }

    /// The same, listed if they are few.
    pub(crate) fn agreeing(
        &self,
        set: &SchemaSet,
        history: UsedId,
        item: &[u8],
    ) -> Result<Agreeing, EngineError> {
        if item.is_empty() {
            return Ok(Agreeing::Many(u32::MAX));
        }
        let agreed = self.agreed(set, history, item)?;
        let count = self.sets.count(agreed);
        if count == 0 {
            return Ok(Agreeing::None);
        }
        if count as usize > MAX_RIVALS {
            return Ok(Agreeing::Many(count));
        }
        let mut found = Vec::with_capacity(count as usize);
        let mut pending = vec![(agreed, 0u32)];
        while let Some((node, id)) = pending.pop() {
            if self.sets.ends(node) {
                found.push(SchemaId(id));
            }
            let children = self.sets.children(node).iter();
            pending.extend(children.map(|&(nibble, child)| (child, id << 4 | u32::from(nibble))));
        }
        found.sort_unstable();
        Ok(Agreeing::Few(found))
    }
}

/// A container in which a string has not ended, which is a member of it or of one within it.
#[derive(Clone, Debug)]
pub struct OpenMember {
    /// The innermost open container.
    container: Vec<u8>,
    member: Member,
    place: Place,
}

impl OpenMember {
    pub(crate) fn of(set: &SchemaSet, item: &[u8]) -> Result<Option<Self>, SchemaError> {
        let (mut container, mut place) = (item, Place::default());
        for _ in 0..=MAX_DEPTH {
            let (members, Some(member)) = read_members(container) else { return Ok(None) };
            for member in &members {
                place.pass(set, container, member)?;
            }
            match container.get(member.value.start) {
                Some(b'"') => {
                    return Ok(Some(Self { container: container.to_vec(), member, place }))
                }
                Some(b'{' | b'[') => {
                    place = place.within(container, &member);
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
        let hash = self.place.hash(&self.container, &self.member, &text[..end]);
        let mut entry = entry_of(hash);
        entry.try_fold(history, |node, byte| histories.sets.child(node, byte)).is_none()
    }
}
