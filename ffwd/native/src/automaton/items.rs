//! What the next item of an array must satisfy so that the array can still be completed.

use super::error::EngineError;
use crate::error::LimitExceeded;
use crate::json_schema::{ArraySpec, Contains, SchemaId, SchemaSet};
use crate::meter;

/// How many `contains` may count at once in one array.
const MAX_COUNTING: usize = 8;

/// How many items that `contains` still needs, and that must differ, are looked at together.
const MAX_LOOKED_AHEAD: u64 = 64;

/// What equals none of the values that came.
pub fn differs(set: &SchemaSet, came: &[SchemaId]) -> Result<SchemaId, EngineError> {
    // The conjunction is kept in order, by values that take long to compare.
    meter::charge(1 + 56 * came.len())?;
    let mut others = Vec::with_capacity(came.len());
    for &equal in came {
        others.push(set.negation(equal)?);
    }
    Ok(set.conjunction(&others)?)
}

/// Whether it matters if the item at a place satisfies a `contains` that has counted so many.
pub fn counts(contains: &Contains, count: u64, place: u64) -> bool {
    contains.from <= place && (count < contains.min || contains.max.is_some())
}

/// Whether an array can be completed, of which `rest` is left after the items that came.
pub fn is_satisfiable(
    set: &SchemaSet,
    rest: &ArraySpec,
    came: &[SchemaId],
) -> Result<bool, EngineError> {
    if rest.repeats && !came.is_empty() {
        let mut repeating = ArraySpec { repeats: false, ..rest.clone() };
        let schema = set.negation(differs(set, came)?)?;
        repeating.contains.push(Contains { schema, from: 0, min: 1, max: None });
        if set.array_is_satisfiable(&repeating)? {
            return Ok(true);
        }
    }
    Ok(set.array_is_satisfiable(rest)?)
}

/// What may be found out about an item: a schema, and what the rest of the array is if it holds.
enum Test {
    /// The `contains` at this place counts it.
    Contains(usize),
    /// It equals an earlier item.
    Repeats,
}

/// The next item of an array.
struct NextItem<'a> {
    set: &'a SchemaSet,
    rest: &'a ArraySpec,
    came: &'a [SchemaId],
    /// What it must satisfy in any case.
    base: SchemaId,
    tests: Vec<(Test, SchemaId)>,
}

/// The schemas of which the next item must satisfy one, so that what is left of the array after it
/// can be completed. The schemas of `rest` are without the items that came, if all must differ.
pub fn demands(
    set: &SchemaSet,
    rest: &ArraySpec,
    came: &[SchemaId],
) -> Result<Vec<SchemaId>, EngineError> {
    let mut base = rest.prefix.first().copied().or(rest.items).unwrap_or(SchemaId::NEVER);
    if rest.unique {
        base = set.next_distinct_item(&ArraySpec { contains: Vec::new(), ..rest.clone() })?;
    }
    let mut tests = Vec::new();
    for (place, contains) in rest.contains.iter().enumerate() {
        if counts(contains, 0, 0) {
            tests.push((Test::Contains(place), contains.schema));
        }
    }
    if rest.repeats && !came.is_empty() {
        tests.push((Test::Repeats, set.negation(differs(set, came)?)?));
    }
    if tests.len() > MAX_COUNTING {
        let what = "conditions on the number of items that satisfy a schema, of one array";
        return Err(LimitExceeded::new(what, MAX_COUNTING).into());
    }
    let item = NextItem { set, rest, came, base, tests };
    let mut demands = item.cubes()?;
    if rest.repeats {
        item.add_pairs(&mut demands)?;
    }
    let mut possible = Vec::with_capacity(demands.len());
    for demand in demands {
        if !possible.contains(&demand) && set.is_satisfiable(demand)? {
            possible.push(demand);
        }
    }
    Ok(possible)
}

impl NextItem<'_> {
    /// What is left after the item, if exactly the tests of `holding` hold.
    fn after(&self, holding: u32) -> Option<ArraySpec> {
        let mut after = self.rest.clone();
        if !after.prefix.is_empty() {
            after.prefix.remove(0);
        }
        after.min_items = after.min_items.saturating_sub(1);
        if let Some(max) = &mut after.max_items {
            *max = max.checked_sub(1)?;
        }
        for contains in &mut after.contains {
            contains.from = contains.from.saturating_sub(1);
        }
        for (bit, (test, _)) in self.tests.iter().enumerate() {
            if holding >> bit & 1 == 0 {
                continue;
            }
            match test {
                Test::Contains(place) => {
                    let contains = &mut after.contains[*place];
                    contains.min = contains.min.saturating_sub(1);
                    if let Some(max) = &mut contains.max {
                        *max = max.checked_sub(1)?;
                    }
                }
                Test::Repeats => after.repeats = false,
            }
        }
        Some(after)
    }

    fn leads_on(&self, holding: u32) -> Result<bool, EngineError> {
        match self.after(holding) {
            Some(after) => is_satisfiable(self.set, &after, self.came),
            None => Ok(false),
        }
    }

    /// The item with some tests decided: those of `decided`, as `holding` says.
    fn demand(&self, decided: u32, holding: u32) -> Result<SchemaId, EngineError> {
        let mut parts = vec![self.base];
        for (bit, &(_, schema)) in self.tests.iter().enumerate() {
            if decided >> bit & 1 == 1 {
                let holds = holding >> bit & 1 == 1;
                parts.push(if holds { schema } else { self.set.negation(schema)? });
            }
        }
        Ok(self.set.conjunction(&parts)?)
    }

    /// The outcomes of the tests that lead on, with as few tests decided as that allows.
    fn cubes(&self) -> Result<Vec<SchemaId>, EngineError> {
        let all = (1u32 << self.tests.len()) - 1;
        if self.rest.unique && self.rest.prefix.len() <= 1 && !self.tests.is_empty() {
            return self.distinct(all);
        }
        let mut good = Vec::with_capacity(all as usize + 1);
        for holding in 0..=all {
            good.push(self.leads_on(holding)?);
        }
        let is_good = |decided: u32, holding: u32| {
            (0..=all).all(|other| other & decided != holding & decided || good[other as usize])
        };
        let mut covered = vec![false; good.len()];
        let mut demands = Vec::new();
        for holding in 0..=all {
            if !good[holding as usize] || covered[holding as usize] {
                continue;
            }
            let mut decided = all;
            for bit in 0..self.tests.len() {
                if is_good(decided & !(1 << bit), holding) {
                    decided &= !(1 << bit);
                }
            }
            for other in 0..=all {
                if other & decided == holding & decided {
                    covered[other as usize] = true;
                }
            }
            demands.push(self.demand(decided, holding)?);
        }
        Ok(demands)
    }

    /// The outcomes of the tests that lead on, where all items must differ: the item leaves as many
    /// values as the `contains` that still count need.
    fn distinct(&self, all: u32) -> Result<Vec<SchemaId>, EngineError> {
        let mut demands = Vec::new();
        for holding in 0..=all {
            let Some(after) = self.after(holding) else { continue };
            if !is_satisfiable(self.set, &after, self.came)? {
                continue;
            }
            let own = self.demand(all, holding)?;
            let mut parts = vec![own];
            for contains in after.contains.iter().filter(|contains| contains.min > 0) {
                let Some(items) = after.items else { continue };
                let counted = self.set.conjunction(&[items, contains.schema])?;
                let mut prefix = vec![own];
                prefix.resize(1 + contains.min.min(MAX_LOOKED_AHEAD) as usize, counted);
                let length = prefix.len() as u64;
                parts.push(self.set.next_distinct_item(&ArraySpec {
                    prefix,
                    items: None,
                    min_items: length,
                    max_items: Some(length),
                    contains: Vec::new(),
                    unique: true,
                    repeats: false,
                })?);
            }
            demands.push(self.set.conjunction(&parts)?);
        }
        Ok(demands)
    }

    /// An item that leads on only because a later one can equal it.
    fn add_pairs(&self, demands: &mut Vec<SchemaId>) -> Result<(), EngineError> {
        let all = (1u32 << self.tests.len()) - 1;
        for holding in 0..=all {
            let Some(after) = self.after(holding) else { continue };
            if !after.repeats || is_satisfiable(self.set, &after, self.came)? {
                continue;
            }
            let own = self.demand(all, holding)?;
            for place in 0..=after.prefix.len() {
                let Some(later) = after.prefix.get(place).copied().or(after.items) else { break };
                // The later item counts for the same `contains` as this one.
                let both = self.set.conjunction(&[own, later])?;
                let mut long = ArraySpec { repeats: false, ..after.clone() };
                long.min_items = long.min_items.max(place as u64 + 1);
                match long.prefix.get_mut(place) {
                    Some(item) => *item = both,
                    None => long.prefix.push(both),
                }
                if self.set.array_is_satisfiable(&long)? {
                    demands.push(both);
                }
            }
        }
        Ok(())
    }
}

/// The last value in a text of JSON that ends with it: the text begins with a value that contains
/// it, or with the value itself.
pub fn last_value(text: &[u8]) -> &[u8] {
    let mut open: Vec<usize> = Vec::new();
    let mut last = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                while let Some(&byte) = text.get(at) {
                    at += if byte == b'\\' { 2 } else { 1 };
                    if byte == b'"' {
                        break;
                    }
                }
                last = start;
            }
            b'[' | b'{' => open.push(start),
            b']' | b'}' => last = open.pop().unwrap_or(0),
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => {
                let rest = &text[at..];
                let is_end = |byte: &u8| b",:]} \t\n\r".contains(byte);
                at += rest.iter().position(is_end).unwrap_or(rest.len());
                last = start;
            }
        }
    }
    &text[last..]
}

#[cfg(test)]
mod tests {
    use super::last_value;

    #[test]
    fn the_last_value_of_a_text_that_ends_with_one() {
        for (text, last) in [
            ("12", "12"),
            (r#""a\",[""#, r#""a\",[""#),
            ("[1, [2,\n 30", "30"),
            (r#"{"a": {"b": [1, 2]}"#, r#"{"b": [1, 2]}"#),
            (r#"[{"a":[]}, {"b" :null"#, "null"),
            (r#"{"a":"x\\"}"#, r#"{"a":"x\\"}"#),
            ("[[],{}", "{}"),
        ] {
            assert_eq!(last_value(text.as_bytes()), last.as_bytes(), "{text}");
        }
    }
}
