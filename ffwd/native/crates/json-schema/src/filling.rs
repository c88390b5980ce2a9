//! Arrays in which items depend on each other: which values their places can be filled with, where
//! all must differ and `contains` count.
//!
//! Which `contains` a value satisfies is its *label*. Values with different labels differ. So
//! whether all items can differ is decided label by label, with a flow from places to values.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::counting::{Collected, Count, Source, INFINITE};
use super::error::{LimitExceeded, Result};
use super::expand::Expander;
use super::matching::Flow;
use super::satisfy::{Context, Solver};
use super::values::{Constant, ValueId};
use super::{ArraySpec, Contains, SchemaId};

/// How many `contains` may count at once in one array.
pub const MAX_CONTAINS: usize = 8;

/// More values than one array can have items, by the size of the tries of earlier items.
const NEVER_ALL: u64 = 1 << 20;

/// How many ids of values are copied and hashed in the time of one step.
const IDS_PER_STEP: usize = 16;

/// Why there may be more arrays than were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    Nothing,
    /// So many values of some item were needed, and fewer are known.
    Values(u64),
    /// The steps up to the caller's reserve.
    Steps,
}

/// The values of a place with one label.
#[derive(Clone, Debug)]
enum LabelValues {
    Few(Vec<ValueId>),
    /// More than an array can need.
    Many(u64),
}

impl LabelValues {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Few(values) if values.is_empty())
    }
}

#[derive(Debug)]
struct Label {
    /// For each domain, its values with this label.
    kinds: Vec<LabelValues>,
    /// The values of domains that have few, grouped by the domains that contain them.
    classes: Vec<Vec<ValueId>>,
    /// For each domain that has few values, its classes.
    of_domain: Vec<Vec<usize>>,
}

/// How an array can be filled. A *domain* is the schema of some places.
#[derive(Debug)]
pub struct Filling {
    labels: Vec<Label>,
    /// For each label, the `contains` that count it.
    bits: Vec<u32>,
    /// The domains of the first places, up to the place from which all are alike.
    heads: Vec<usize>,
    /// The domain of the others, if there may be any.
    tail: Option<usize>,
    contains: Vec<Contains>,
    min_items: u64,
    max_items: Option<u64>,
    unique: bool,
    /// No array needs more items.
    longest: u64,
    /// The label and the class of a value.
    class_of: FxHashMap<ValueId, (usize, usize)>,
}

/// A partly filled array.
#[derive(Clone, Debug)]
pub struct Filled {
    place: u64,
    /// How many items each `contains` has counted.
    counts: SmallVec<[u64; 4]>,
    /// For each label, the number of unused values of each class.
    left: Vec<Vec<u64>>,
}

/// A choice of labels for the first places: the counts and, for each label, its number of places in
/// each domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Choice {
    counts: SmallVec<[u64; 4]>,
    taken: Vec<(usize, usize, u64)>,
}

/// For each label that is not chosen yet, how many of its items are still allowed.
struct Tail<'a> {
    bits: &'a [u32],
    most: &'a [u64],
    failed: FxHashSet<(usize, Vec<u64>, u64)>,
}

impl Filling {
    /// Makes the filling of an array beside earlier values that it must not contain.
    pub fn new(
        solver: &mut Solver,
        context: Context<'_>,
        source: &mut Source<'_>,
        spec: &ArraySpec,
        came: u64,
    ) -> Result<Self> {
        let counting = |contains: &&Contains| contains.min > 0 || contains.max.is_some();
        let contains: Vec<Contains> = spec.contains.iter().filter(counting).cloned().collect();
        if contains.len() > MAX_CONTAINS {
            let error = LimitExceeded { limit: "contains", maximum: MAX_CONTAINS as u64 };
            return Err(solver.exceeded(context, SchemaId::ANY, error));
        }
        let from = contains.iter().map(|contains| contains.from).max().unwrap_or(0);
        let all_heads = from.max(spec.prefix.len() as u64).min(spec.max_items.unwrap_or(u64::MAX));
        let mut domains: Vec<SchemaId> = Vec::new();
        let mut places: FxHashMap<SchemaId, usize> = FxHashMap::default();
        let mut domain = |schema: SchemaId| {
            *places.entry(schema).or_insert_with(|| {
                domains.push(schema);
                domains.len() - 1
            })
        };
        let mut heads = Vec::new();
        for place in 0..all_heads {
            let at = usize::try_from(place).ok().and_then(|at| spec.prefix.get(at));
            let Some(schema) = at.copied().or(spec.items) else { break };
            solver.expander.charge(1).map_err(|e| solver.exceeded(context, schema, e))?;
            heads.push(domain(schema));
        }
        let tail = spec.items.map(&mut domain);
        let least: u64 = contains.iter().fold(spec.min_items, |sum, c| sum.saturating_add(c.min));
        let longest = (heads.len() as u64).saturating_add(least).saturating_add(1);
        let longest = longest.min(spec.max_items.unwrap_or(u64::MAX));
        let mut filling = Self {
            labels: Vec::new(),
            bits: (0..1u32 << contains.len()).collect(),
            heads,
            tail,
            contains,
            min_items: spec.min_items,
            max_items: spec.max_items,
            unique: spec.unique,
            longest,
            class_of: FxHashMap::default(),
        };
        // Labels that count for many `contains` come first.
        filling.bits.sort_by_key(|bits| std::cmp::Reverse(bits.count_ones()));
        let needed = if spec.unique { longest.saturating_add(came) } else { 1 };
        for bits in filling.bits.clone() {
            let mut kinds = Vec::with_capacity(domains.len());
            for &domain in &domains {
                kinds.push(filling.kind(solver, context, source, domain, bits, needed)?);
            }
            filling.labels.push(Label { kinds, classes: Vec::new(), of_domain: Vec::new() });
        }
        if filling.unique {
            filling.classify(&mut solver.expander).map_err(|e| {
                let place = domains.first().copied().unwrap_or(SchemaId::ANY);
                solver.exceeded(context, place, e)
            })?;
        }
        Ok(filling)
    }

    /// The values of a schema with a label.
    fn kind(
        &self,
        solver: &mut Solver,
        context: Context<'_>,
        source: &mut Source<'_>,
        domain: SchemaId,
        bits: u32,
        needed: u64,
    ) -> Result<LabelValues> {
        let all = solver.look(context, source, domain, needed)?;
        if let Count::Few(values) = &all {
            let mut kept = Vec::new();
            'values: for &value in values.iter() {
                for (bit, contains) in self.contains.iter().enumerate() {
                    let holds = solver.holds(context, contains.schema, value)?;
                    if holds != (bits >> bit & 1 == 1) {
                        continue 'values;
                    }
                }
                kept.push(value);
            }
            return Ok(LabelValues::Few(kept));
        }
        let mut demands: SmallVec<[SchemaId; 8]> = SmallVec::from_slice(&[domain]);
        for (bit, contains) in self.contains.iter().enumerate() {
            if bits >> bit & 1 == 1 {
                demands.push(contains.schema);
            } else if self.unique || contains.max.is_some() {
                let other = solver.expander.interner.negation(contains.schema);
                demands.push(other.map_err(|e| solver.exceeded(context, domain, e))?);
            }
        }
        let schema = solver.expander.both(context.program, &demands);
        let schema = schema.map_err(|e| solver.exceeded(context, domain, e))?;
        Ok(match solver.look(context, source, schema, needed)? {
            Count::Few(values) => LabelValues::Few(values.to_vec()),
            Count::AtLeast(count) if count < needed => {
                source.is_short(needed);
                LabelValues::Few(Vec::new())
            }
            Count::AtLeast(count) => LabelValues::Many(count),
        })
    }

    fn classify(&mut self, expander: &mut Expander) -> Result<(), LimitExceeded> {
        for (at, label) in self.labels.iter_mut().enumerate() {
            let mut owners: FxHashMap<ValueId, SmallVec<[usize; 4]>> = FxHashMap::default();
            for (domain, kind) in label.kinds.iter().enumerate() {
                let LabelValues::Few(values) = kind else { continue };
                expander.charge(values.len())?;
                for &value in values {
                    owners.entry(value).or_default().push(domain);
                }
            }
            label.of_domain = vec![Vec::new(); label.kinds.len()];
            let mut classes: FxHashMap<SmallVec<[usize; 4]>, usize> = FxHashMap::default();
            let mut values: Vec<ValueId> = owners.keys().copied().collect();
            values.sort_unstable();
            for value in values {
                let Some(domains) = owners.remove(&value) else { continue };
                let class = *classes.entry(domains).or_insert_with_key(|domains| {
                    for &domain in domains {
                        label.of_domain[domain].push(label.classes.len());
                    }
                    label.classes.push(Vec::new());
                    label.classes.len() - 1
                });
                label.classes[class].push(value);
                self.class_of.insert(value, (at, class));
            }
        }
        Ok(())
    }

    /// The values that may be lacking after other items. `None` if they are too many to list but
    /// few enough to be all used.
    pub fn contested(&self) -> Option<Vec<ValueId>> {
        let mut all = Vec::new();
        for label in &self.labels {
            for kind in &label.kinds {
                match kind {
                    LabelValues::Few(values) => all.extend_from_slice(values),
                    LabelValues::Many(count) if *count < NEVER_ALL => return None,
                    LabelValues::Many(_) => {}
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// The state before the first item, given values that must not be repeated.
    pub fn begin(&self, came: &[ValueId]) -> Filled {
        let sizes = |label: &Label| label.classes.iter().map(|class| class.len() as u64).collect();
        let mut filled = Filled {
            place: 0,
            counts: SmallVec::from_elem(0, self.contains.len()),
            left: self.labels.iter().map(sizes).collect(),
        };
        for value in came {
            if let Some(&(label, class)) = self.class_of.get(value) {
                filled.left[label][class] -= 1;
            }
        }
        filled
    }

    fn domain(&self, place: u64) -> Option<usize> {
        let head = usize::try_from(place).ok().and_then(|at| self.heads.get(at));
        head.copied().or(self.tail).filter(|_| self.max_items.is_none_or(|max| place < max))
    }

    /// The counts after an item with a label at a place; `None` if they exceed their maxima.
    fn counted(&self, counts: &[u64], label: usize, place: u64) -> Option<SmallVec<[u64; 4]>> {
        let mut after = SmallVec::from_slice(counts);
        for (bit, contains) in self.contains.iter().enumerate() {
            if self.bits[label] >> bit & 1 == 1 && contains.from <= place {
                let count: &mut u64 = &mut after[bit];
                *count += 1;
                match contains.max {
                    Some(max) if *count > max => return None,
                    Some(_) => {}
                    None => *count = (*count).min(contains.min),
                }
            }
        }
        Some(after)
    }

    fn is_complete(&self, counts: &[u64]) -> bool {
        self.contains.iter().zip(counts).all(|(contains, &count)| count >= contains.min)
    }

    /// Whether the array can be completed, if `forced` names a place and a label with an item there
    /// of that label.
    pub fn can_be_filled(
        &self,
        expander: &mut Expander,
        filled: &Filled,
        forced: Option<(u64, usize)>,
    ) -> Result<bool, LimitExceeded> {
        let reach = forced.map_or(0, |(place, _)| place.saturating_add(1));
        let least = self.min_items.max(reach);
        if self.max_items.is_some_and(|max| max < least) {
            return Ok(false);
        }
        if filled.place >= least && self.is_complete(&filled.counts) {
            return Ok(true);
        }
        if self.contains.is_empty() {
            return Ok(self.flow(expander, filled, least)?.is_some());
        }
        let heads = (self.heads.len() as u64).max(reach);
        let start = Choice { counts: filled.counts.clone(), taken: Vec::new() };
        let mut choices: FxHashSet<Choice> = FxHashSet::from_iter([start]);
        for place in filled.place..heads {
            if place >= least && choices.iter().any(|choice| self.is_complete(&choice.counts)) {
                return Ok(true);
            }
            let Some(domain) = self.domain(place) else { return Ok(false) };
            let mut next: FxHashSet<Choice> = FxHashSet::default();
            for choice in choices {
                for label in 0..self.labels.len() {
                    expander.charge(1)?;
                    if forced.is_some_and(|(at, of)| at == place && of != label) {
                        continue;
                    }
                    let kind = &self.labels[label].kinds[domain];
                    if kind.is_empty() {
                        continue;
                    }
                    let Some(counts) = self.counted(&choice.counts, label, place) else { continue };
                    let mut taken = choice.taken.clone();
                    if self.unique && matches!(kind, LabelValues::Few(_)) {
                        match taken.binary_search_by_key(&(label, domain), |&(l, d, _)| (l, d)) {
                            Ok(at) => taken[at].2 += 1,
                            Err(at) => taken.insert(at, (label, domain, 1)),
                        }
                        if self.label_flow(expander, filled, label, &taken)?.is_none() {
                            continue;
                        }
                    }
                    next.insert(Choice { counts, taken });
                }
            }
            if next.is_empty() {
                return Ok(false);
            }
            choices = next;
        }
        let heads = heads.max(filled.place);
        for choice in &choices {
            if self.has_tail(expander, filled, choice, heads, least)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Values for the places of one label.
    fn label_flow<'f>(
        &'f self,
        expander: &mut Expander,
        filled: &Filled,
        label: usize,
        taken: &[(usize, usize, u64)],
    ) -> Result<Option<Flow<'f>>, LimitExceeded> {
        let mut flow = Flow::new(&self.labels[label].of_domain, &filled.left[label]);
        for &(_, domain, times) in taken.iter().filter(|&&(of, _, _)| of == label) {
            if flow.fill(domain, times) < times {
                return Ok(None);
            }
        }
        expander.charge(1 + flow.work)?;
        Ok(Some(flow))
    }

    /// Values for all places up to a length, where there is but one label.
    fn flow<'f>(
        &'f self,
        expander: &mut Expander,
        filled: &Filled,
        length: u64,
    ) -> Result<Option<Flow<'f>>, LimitExceeded> {
        let Some(label) = self.labels.first() else { return Ok(None) };
        let heads = (self.heads.len() as u64).min(length);
        let mut wanted: Vec<u64> = vec![0; label.kinds.len()];
        for place in filled.place..heads {
            let Some(domain) = self.domain(place) else { return Ok(None) };
            wanted[domain] += 1;
        }
        let others = length.saturating_sub(heads.max(filled.place));
        if others > 0 {
            let Some(tail) = self.tail else { return Ok(None) };
            wanted[tail] = wanted[tail].saturating_add(others);
        }
        expander.charge(1 + wanted.len() + (heads.saturating_sub(filled.place) as usize))?;
        let mut taken = Vec::new();
        for (domain, &times) in wanted.iter().enumerate().filter(|&(_, &times)| times > 0) {
            match &label.kinds[domain] {
                kind if kind.is_empty() => return Ok(None),
                LabelValues::Few(_) if self.unique => taken.push((0, domain, times)),
                _ => {}
            }
        }
        self.label_flow(expander, filled, 0, &taken)
    }

    /// Whether the places after the first ones can complete a choice.
    fn has_tail(
        &self,
        expander: &mut Expander,
        filled: &Filled,
        choice: &Choice,
        heads: u64,
        least: u64,
    ) -> Result<bool, LimitExceeded> {
        let total = least.saturating_sub(heads);
        if total == 0 && self.is_complete(&choice.counts) {
            return Ok(true);
        }
        let room = self.max_items.map_or(u64::MAX, |max| max.saturating_sub(heads));
        let Some(tail) = self.tail.filter(|_| room > 0) else { return Ok(false) };
        let mut most = Vec::with_capacity(self.labels.len());
        for (at, label) in self.labels.iter().enumerate() {
            most.push(match &label.kinds[tail] {
                kind if kind.is_empty() => 0,
                LabelValues::Few(values) if self.unique => {
                    let flow = self.label_flow(expander, filled, at, &choice.taken)?;
                    flow.map_or(0, |mut flow| flow.fill(tail, values.len() as u64))
                }
                _ => self.longest,
            });
        }
        let missing: Vec<u64> = self
            .contains
            .iter()
            .zip(&choice.counts)
            .map(|(contains, &count)| contains.min.saturating_sub(count))
            .collect();
        let rooms: Vec<u64> = self
            .contains
            .iter()
            .zip(&choice.counts)
            .map(|(contains, &count)| contains.max.map_or(u64::MAX, |max| max - count))
            .collect();
        let mut tail = Tail { bits: &self.bits, most: &most, failed: FxHashSet::default() };
        tail.choose(expander, 0, &missing, &rooms, total, room)
    }

    /// The values that the next item must avoid so that the array can be completed, without the
    /// earlier items. `None` if no item allows that.
    pub fn essential(
        &self,
        expander: &mut Expander,
        filled: &Filled,
        came: &[ValueId],
    ) -> Result<Option<Vec<ValueId>>, LimitExceeded> {
        if filled.place >= self.min_items && self.is_complete(&filled.counts) {
            return Ok(Some(Vec::new()));
        }
        let mut essential = Vec::new();
        if self.contains.is_empty() {
            let Some(mut flow) = self.flow(expander, filled, self.min_items)? else {
                return Ok(None);
            };
            let Some(label) = self.labels.first() else { return Ok(None) };
            for (at, class) in label.classes.iter().enumerate() {
                if filled.left[0][at] > 0 && !flow.can_spare(at) {
                    essential.extend_from_slice(class);
                }
            }
            expander.charge(1 + flow.work)?;
        } else {
            if !self.can_be_filled(expander, filled, None)? {
                return Ok(None);
            }
            for (at, label) in self.labels.iter().enumerate() {
                for (class, values) in label.classes.iter().enumerate() {
                    if filled.left[at][class] == 0 || filled.left[at][class] > self.longest {
                        continue;
                    }
                    let mut without = filled.clone();
                    without.left[at][class] -= 1;
                    if !self.can_be_filled(expander, &without, None)? {
                        essential.extend_from_slice(values);
                    }
                }
            }
        }
        essential.retain(|value| came.binary_search(value).is_err());
        Ok(Some(essential))
    }

    /// Adds the arrays to the found values, until fewer steps than `reserve` are left.
    pub fn collect(
        &self,
        expander: &mut Expander,
        found: &mut Collected,
        reserve: u64,
    ) -> Result<Lacking, LimitExceeded> {
        let start = self.begin(&[]);
        if !self.can_be_filled(expander, &start, None)? {
            return Ok(Lacking::Nothing);
        }
        // Each of many items may equal any other one but its neighbours.
        let mut short = 0;
        let mut some = false;
        for place in 0..=self.heads.len() as u64 {
            let Some(domain) = self.domain(place) else { break };
            for (at, label) in self.labels.iter().enumerate() {
                let LabelValues::Many(count) = label.kinds[domain] else { continue };
                if !self.can_be_filled(expander, &start, Some((place, at)))? {
                    continue;
                }
                some = true;
                let longest = self.longest.saturating_add(1);
                match count {
                    INFINITE => found.add_at_least(INFINITE),
                    _ if !self.unique => found.add_at_least(count),
                    _ if count > longest => found.add_at_least(count - longest),
                    _ => short = short.max(longest.saturating_add(1)),
                }
                if found.is_full() {
                    return Ok(Lacking::Nothing);
                }
            }
        }
        if some {
            return Ok(if short > 0 { Lacking::Values(short) } else { Lacking::Nothing });
        }
        if !self.unique && self.max_items.is_none() {
            if let Some(tail) = self.tail {
                let place = self.heads.len() as u64;
                for (at, label) in self.labels.iter().enumerate() {
                    let bounded = |(bit, contains): (usize, &Contains)| {
                        self.bits[at] >> bit & 1 == 1 && contains.max.is_some()
                    };
                    if !label.kinds[tail].is_empty()
                        && !self.contains.iter().enumerate().any(bounded)
                        && self.can_be_filled(expander, &start, Some((place, at)))?
                    {
                        found.add_at_least(INFINITE);
                        return Ok(Lacking::Nothing);
                    }
                }
            }
        }
        let plainly =
            if self.unique || !self.contains.is_empty() { 0 } else { self.combinations() };
        if found.would_fill(plainly) {
            found.add_at_least(plainly);
            return Ok(Lacking::Nothing);
        }
        self.list(expander, start, found, reserve)
    }

    /// How many arrays there are whose items do not depend on each other and have few values.
    fn combinations(&self) -> u64 {
        let Some(label) = self.labels.first() else { return 0 };
        let size = |domain: usize| match &label.kinds[domain] {
            LabelValues::Few(values) => values.len() as u64,
            LabelValues::Many(count) => *count,
        };
        let (mut all, mut product) = (0u64, 1u64);
        for (place, &domain) in self.heads.iter().enumerate() {
            if place as u64 >= self.min_items {
                all = all.saturating_add(product);
            }
            product = product.saturating_mul(size(domain));
        }
        let heads = self.heads.len() as u64;
        let size = self.tail.map_or(0, size);
        let shortest = self.min_items.max(heads);
        let power = u32::try_from(shortest - heads).unwrap_or(u32::MAX);
        product = product.saturating_mul(size.saturating_pow(power));
        let longest = self.max_items.unwrap_or(u64::MAX);
        if shortest > longest || product == 0 {
            return all;
        }
        match size {
            0 => all.saturating_add(product),
            1 => {
                let lengths = (longest - shortest).saturating_add(1);
                all.saturating_add(product.saturating_mul(lengths))
            }
            // While there are more, each further length has at least twice as many.
            _ if longest - shortest >= 64 => u64::MAX,
            _ => {
                (shortest..=longest)
                    .fold((all, product), |(all, product), _| {
                        (all.saturating_add(product), product.saturating_mul(size))
                    })
                    .0
            }
        }
    }

    /// Lists arrays whose items have few values.
    fn list(
        &self,
        expander: &mut Expander,
        start: Filled,
        found: &mut Collected,
        reserve: u64,
    ) -> Result<Lacking, LimitExceeded> {
        struct Pending {
            filled: Filled,
            domain: Option<usize>,
            next: usize,
        }
        let candidates: Vec<Vec<(usize, ValueId)>> =
            (0..self.labels.first().map_or(0, |label| label.kinds.len()))
                .map(|domain| self.candidates(domain))
                .collect();
        expander.charge(candidates.iter().map(Vec::len).sum())?;
        let mut items: Vec<ValueId> = Vec::new();
        let mut used: FxHashSet<ValueId> = FxHashSet::default();
        let mut path: Vec<Pending> = Vec::new();
        let mut entering = Some(start);
        loop {
            if let Some(filled) = entering.take() {
                if filled.place >= self.min_items && self.is_complete(&filled.counts) {
                    expander.charge(1 + items.len() / IDS_PER_STEP)?;
                    let array = Constant::Array(items.clone().into());
                    found.add(expander.values.scalar(array, None)?);
                    if found.is_full() {
                        return Ok(Lacking::Nothing);
                    }
                }
                path.push(Pending { domain: self.domain(filled.place), filled, next: 0 });
            }
            let Some(open) = path.last_mut() else { return Ok(Lacking::Nothing) };
            let candidates = open.domain.map_or(&[][..], |domain| &candidates[domain]);
            let Some(&(label, value)) = candidates.get(open.next) else {
                path.pop();
                if let Some(item) = items.pop() {
                    used.remove(&item);
                }
                continue;
            };
            open.next += 1;
            expander.charge(1)?;
            if expander.steps_left < reserve {
                return Ok(Lacking::Steps);
            }
            if self.unique && used.contains(&value) {
                continue;
            }
            let place = open.filled.place;
            let Some(counts) = self.counted(&open.filled.counts, label, place) else { continue };
            let mut next = Filled { place: place + 1, counts, left: open.filled.left.clone() };
            if let Some(&(label, class)) = self.class_of.get(&value) {
                next.left[label][class] -= 1;
            }
            if self.can_be_filled(expander, &next, None)? {
                items.push(value);
                if self.unique {
                    used.insert(value);
                }
                entering = Some(next);
            }
        }
    }

    /// The values of a domain that has few, each with its label.
    fn candidates(&self, domain: usize) -> Vec<(usize, ValueId)> {
        let mut candidates = Vec::new();
        for (at, label) in self.labels.iter().enumerate() {
            if let LabelValues::Few(values) = &label.kinds[domain] {
                candidates.extend(values.iter().map(|&value| (at, value)));
            }
        }
        candidates
    }
}

impl Tail<'_> {
    /// Returns whether items of the labels from `at` on exist so that every `contains` has neither
    /// too few nor too many, in the required total number.
    fn choose(
        &mut self,
        expander: &mut Expander,
        at: usize,
        missing: &[u64],
        rooms: &[u64],
        total: u64,
        room: u64,
    ) -> Result<bool, LimitExceeded> {
        if total == 0 && missing.iter().all(|&missing| missing == 0) {
            return Ok(true);
        }
        expander.charge(1 + missing.len())?;
        let (Some(&bits), Some(&most)) = (self.bits.get(at), self.most.get(at)) else {
            return Ok(false);
        };
        let counts = |bit: usize| bits >> bit & 1 == 1;
        for (bit, &missing) in missing.iter().enumerate() {
            let later = self.bits[at..].iter().zip(&self.most[at..]);
            let later = later.filter(|(bits, _)| *bits >> bit & 1 == 1);
            if later.fold(0u64, |sum, (_, &most)| sum.saturating_add(most)) < missing {
                return Ok(false);
            }
        }
        if self.most[at..].iter().fold(0u64, |sum, &most| sum.saturating_add(most)) < total {
            return Ok(false);
        }
        let mut key = missing.to_vec();
        key.extend_from_slice(rooms);
        key.push(room);
        let key = (at, key, total);
        if self.failed.contains(&key) {
            return Ok(false);
        }
        // At most as many as some place lacks: an array does not need the others.
        let wanted = (0..missing.len()).filter(|&bit| counts(bit)).map(|bit| missing[bit]);
        let wanted = wanted.max().unwrap_or(0).max(total);
        let allowed = (0..rooms.len()).filter(|&bit| counts(bit)).map(|bit| rooms[bit]);
        let allowed = allowed.min().unwrap_or(u64::MAX).min(room);
        for times in (0..=most.min(wanted).min(allowed)).rev() {
            let less = |list: &[u64]| -> Vec<u64> {
                let fewer = |(bit, &left): (usize, &u64)| match counts(bit) && left != u64::MAX {
                    true => left.saturating_sub(times),
                    false => left,
                };
                list.iter().enumerate().map(fewer).collect()
            };
            let room = if room == u64::MAX { room } else { room - times };
            let (missing, rooms) = (less(missing), less(rooms));
            let total = total.saturating_sub(times);
            if self.choose(expander, at + 1, &missing, &rooms, total, room)? {
                return Ok(true);
            }
        }
        self.failed.insert(key);
        Ok(false)
    }
}
