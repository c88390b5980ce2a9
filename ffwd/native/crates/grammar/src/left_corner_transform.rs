//! The left-corner transform of one set of parts that can begin with each other.
//!
//! Within a set `S` each production reads `k → seed`, which starts outside of `S`, or `k → j α` with
//! `j` in `S`. So a text of `i` is a seed of some `k`, followed by the `α`s on a path from `k` up to
//! `i`. Parts with the same paths are merged, so the paths of `E → E "+" T | T` are a plain
//! repetition of `"+" T`.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::symbols::{Symbol, SymbolId};
use super::table::Table;
use ffwd_bounds::error::LimitExceeded;

/// The parts of one set, and the table of their symbols.
pub(super) trait Corners {
    /// A part of the grammar.
    type Part: Copy + Eq + Hash;
    type Table: Table;

    fn table(&mut self) -> &mut Self::Table;

    /// Counts a step.
    fn step(&mut self) -> Result<(), LimitExceeded>;

    /// Whether a part belongs to the set.
    fn is_member(&self, part: Self::Part) -> bool;

    /// The productions of a part without the empty text: the first part, and what follows it.
    fn productions(
        &mut self,
        part: Self::Part,
    ) -> Result<Vec<(Self::Part, SymbolId)>, LimitExceeded>;

    /// The symbol of a part outside of the set.
    fn symbol(&mut self, part: Self::Part) -> Result<SymbolId, LimitExceeded>;

    /// Makes a symbol whose meaning is given later: the empty text if `nullable`, or what begins
    /// with one of `firsts`.
    fn reserve(&mut self, firsts: &[SymbolId], nullable: bool) -> Result<SymbolId, LimitExceeded>;

    /// Gives a reserved symbol its meaning.
    fn resolve(&mut self, reserved: SymbolId, meaning: SymbolId);
}

/// A left-recursive use: what follows it, and the part that it leads to.
type Way<P> = (SymbolId, P);
/// The parts whose texts include those of a part, and the transitions from these.
type Climb<P> = (Vec<P>, Vec<Way<P>>);

/// Returns the symbol of a part that may start with itself, and the parts of the set that it can
/// start with. `nullable`: whether the empty text belongs to it.
pub(super) fn transformed<C: Corners>(
    corners: &mut C,
    target: C::Part,
    nullable: bool,
) -> Result<(SymbolId, Vec<C::Part>), LimitExceeded> {
    // From the target down.
    let mut members = vec![target];
    let mut seen: FxHashSet<C::Part> = members.iter().copied().collect();
    // The parts after a matched one, without and with a continuation.
    let mut up: FxHashMap<C::Part, Vec<C::Part>> = FxHashMap::default();
    let mut ways: FxHashMap<C::Part, Vec<Way<C::Part>>> = FxHashMap::default();
    let mut seeds: Vec<(SymbolId, C::Part)> = Vec::new();
    let mut next = 0;
    while let Some(&member) = members.get(next) {
        next += 1;
        for (first, rest) in corners.productions(member)? {
            corners.step()?;
            if corners.is_member(first) {
                if seen.insert(first) {
                    members.push(first);
                }
                if corners.table().is_nullable(rest) {
                    up.entry(first).or_default().push(member);
                }
                if rest != SymbolId::EMPTY {
                    let rest = corners.table().non_empty(rest)?;
                    ways.entry(first).or_default().push((rest, member));
                }
            } else {
                let symbol = corners.symbol(first)?;
                let symbol = corners.table().non_empty(symbol)?;
                let seed = corners.table().seq(symbol, rest)?;
                seeds.push((seed, member));
            }
        }
    }
    let states = closed(corners, &members, &up, &ways)?;
    let place: FxHashMap<C::Part, usize> =
        members.iter().enumerate().map(|(place, &member)| (member, place)).collect();
    let classes = classes(corners, &states, &place, target)?;
    let symbols = symbols_of(corners, &states, &place, &classes, target)?;
    let mut parts = Vec::with_capacity(seeds.len());
    for (seed, from) in seeds {
        let after = symbols[classes[place[&from]]];
        parts.push(corners.table().seq(seed, after)?);
    }
    Ok((corners.table().choice(parts, nullable)?, members))
}

/// For each member, the members that contain its texts, and the transitions from all of these.
fn closed<C: Corners>(
    corners: &mut C,
    members: &[C::Part],
    up: &FxHashMap<C::Part, Vec<C::Part>>,
    ways: &FxHashMap<C::Part, Vec<Way<C::Part>>>,
) -> Result<Vec<Climb<C::Part>>, LimitExceeded> {
    let mut states = Vec::with_capacity(members.len());
    for &member in members {
        let mut all = vec![member];
        let mut seen: FxHashSet<C::Part> = all.iter().copied().collect();
        let mut on: Vec<Way<C::Part>> = Vec::new();
        let mut next = 0;
        while let Some(&one) = all.get(next) {
            next += 1;
            for &outer in up.get(&one).into_iter().flatten() {
                corners.step()?;
                if seen.insert(outer) {
                    all.push(outer);
                }
            }
            for &way in ways.get(&one).into_iter().flatten() {
                corners.step()?;
                on.push(way);
            }
        }
        states.push((all, on));
    }
    Ok(states)
}

/// Members with the same paths to the target form one class.
fn classes<C: Corners>(
    corners: &mut C,
    states: &[Climb<C::Part>],
    place: &FxHashMap<C::Part, usize>,
    target: C::Part,
) -> Result<Vec<usize>, LimitExceeded> {
    let mut classes: Vec<usize> =
        states.iter().map(|(all, _)| usize::from(all.contains(&target))).collect();
    let mut count = 0;
    loop {
        let mut ids: FxHashMap<(usize, Vec<(SymbolId, usize)>), usize> = FxHashMap::default();
        let mut next = Vec::with_capacity(classes.len());
        for (state, (_, ways)) in states.iter().enumerate() {
            let mut on = Vec::with_capacity(ways.len());
            for (way, to) in ways {
                corners.step()?;
                on.push((*way, classes[place[to]]));
            }
            on.sort_unstable();
            on.dedup();
            let fresh = ids.len();
            next.push(*ids.entry((classes[state], on)).or_insert(fresh));
        }
        let found = ids.len();
        classes = next;
        if found == count {
            return Ok(classes);
        }
        count = found;
    }
}

/// Returns the continuations up to the target, by class.
fn symbols_of<C: Corners>(
    corners: &mut C,
    states: &[Climb<C::Part>],
    place: &FxHashMap<C::Part, usize>,
    classes: &[usize],
    target: C::Part,
) -> Result<Vec<SymbolId>, LimitExceeded> {
    let count = classes.iter().max().map_or(0, |max| max + 1);
    let mut member_of = vec![0; count];
    for (member, &class) in classes.iter().enumerate() {
        member_of[class] = member;
    }
    // Every class leads to the target: all members were found below it.
    let mut symbols = Vec::with_capacity(count);
    let mut reserved = Vec::with_capacity(count);
    for &member in &member_of {
        let (all, ways) = &states[member];
        let accepts = all.contains(&target);
        let itself = |to: &C::Part| classes[place[to]] == classes[member];
        let firsts: Vec<SymbolId> = ways.iter().map(|&(way, _)| way).collect();
        if accepts && ways.iter().all(|(_, to)| itself(to)) {
            let table = corners.table();
            let one = table.choice(firsts, false)?;
            let star = match table.get(one) {
                Symbol::Choice(none) if none.is_empty() => SymbolId::EMPTY,
                _ => table.star(one)?,
            };
            symbols.push(star);
            reserved.push(None);
        } else {
            let symbol = corners.reserve(&firsts, accepts)?;
            symbols.push(symbol);
            reserved.push(Some(symbol));
        }
    }
    for (class, symbol) in reserved.into_iter().enumerate() {
        let Some(symbol) = symbol else { continue };
        let (all, ways) = &states[member_of[class]];
        let mut on = Vec::with_capacity(ways.len());
        for (way, to) in ways {
            on.push(corners.table().seq(*way, symbols[classes[place[to]]])?);
        }
        let meaning = corners.table().choice(on, all.contains(&target))?;
        corners.resolve(symbol, meaning);
    }
    Ok(symbols)
}
