//! The demands on the next item of an array, so that the array can be completed.

use crate::error::Result;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_json_schema::{ArraySpec, Contains, SchemaId, SchemaSet};
pub use ffwd_regular::expr::json_text::last_value;

/// How many `contains` may count at once in one array.
const MAX_COUNTING: usize = 8;

/// Returns the schema of values that equal none of the earlier ones.
pub fn differs(set: &SchemaSet, came: &[SchemaId]) -> Result<SchemaId> {
    // The conjunction keeps its operands sorted by values, which are expensive to compare.
    meter::charge(1 + 56 * came.len())?;
    let mut others = Vec::with_capacity(came.len());
    for &equal in came {
        others.push(set.negation(equal)?);
    }
    Ok(set.conjunction(&others)?)
}

/// Returns whether an item affects a `contains` with this count at this position.
pub fn counts(contains: &Contains, count: u64, place: u64) -> bool {
    contains.from <= place && (count < contains.min || contains.max.is_some())
}

/// One way for the next item to leave an array that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The schema that the item must satisfy.
    pub schema: SchemaId,
    /// Sorted schemas of the values that it must not equal: the earlier items, if all must differ,
    /// and the values that later items need.
    pub avoided: Vec<SchemaId>,
}

impl Demand {
    /// All of it as one schema.
    pub fn whole(&self, set: &SchemaSet) -> Result<SchemaId> {
        if self.avoided.is_empty() {
            return Ok(self.schema);
        }
        Ok(set.conjunction(&[self.schema, differs(set, &self.avoided)?])?)
    }
}

/// Whether an array with this `rest` can be completed after the earlier items.
pub fn is_satisfiable(set: &SchemaSet, rest: &ArraySpec, came: &[SchemaId]) -> Result<bool> {
    if rest.repeats && !came.is_empty() {
        let mut repeating = ArraySpec { repeats: false, ..rest.clone() };
        let schema = set.negation(differs(set, came)?)?;
        repeating.contains.push(Contains { schema, from: 0, min: 1, max: None });
        if set.array_is_satisfiable(&repeating)? {
            return Ok(true);
        }
    }
    match rest.unique {
        true => Ok(set.array_is_satisfiable_without(rest, came)?),
        false => Ok(set.array_is_satisfiable(rest)?),
    }
}

/// A test of an item: a schema, and the rest of the array if it holds.
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
    /// The unconditional demand.
    base: SchemaId,
    tests: Vec<(Test, SchemaId)>,
}

/// The demands on the next item. It must meet one of them, so that the rest of the array can be
/// completed.
pub fn demands(set: &SchemaSet, rest: &ArraySpec, came: &[SchemaId]) -> Result<Vec<Demand>> {
    let base = rest.prefix.first().copied().or(rest.items).unwrap_or(SchemaId::NEVER);
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
        let what = "contains_conditions";
        return Err(LimitExceeded::new(what, MAX_COUNTING).into());
    }
    let item = NextItem { set, rest, came, base, tests };
    let mut demands = item.cubes()?;
    if rest.repeats {
        item.add_pairs(&mut demands)?;
    }
    let mut possible = Vec::with_capacity(demands.len());
    for demand in demands {
        if !possible.contains(&demand) && set.has_other_value(demand.schema, &demand.avoided)? {
            possible.push(demand);
        }
    }
    Ok(possible)
}

impl NextItem<'_> {
    /// Returns the rest after the item, if exactly the tests of `holding` hold.
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

    /// The values beside the earlier items that the item must avoid if exactly the tests of
    /// `holding` hold for it. `None` if the array cannot be completed then.
    fn leads_on(&self, holding: u32) -> Result<Option<Vec<SchemaId>>> {
        let Some(after) = self.after(holding) else { return Ok(None) };
        if self.rest.unique {
            let outcomes = self.tests.iter().enumerate();
            let outcomes = outcomes.map(|(bit, &(_, schema))| (schema, holding >> bit & 1 == 1));
            let tests: Vec<(SchemaId, bool)> =
                std::iter::once((self.base, true)).chain(outcomes).collect();
            return Ok(self.set.essential_values(&after, self.came, &tests)?);
        }
        Ok(is_satisfiable(self.set, &after, self.came)?.then(Vec::new))
    }

    /// The item with some tests decided: those of `decided`, as `holding` says.
    fn demand(&self, decided: u32, holding: u32) -> Result<SchemaId> {
        let mut parts = vec![self.base];
        for (bit, &(_, schema)) in self.tests.iter().enumerate() {
            if decided >> bit & 1 == 1 {
                let holds = holding >> bit & 1 == 1;
                parts.push(if holds { schema } else { self.set.negation(schema)? });
            }
        }
        Ok(self.set.conjunction(&parts)?)
    }

    /// The outcomes of the tests from which the array can be completed, with as few tests decided
    /// as possible.
    fn cubes(&self) -> Result<Vec<Demand>> {
        let all = (1u32 << self.tests.len()) - 1;
        let mut good = Vec::with_capacity(all as usize + 1);
        for holding in 0..=all {
            good.push(self.leads_on(holding)?);
        }
        let is_good = |decided: u32, holding: u32| {
            (0..=all)
                .all(|other| other & decided != holding & decided || good[other as usize].is_some())
        };
        let mut covered = vec![false; good.len()];
        let mut demands = Vec::new();
        for holding in 0..=all {
            if good[holding as usize].is_none() || covered[holding as usize] {
                continue;
            }
            let mut decided = all;
            for bit in 0..self.tests.len() {
                if is_good(decided & !(1 << bit), holding) {
                    decided &= !(1 << bit);
                }
            }
            let mut avoided = if self.rest.unique { self.came.to_vec() } else { Vec::new() };
            for other in 0..=all {
                if other & decided == holding & decided {
                    covered[other as usize] = true;
                    // Each outcome names values for which the tests come out so.
                    avoided.extend(good[other as usize].iter().flatten());
                }
            }
            avoided.sort_unstable();
            avoided.dedup();
            demands.push(Demand { schema: self.demand(decided, holding)?, avoided });
        }
        Ok(demands)
    }

    /// An item after which the array can be completed only because a later one can equal it.
    fn add_pairs(&self, demands: &mut Vec<Demand>) -> Result<()> {
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
                    demands.push(Demand { schema: both, avoided: Vec::new() });
                }
            }
        }
        Ok(())
    }
}
