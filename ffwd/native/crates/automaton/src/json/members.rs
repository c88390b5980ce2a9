//! The values of earlier containers at the current place within an item.
//!
//! A member that differs from all of them makes the item distinct, whatever its other members are.
//! So a member is compared with a set like those of [`crate::json::history`]: the values at this
//! place of the containers that agree with the item so far. These sets are built from those of the
//! containers' ids, part by part, so one more container changes one path.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::agreement::Parts;
use crate::json::history::{key_of, read_members, string_end, Histories, Member};
use crate::json::used_keys::UsedId;
use ffwd_bounds::meter;
use ffwd_json_schema::SchemaSet;

/// A step from a container into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The member with this name, which is written with its quotes.
    Name(Box<[u8]>),
    /// The item at this place.
    Item(usize),
    /// All names.
    Names,
    /// No step: only into containers with this many members.
    Of(usize),
}

/// A position within an incomplete container.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenPlace {
    pub path: Vec<Step>,
    /// The offset of the name, or the value that is no container, that has begun or is to begin.
    pub start: usize,
    /// How many members the containers on the path have with the one that has begun.
    counts: Vec<usize>,
}

impl OpenPlace {
    /// The path through those containers alone that get no further member.
    pub fn closing_path(&self) -> Vec<Step> {
        let counts = self.counts.iter().map(|&count| Step::Of(count));
        counts.zip(&self.path).flat_map(|(count, step)| [count, step.clone()]).collect()
    }
}

/// A set of ids: its node, the nibbles before it, how many these are, and the place.
type ValuesKey = (UsedId, u32, u8, u32);

#[derive(Debug, Default)]
pub(crate) struct KnownMembers {
    /// The earlier containers by their ids, each as one of its texts.
    texts: FxHashMap<u32, Box<[u8]>>,
    paths: FxHashMap<Box<[Step]>, u32>,
    values: FxHashMap<ValuesKey, UsedId>,
    pub parts: Parts,
    /// The memory of the texts and paths.
    bytes: usize,
}

impl KnownMembers {
    pub fn memory_bytes(&self) -> usize {
        let texts = self.texts.len() * map_entry::<u32, Box<[u8]>>();
        let values = self.values.len() * map_entry::<ValuesKey, UsedId>();
        self.bytes + texts + values + self.parts.memory_bytes()
    }

    pub fn keep(&mut self, id: u32, text: &[u8]) {
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.texts.entry(id) {
            vacant.insert(text.into());
            self.bytes += text.len();
        }
    }

    fn path_id(&mut self, path: &[Step]) -> u32 {
        if let Some(&known) = self.paths.get(path) {
            return known;
        }
        let id = self.paths.len() as u32;
        self.paths.insert(path.into(), id);
        self.bytes += map_entry::<Box<[Step]>, u32>() + std::mem::size_of_val(path);
        id
    }
}

/// The position within a container whose text starts with its first byte. `None` after a value,
/// where no value or name may begin.
pub(crate) fn open_place(text: &[u8]) -> Option<OpenPlace> {
    let mut path = Vec::new();
    let mut counts = Vec::new();
    let mut start = 0;
    loop {
        let container = &text[start..];
        let (members, open) = read_members(container);
        counts.push(members.len() + 1);
        if let Some(Member { name, place, value }) = open.filter(|open| !open.value.is_empty()) {
            path.push(step_to(container, name, place));
            start += value.start;
            match container.get(value.start)? {
                b'{' | b'[' => continue,
                b'}' | b']' => return None,
                _ => return Some(OpenPlace { path, start, counts }),
            }
        }
        let is_object = container.first() == Some(&b'{');
        // Behind the last member, or the opening bracket.
        let from = members.last().map_or(1, |last| last.value.end);
        let blank = |byte: &u8| b" \t\n\r".contains(byte);
        let mut rest = container.get(from..)?.trim_ascii_start();
        if !members.is_empty() {
            rest = rest.strip_prefix(b",")?.trim_ascii_start();
        }
        let end = text.len();
        if !is_object {
            path.push(Step::Item(members.len()));
            return rest.is_empty().then_some(OpenPlace { path, start: end, counts });
        }
        if rest.is_empty() {
            path.push(Step::Names);
            return Some(OpenPlace { path, start: end, counts });
        }
        if rest.first() != Some(&b'"') {
            return None;
        }
        let Some(name) = string_end(rest, 0) else {
            path.push(Step::Names);
            return Some(OpenPlace { path, start: end - rest.len(), counts });
        };
        // Nothing but a colon can follow, and a value has not begun.
        let colon = rest[name..].iter().position(|byte| !blank(byte));
        colon?;
        path.push(Step::Name(rest[..name].into()));
        return Some(OpenPlace { path, start: end, counts });
    }
}

fn step_to(container: &[u8], name: Option<std::ops::Range<usize>>, place: usize) -> Step {
    match name {
        Some(name) => Step::Name(container[name].into()),
        None => Step::Item(place),
    }
}

impl Histories {
    /// The scalars, or the names, at a place in the containers of a set of ids, each with its
    /// nibbles. They count once for each container. `None` if they are unknown.
    pub(crate) fn values_at(
        &self,
        set: &SchemaSet,
        ids: UsedId,
        path: &[Step],
    ) -> Result<Option<UsedId>> {
        let path_id = self.members.lock().path_id(path);
        self.values_below(set, (ids, 0, 0, path_id), path)
    }

    fn values_below(
        &self,
        set: &SchemaSet,
        key: ValuesKey,
        path: &[Step],
    ) -> Result<Option<UsedId>> {
        let (mut node, mut before, mut depth, path_id) = key;
        // If ids do not branch, the next node is found as quickly as a known result.
        while let &[(nibble, child)] = self.sets.children(node) {
            (node, before, depth) = (child, before_child(before, depth, nibble), depth + 1);
        }
        let key = (node, before, depth, path_id);
        if let Some(&known) = self.members.lock().values.get(&key) {
            return Ok(Some(known));
        }
        meter::charge(1)?;
        let mut values = UsedId::EMPTY;
        if self.sets.ends(node) {
            let text = self.members.lock().texts.get(&before).cloned();
            let Some(text) = text else { return Ok(None) };
            meter::charge(text.len() / 16)?;
            for value in values_of(&text, path) {
                if !matches!(value.first(), Some(b'{' | b'[')) {
                    values = self.sets.with(values, &key_of(set, value)?)?;
                }
            }
        } else {
            for &(nibble, child) in self.sets.children(node) {
                let key = (child, before_child(before, depth, nibble), depth + 1, path_id);
                let Some(below) = self.values_below(set, key, path)? else { return Ok(None) };
                values = self.sets.sum(values, below)?;
            }
        }
        self.members.lock().values.insert(key, values);
        Ok(Some(values))
    }
}

/// The digits of an id before a child: the first nibble is their number.
fn before_child(before: u32, depth: u8, nibble: u8) -> u32 {
    if depth == 0 {
        0
    } else {
        before << 4 | u32::from(nibble)
    }
}

/// The values, or the names, at a place in a container.
fn values_of<'t>(container: &'t [u8], path: &[Step]) -> Vec<&'t [u8]> {
    let mut text = container;
    for step in path {
        if !matches!(text.first(), Some(b'{' | b'[')) {
            return Vec::new();
        }
        let (members, _) = read_members(text);
        if let Step::Of(count) = step {
            if members.len() != *count {
                return Vec::new();
            }
            continue;
        }
        let found = members.iter().find(|member| match (step, &member.name) {
            (Step::Name(sought), Some(name)) => text[name.clone()] == **sought,
            (Step::Item(sought), None) => member.place == *sought,
            _ => false,
        });
        match (step, found) {
            (Step::Names, _) => {
                let names = members.iter().filter_map(|member| member.name.clone());
                return names.map(|name| &text[name]).collect();
            }
            (_, Some(member)) => text = &text[member.value.clone()],
            _ => return Vec::new(),
        }
    }
    vec![text]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(steps: &[Step]) -> String {
        let step = |step: &Step| match step {
            Step::Name(name) => String::from_utf8_lossy(name).into_owned(),
            Step::Item(place) => place.to_string(),
            Step::Names => "*".to_owned(),
            Step::Of(count) => format!("#{count}"),
        };
        steps.iter().map(step).collect::<Vec<_>>().join("/")
    }

    #[test]
    fn the_place_where_a_container_is_written() {
        for (text, expected) in [
            (r#"{"a": 12"#, Some((r#""a""#, "12"))),
            (r#"{"a": "#, Some((r#""a""#, ""))),
            (r#"{"a""#, None),
            (r#"{"a":1,"b" :"x,"#, Some((r#""b""#, r#""x,"#))),
            (r#"{"a":1"#, Some((r#""a""#, "1"))),
            (r#"{"a":1 "#, None),
            (r#"{"a":"x""#, None),
            (r#"{"a":1,"#, Some(("*", ""))),
            (r#"{"a":1, "b"#, Some(("*", r#""b"#))),
            ("{", Some(("*", ""))),
            ("[", Some(("0", ""))),
            ("[true, ", Some(("1", ""))),
            ("[true", Some(("0", "true"))),
            (r#"[[], {"a": [0, "x"#, Some((r#"1/"a"/1"#, r#""x"#))),
            (r#"[[], {"a": [0, {"#, Some((r#"1/"a"/1/*"#, ""))),
            (r#"[[], {"a": [0, {}"#, None),
            (r#"{"a":{"b":1}"#, None),
            (r#"{"a":{"b":1},"#, Some(("*", ""))),
            (r#"{"a":{"b":"x"}}"#, None),
            ("[[1]]", None),
        ] {
            let found = open_place(text.as_bytes());
            let found = found.map(|open| (shown(&open.path), text[open.start..].to_owned()));
            let expected = expected.map(|(path, rest)| (path.to_owned(), rest.to_owned()));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn the_values_at_a_place() {
        let text = br#"{"a": [1, {"b": "x"}], "c":null}"#;
        let name = |name: &str| Step::Name(format!("\"{name}\"").as_bytes().into());
        for (path, expected) in [
            (vec![name("c")], vec!["null"]),
            (vec![name("a"), Step::Item(0)], vec!["1"]),
            (vec![name("a"), Step::Item(1), name("b")], vec![r#""x""#]),
            (vec![name("a"), Step::Item(1), Step::Names], vec![r#""b""#]),
            (vec![name("a"), name("b")], vec![]),
            (vec![name("c"), name("b")], vec![]),
            (vec![name("a"), Step::Item(2)], vec![]),
            (vec![Step::Names], vec![r#""a""#, r#""c""#]),
        ] {
            let found = values_of(text, &path);
            assert_eq!(found, expected.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
        }
    }
}
