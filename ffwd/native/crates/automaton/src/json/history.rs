//! The earlier items of an array whose items must differ, as one persistent set.
//!
//! The set lies beside the schema: what an item is asked is the same for all of them, so items share
//! lexemes, frames and, with [`crate::json::rivals`], masks. It is a trie ([`UsedKeys`]), so one item more
//! copies a path. It holds scalars as they are written, numbers as plain decimals, containers by the
//! schema of what equals them, and for each part of a container which items have it
//! ([`crate::json::agreement`]).

use std::ops::Range;

use parking_lot::Mutex;

use crate::error::Result;
use crate::json::members::KnownMembers;
use crate::json::used_keys::{UsedId, UsedKeys};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_json_schema::{SchemaError, SchemaId, SchemaSet};
use ffwd_regular::regex::Decimal;

/// The earlier items are unknown: masks are computed for all possible ones at once.
pub const ANY_HISTORY: UsedId = UsedId(u32::MAX);

/// With what the entries begin that say which containers have a member.
pub(super) const MEMBER: u8 = b'.';

#[derive(Debug)]
pub struct Histories {
    pub(crate) sets: UsedKeys,
    pub(crate) members: Mutex<KnownMembers>,
}

impl Histories {
    pub fn new() -> Result<Self, LimitExceeded> {
        Ok(Self { sets: UsedKeys::new()?, members: Mutex::default() })
    }

    /// About how many bytes of memory the sets hold.
    pub fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes() + self.members.lock().memory_bytes()
    }

    /// The set with one more item; `None` if it contains the item.
    pub(crate) fn with(
        &self,
        set: &SchemaSet,
        history: UsedId,
        item: &[u8],
    ) -> Result<Option<UsedId>> {
        let key = key_of(set, item)?;
        if self.find(history, &key).is_some_and(|node| self.sets.ends(node)) {
            return Ok(None);
        }
        let mut next = self.sets.with(history, &key)?;
        if let Some(id) = container_of(&key) {
            self.members.lock().keep(id.0, item);
            for mut entry in self.entries_of(set, item)? {
                entry.extend(nibbles(id.0));
                next = self.sets.with(next, &entry)?;
            }
        }
        Ok(Some(next))
    }

    /// Whether an item is in the set.
    pub(crate) fn has(&self, set: &SchemaSet, history: UsedId, item: &[u8]) -> Result<bool> {
        let key = key_of(set, item)?;
        Ok(self.find(history, &key).is_some_and(|node| self.sets.ends(node)))
    }

    /// Whether none of some strings is in the set, and no item begins with the last one, which has
    /// not ended. May return `false` if that is hard to decide.
    pub(crate) fn lack(&self, history: UsedId, ended: &[&[u8]], begun: &[u8]) -> bool {
        let is_used = |item: &&[u8]| self.find(history, item).is_some_and(|at| self.sets.ends(at));
        let mut texts = ended.iter().copied().chain([begun]);
        !texts.any(|text| text.contains(&b'\\'))
            && !ended.iter().any(is_used)
            // A quote begins one of many strings.
            && (begun.len() <= 1 || self.find(history, begun).is_none())
    }

    /// How many items are in the set.
    pub(crate) fn len(&self, history: UsedId) -> u32 {
        let members = self.sets.child(history, MEMBER).map_or(0, |node| self.sets.count(node));
        self.sets.count(history) - members
    }

    /// The items of the set, as schemas of what equals them, sorted.
    pub(crate) fn items(&self, set: &SchemaSet, history: UsedId) -> Result<Vec<SchemaId>> {
        let mut items = Vec::new();
        let mut pending: Vec<(UsedId, Vec<u8>)> = vec![(history, Vec::new())];
        while let Some((node, key)) = pending.pop() {
            meter::charge(4)?;
            if self.sets.ends(node) {
                items.push(match container_of(&key) {
                    Some(id) => id,
                    None => set.equal_to(&String::from_utf8_lossy(&key))?,
                });
            }
            for &(byte, child) in self.sets.children(node) {
                if !key.is_empty() || byte != MEMBER {
                    pending.push((child, key.iter().copied().chain([byte]).collect()));
                }
            }
        }
        items.sort_unstable();
        Ok(items)
    }

    /// Returns the values that start with some bytes.
    pub(crate) fn find(&self, from: UsedId, bytes: &[u8]) -> Option<UsedId> {
        bytes.iter().try_fold(from, |node, &byte| self.sets.child(node, byte))
    }
}

/// Four bits at a time, so that few copies of nodes are wide: how many nibbles the id has, and these.
pub(super) fn nibbles(id: u32) -> impl Iterator<Item = u8> {
    let count = (u32::BITS - id.leading_zeros()).div_ceil(4);
    let digits = (0..count).rev().map(move |place| (id >> (4 * place) & 0xF) as u8);
    [count as u8].into_iter().chain(digits)
}

/// Whether a text is a number, or its beginning, with an exponent.
pub(crate) fn has_exponent(item: &[u8]) -> bool {
    matches!(item.first(), Some(b'-' | b'0'..=b'9')) && item.iter().any(|byte| b"eE".contains(byte))
}

/// Whether it is the value that passes a limit, and not the call.
pub(super) fn is_limit(error: &SchemaError) -> bool {
    error.exceeded().is_some_and(|exceeded| !exceeded.is_interruption())
}

/// The entry of an item.
pub(super) fn key_of(set: &SchemaSet, item: &[u8]) -> Result<Vec<u8>, SchemaError> {
    match item.first() {
        Some(&kind @ (b'{' | b'[')) => {
            let id = set.equal_to(&String::from_utf8_lossy(item))?;
            Ok([kind].into_iter().chain(nibbles(id.0)).collect())
        }
        Some(b'-' | b'0'..=b'9') => {
            let text = String::from_utf8_lossy(item);
            match Decimal::parse(&text) {
                Ok(number) => Ok(plain(&number)),
                // The error says what is wrong with it.
                Err(_) => set.equal_to(&text).map(|_| item.to_vec()),
            }
        }
        _ => Ok(item.to_vec()),
    }
}

fn container_of(key: &[u8]) -> Option<SchemaId> {
    let [b'{' | b'[', _, digits @ ..] = key else { return None };
    Some(SchemaId(digits.iter().fold(0, |id, &digit| id << 4 | u32::from(digit))))
}

/// A number without an exponent, and without zeros at the end of its fraction.
pub(crate) fn plain(number: &Decimal) -> Vec<u8> {
    if number.is_zero() {
        return b"0".to_vec();
    }
    let mut text = if number.is_negative() { b"-".to_vec() } else { Vec::new() };
    let (digits, exponent) = (number.digits().as_bytes(), number.exponent());
    if exponent >= 0 {
        text.extend_from_slice(digits);
        text.extend((0..exponent).map(|_| b'0'));
        return text;
    }
    let places = usize::try_from(-exponent).unwrap_or(usize::MAX);
    let whole = digits.len().saturating_sub(places);
    text.extend_from_slice(if whole == 0 { b"0" } else { &digits[..whole] });
    text.push(b'.');
    text.extend((digits.len()..places).map(|_| b'0'));
    text.extend_from_slice(&digits[whole..]);
    text
}

/// A member or an item of a container.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// With its quotes; `None` in an array.
    pub name: Option<Range<usize>>,
    pub place: usize,
    pub value: Range<usize>,
}

/// The complete members of a container, which itself may be incomplete.
pub(super) fn members(text: &[u8]) -> Vec<Member> {
    read_members(text).0
}

/// The complete members, and the one whose value is incomplete.
pub(super) fn read_members(text: &[u8]) -> (Vec<Member>, Option<Member>) {
    let is_object = text.first() == Some(&b'{');
    let skip = |mut at: usize, skipped: &[u8]| {
        while text.get(at).is_some_and(|byte| skipped.contains(byte)) {
            at += 1;
        }
        at
    };
    let mut found = Vec::new();
    let mut at = 1;
    loop {
        at = skip(at, b" \t\n\r,");
        let mut name = None;
        if is_object {
            let Some(end) = value_end(text, at) else { return (found, None) };
            name = Some(at..end);
            at = skip(end, b" \t\n\r:");
        }
        let Some(end) = value_end(text, at) else {
            let value = at..text.len();
            let has_begun = name.is_some() || at < text.len();
            let open = has_begun.then_some(Member { name, place: found.len(), value });
            return (found, open);
        };
        found.push(Member { name, place: found.len(), value: at..end });
        at = end;
    }
}

/// Returns the end of the value that starts somewhere in a text, if it ends.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => {
            let (mut depth, mut at) = (0, at);
            loop {
                match text.get(at)? {
                    b'"' => {
                        at = string_end(text, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        b'}' | b']' => None,
        _ => {
            let is_end = |byte: &u8| b",:]} \t\n\r".contains(byte);
            text[at..].iter().position(is_end).map(|length| at + length)
        }
    }
}

pub(super) fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the start of the current value within this many open containers.
pub(crate) fn open_value(text: &[u8], depth: usize) -> usize {
    if depth == 0 {
        return 0;
    }
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => match string_end(text, at - 1) {
                Some(end) => at = end,
                None => break,
            },
            b'{' | b'[' => open.push(at),
            b'}' | b']' => drop(open.pop()),
            b',' | b':' => {
                if let Some(last) = open.last_mut() {
                    *last = at;
                }
            }
            _ => {}
        }
    }
    let begin = open.get(depth - 1).copied().unwrap_or(text.len());
    let blanks = text[begin..].iter().take_while(|byte| b" \t\n\r".contains(byte)).count();
    begin + blanks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_that_have_ended() {
        let shown = |text: &str| -> Vec<String> {
            let bytes = text.as_bytes();
            let of = |member: Member| {
                let name = member.name.map_or(member.place.to_string(), |n| text[n].to_owned());
                format!("{name}={}", &text[member.value])
            };
            members(bytes).into_iter().map(of).collect()
        };
        assert_eq!(
            shown(r#"{"a": [1, {}], "b":"x\"", "c": 12"#),
            [r#""a"=[1, {}]"#, r#""b"="x\"""#]
        );
        assert_eq!(shown(r#"[ 1 ,[2,[]], "a"#), ["0=1", "1=[2,[]]"]);
        assert_eq!(shown(r#"{"a":1}"#), [r#""a"=1"#]);
        assert!(shown("{").is_empty());
        assert!(shown("[]").is_empty());
    }

    #[test]
    fn the_value_that_is_being_written() {
        for (text, depth, rest) in [
            (r#"{"a": [1, [2, 3"#, 0, r#"{"a": [1, [2, 3"#),
            (r#"{"a": [1, [2, 3"#, 1, "[1, [2, 3"),
            (r#"{"a": [1, [2, 3"#, 2, "[2, 3"),
            (r#"{"a": [1, [2, 3"#, 3, "3"),
            (r#"[[1], "a,["#, 1, r#""a,["#),
        ] {
            assert_eq!(&text[open_value(text.as_bytes(), depth)..], rest, "{text} {depth}");
        }
    }

    #[test]
    fn numbers_are_plain() {
        for (text, expected) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("12", "12"),
            ("1.20e2", "120"),
            ("-1.5", "-1.5"),
            ("12e-3", "0.012"),
            ("1234e-2", "12.34"),
        ] {
            let number = Decimal::parse(text).unwrap();
            assert_eq!(String::from_utf8(plain(&number)).unwrap(), expected);
        }
    }
}
