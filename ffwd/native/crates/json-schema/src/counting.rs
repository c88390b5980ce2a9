//! How many values a schema has, up to a cap, and which ones if they are few.
//!
//! Values are finite, so those of a schema are the least fixpoint of "built of values already
//! found". Each schema has the set of values found so far, cut at a cap; where a set is cut, only
//! its size is known. A cap that proves too small is doubled, until the steps of the call are
//! spent: an answer is exact, or a limit.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alternatives::Alternatives;
use super::error::{LimitExceeded, Result};
use super::evidence::{ObjectWay, Way};
use super::filling::{Filling, Lacking};
use super::languages::MAX_TEXTS;
use super::satisfy::{Context, Solver};
use super::values::{Constant, ValueId};
use super::{ObjectSpec, SchemaId};

/// More values than can be counted.
pub const INFINITE: u64 = u64::MAX;

/// How often schemas are visited again, where a caller can do without the count: where each value is
/// built of the one before it, each visit finds one.
const PATIENT_VISITS: usize = 256;

/// How many steps such a caller waits for: each visit may list as many values as the last one, and
/// one more.
const PATIENT_STEPS: u64 = 100_000;

/// There are more strings of one character than this.
const CHARACTERS: u64 = 1 << 20;

/// How many values a schema has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// These, sorted.
    Few(Arc<[ValueId]>),
    AtLeast(u64),
}

impl Count {
    fn none() -> Self {
        Self::Few(Arc::from([]))
    }

    /// Returns a lower bound of the count.
    pub fn least(&self) -> u64 {
        match self {
            Self::Few(values) => values.len() as u64,
            Self::AtLeast(count) => *count,
        }
    }
}

/// The known counts of the values of schemas.
#[derive(Debug, Default)]
pub struct Counts {
    known: FxHashMap<SchemaId, Count>,
    /// Which values satisfy which schemas.
    pub(super) held: FxHashMap<(SchemaId, ValueId), bool>,
    /// How many values are listed.
    listed: usize,
}

impl Counts {
    pub(super) fn memory_bytes(&self) -> usize {
        let known = size_of::<(SchemaId, Count)>() * self.known.capacity();
        let held = size_of::<((SchemaId, ValueId), bool)>() * self.held.capacity();
        known + held + size_of::<ValueId>() * self.listed
    }

    fn remember(&mut self, schema: SchemaId, count: Count) {
        let old = self.known.get(&schema);
        let better = match (&count, old) {
            (Count::Few(_), Some(Count::Few(_))) => false,
            (Count::AtLeast(new), Some(Count::AtLeast(old))) => new > old,
            (Count::AtLeast(_), Some(Count::Few(_))) => false,
            _ => true,
        };
        if better {
            if let Count::Few(values) = &count {
                self.listed += values.len();
            }
            self.known.insert(schema, count);
        }
    }
}

/// Values found so far, up to a cap.
#[derive(Debug)]
pub struct Collected {
    values: FxHashSet<ValueId>,
    /// There are at least this many, some of them outside `values`.
    least: u64,
    cap: u64,
}

impl Collected {
    fn new(cap: u64) -> Self {
        Self { values: FxHashSet::default(), least: 0, cap }
    }

    pub fn is_full(&self) -> bool {
        self.least.max(self.values.len() as u64) >= self.cap
    }

    /// Returns whether this many would be enough.
    pub fn would_fill(&self, count: u64) -> bool {
        count >= self.cap
    }

    pub fn add(&mut self, value: ValueId) {
        self.values.insert(value);
    }

    pub fn add_at_least(&mut self, count: u64) {
        self.least = self.least.max(count);
    }

    fn add_all(&mut self, count: &Count) {
        match count {
            Count::Few(values) => self.values.extend(values.iter().copied()),
            Count::AtLeast(count) => self.add_at_least(*count),
        }
    }

    fn finish(self) -> Count {
        let listed = self.values.len() as u64;
        if self.least > 0 || listed >= self.cap {
            return Count::AtLeast(self.least.max(listed));
        }
        let mut values: Vec<ValueId> = self.values.into_iter().collect();
        values.sort_unstable();
        Count::Few(values.into())
    }
}

/// A schema on the way to the fixpoint.
#[derive(Debug)]
struct SchemaVisit {
    found: Count,
    scalars: Count,
    /// The schemas whose values contain this one's.
    dependents: Vec<SchemaId>,
    queued: bool,
    visited: bool,
    /// For each kind of object with exclusions, the ways to violate all of them, once computed.
    ways: FxHashMap<usize, Arc<[ObjectWay]>>,
}

/// One approximation of the fixpoint from below.
#[derive(Debug)]
pub struct Run {
    cap: u64,
    nodes: FxHashMap<SchemaId, SchemaVisit>,
    /// Those that were asked for first come first, so a schema is visited again once all that it is
    /// built of have been.
    pending: VecDeque<SchemaId>,
    /// The schema that is being looked at.
    current: SchemaId,
    /// The missing count: this many values of some schema were needed, but fewer were known.
    short: u64,
    /// How many schemas may still be visited again.
    visits: usize,
    /// Nothing is listed when fewer steps than these are left.
    reserve: u64,
    /// Whether something was not listed, so that there may be more values than were found.
    gave_up: bool,
}

/// The source of a schema's values.
pub enum Source<'r> {
    Known,
    /// The same, if they are found soon. Whether some were not.
    Soon {
        gave_up: bool,
    },
    Run(&'r mut Run),
}

impl Run {
    fn new(cap: u64, visits: usize, reserve: u64) -> Self {
        Self {
            cap,
            visits,
            reserve,
            gave_up: false,
            nodes: FxHashMap::default(),
            pending: VecDeque::new(),
            current: SchemaId::ANY,
            short: 0,
        }
    }
}

impl Source<'_> {
    /// Records that this many values would be needed.
    pub fn is_short(&mut self, needed: u64) {
        match self {
            Self::Run(run) => run.short = run.short.max(needed),
            Self::Soon { gave_up } => *gave_up = true,
            Self::Known => {}
        }
    }
}

impl Solver {
    /// Returns the values of a schema if they are fewer than `enough`. Otherwise counts at least
    /// this many.
    pub(super) fn count(
        &mut self,
        context: Context<'_>,
        schema: SchemaId,
        enough: u64,
    ) -> Result<Count> {
        let count = self.count_within(context, schema, enough, usize::MAX)?;
        Ok(count.unwrap_or(Count::AtLeast(0)))
    }

    /// The same, with at most this many visits of schemas that were visited already, and if these
    /// are bounded, with [`PATIENT_STEPS`]; `None` if these do not tell.
    fn count_within(
        &mut self,
        context: Context<'_>,
        schema: SchemaId,
        enough: u64,
        visits: usize,
    ) -> Result<Option<Count>> {
        if let Some(known) = self.known_count(schema, enough) {
            return Ok(Some(known));
        }
        // The cap grows geometrically, so little work is repeated.
        let mut cap =
            enough.saturating_add(2).checked_next_power_of_two().unwrap_or(INFINITE).max(8);
        let reserve = match visits {
            usize::MAX => 0,
            _ => self.expander.steps_left.saturating_sub(PATIENT_STEPS),
        };
        loop {
            let mut run = Run::new(cap, visits, reserve);
            let count = self.approximate(context, &mut run, schema, enough)?;
            let complete = run.short == 0 && run.pending.is_empty() && !run.gave_up;
            for (id, node) in run.nodes {
                if complete || matches!(node.found, Count::AtLeast(_)) {
                    self.counts.remember(id, node.found);
                }
            }
            if count.least() >= enough {
                return Ok(Some(Count::AtLeast(count.least())));
            }
            if complete && matches!(count, Count::Few(_)) {
                return Ok(Some(count));
            }
            if run.visits == 0 || run.gave_up {
                return Ok(None);
            }
            cap = cap.saturating_mul(2).max(run.short.saturating_mul(2));
        }
    }

    /// Whether a schema has a value besides some, which are sorted.
    pub(super) fn has_other_value(
        &mut self,
        context: Context<'_>,
        schema: SchemaId,
        avoided: &[ValueId],
    ) -> Result<bool> {
        Ok(match self.count(context, schema, avoided.len() as u64 + 1)? {
            Count::AtLeast(_) => true,
            Count::Few(values) => values.iter().any(|value| avoided.binary_search(value).is_err()),
        })
    }

    fn known_count(&self, schema: SchemaId, enough: u64) -> Option<Count> {
        match schema {
            SchemaId::ANY => return Some(Count::AtLeast(INFINITE)),
            SchemaId::NEVER => return Some(Count::none()),
            _ => {}
        }
        match self.counts.known.get(&schema)? {
            Count::AtLeast(count) if *count < enough => None,
            known => Some(known.clone()),
        }
    }

    /// The values of a schema that are known so far.
    pub(super) fn look(
        &mut self,
        context: Context<'_>,
        source: &mut Source<'_>,
        schema: SchemaId,
        enough: u64,
    ) -> Result<Count> {
        let run = match source {
            Source::Known => return self.count(context, schema, enough),
            Source::Soon { .. } => {
                let count = self.count_within(context, schema, enough, PATIENT_VISITS)?;
                return Ok(count.unwrap_or(Count::AtLeast(0)));
            }
            Source::Run(run) => run,
        };
        if let Some(known) = self.known_count(schema, run.cap) {
            return Ok(known);
        }
        if let Some(node) = run.nodes.get_mut(&schema) {
            if !node.dependents.contains(&run.current) {
                node.dependents.push(run.current);
            }
            return Ok(node.found.clone());
        }
        let alternatives = self.expander.alternatives(context.program, schema)?;
        let scalars = self.scalars(context, &alternatives, run.cap);
        let scalars = scalars.map_err(|e| self.exceeded(context, schema, e))?;
        let node = SchemaVisit {
            found: Count::none(),
            scalars,
            dependents: vec![run.current],
            queued: true,
            visited: false,
            ways: FxHashMap::default(),
        };
        run.nodes.insert(schema, node);
        run.pending.push_back(schema);
        Ok(Count::none())
    }

    /// Goes on until no schema gets more values, or this one has enough.
    fn approximate(
        &mut self,
        context: Context<'_>,
        run: &mut Run,
        root: SchemaId,
        enough: u64,
    ) -> Result<Count> {
        self.look(context, &mut Source::Run(run), root, enough)?;
        while run.visits > 0 && !run.gave_up {
            let Some(id) = run.pending.pop_front() else { break };
            if let Some(node) = run.nodes.get_mut(&id) {
                node.queued = false;
                run.visits -= usize::from(std::mem::replace(&mut node.visited, true));
            }
            run.current = id;
            let found = self.values_of(context, run, id)?;
            let Some(node) = run.nodes.get_mut(&id) else { continue };
            let mut all = Collected::new(run.cap);
            all.add_all(&node.found);
            all.add_all(&found);
            let found = all.finish();
            if found == node.found {
                continue;
            }
            node.found = found;
            for dependent in node.dependents.clone() {
                if let Some(node) = run.nodes.get_mut(&dependent).filter(|node| !node.queued) {
                    node.queued = true;
                    run.pending.push_back(dependent);
                }
            }
            let found = run.nodes.get(&root).map_or(Count::none(), |node| node.found.clone());
            if id == root && found.least() >= enough {
                return Ok(found);
            }
        }
        Ok(run.nodes.get(&root).map_or(Count::none(), |node| node.found.clone()))
    }

    /// The values that can be built of those found so far.
    fn values_of(&mut self, context: Context<'_>, run: &mut Run, id: SchemaId) -> Result<Count> {
        let alternatives = self.expander.alternatives(context.program, id)?;
        let mut found = Collected::new(run.cap);
        if let Some(node) = run.nodes.get(&id) {
            found.add_all(&node.scalars);
        }
        for (place, spec) in alternatives.objects.iter().enumerate() {
            if found.is_full() {
                break;
            }
            self.objects(context, run, (id, place), spec, &mut found)?;
        }
        for spec in &alternatives.arrays {
            let specs = match spec.repeats {
                false => vec![spec.clone()],
                true => {
                    let specs = self.expander.arrays_with_repeated_item(context.program, spec);
                    specs.map_err(|e| self.exceeded(context, id, e))?
                }
            };
            for spec in specs {
                if found.is_full() {
                    break;
                }
                let mut source = Source::Run(run);
                let filling = Filling::new(self, context, &mut source, &spec, 0)?;
                let reserve = run.reserve;
                let lacking = filling.collect(&mut self.expander, &mut found, reserve);
                match lacking.map_err(|e| self.exceeded(context, id, e))? {
                    Lacking::Nothing => {}
                    Lacking::Values(needed) => run.short = run.short.max(needed),
                    Lacking::Steps => run.gave_up = true,
                }
            }
        }
        Ok(found.finish())
    }

    fn scalars(
        &mut self,
        context: Context<'_>,
        alternatives: &Alternatives,
        cap: u64,
    ) -> Result<Count, LimitExceeded> {
        let mut found = Collected::new(cap);
        let most = usize::try_from(cap).unwrap_or(usize::MAX);
        for spec in &alternatives.strings {
            let texts = match &spec.one_of {
                Some(texts) if spec.languages.is_empty() => {
                    if texts.len() as u64 >= cap {
                        found.add_at_least(texts.len() as u64);
                        continue;
                    }
                    Some(texts.to_vec())
                }
                None if spec.languages.is_empty() => match spec.max_length {
                    Some(maximum) if maximum < spec.min_length => continue,
                    Some(0) => Some(vec!["".into()]),
                    Some(_) if cap <= CHARACTERS => {
                        found.add_at_least(CHARACTERS);
                        continue;
                    }
                    Some(_) => None,
                    None => {
                        found.add_at_least(INFINITE);
                        continue;
                    }
                },
                _ => self.expander.languages.list(&spec.language(), most.max(MAX_TEXTS))?,
            };
            let texts = match texts {
                Some(texts) => Some(texts),
                None if context.emptiness.string(spec)? => continue,
                None => {
                    let listed = context.emptiness.options.languages.list(&spec.language(), cap)?;
                    listed.map(|texts| texts.into_iter().map(Into::into).collect())
                }
            };
            match texts {
                Some(texts) => {
                    self.expander.charge(texts.len())?;
                    for text in texts {
                        let value = Constant::String(text);
                        found.add(self.expander.values.scalar(value, None)?);
                    }
                }
                None => found.add_at_least(cap.saturating_add(1)),
            }
        }
        for range in &alternatives.numbers {
            if found.is_full() {
                break;
            }
            if range.is_empty()? {
                continue;
            }
            let bounded = range.minimum.is_some() && range.maximum.is_some();
            let least = match bounded || range.one_of.is_some() {
                true => range.plainly_at_least()?,
                false => INFINITE,
            };
            if least >= cap {
                found.add_at_least(least);
                continue;
            }
            match range.list_values(most)? {
                None => found.add_at_least(cap.saturating_add(1)),
                Some(numbers) => {
                    self.expander.charge(numbers.len())?;
                    for number in numbers {
                        let value = Constant::Number(number);
                        found.add(self.expander.values.scalar(value, None)?);
                    }
                }
            }
        }
        for (allowed, constant) in [
            (alternatives.null, Constant::Null),
            (alternatives.boolean_false, Constant::Boolean(false)),
            (alternatives.boolean_true, Constant::Boolean(true)),
        ] {
            if allowed {
                found.add(self.expander.values.scalar(constant, None)?);
            }
        }
        Ok(found.finish())
    }

    /// Objects of one kind, of which `at` tells the schema and the place.
    fn objects(
        &mut self,
        context: Context<'_>,
        run: &mut Run,
        at: (SchemaId, usize),
        spec: &Arc<ObjectSpec>,
        found: &mut Collected,
    ) -> Result<()> {
        if spec.excluded.is_empty() {
            return self.members(context, run, spec, found);
        }
        // If few values satisfy an exclusion, they are removed one by one.
        let mut all = Collected::new(run.cap);
        let without = ObjectSpec { excluded: Vec::new(), ..ObjectSpec::clone(spec) };
        self.members(context, run, &without, &mut all)?;
        if let Count::Few(values) = all.finish() {
            for &value in values.iter() {
                let Constant::Object(members) = self.expander.values.get(value).clone() else {
                    continue;
                };
                if self.object_holds(context, spec, &members, 0)? {
                    found.add(value);
                }
            }
            return Ok(());
        }
        // The evidence of a value may show enough of them.
        let whole = ObjectWay::new(spec.clone());
        let (at_once, _) = self
            .expander
            .ways_at_once(context.program, &whole)
            .map_err(|e| self.exceeded(context, at.0, e))?;
        for way in at_once {
            if let Way::Object(way) = way {
                if way.spec.excluded.is_empty() {
                    self.members(context, run, &way.spec, found)?;
                }
            }
        }
        if found.is_full() {
            return Ok(());
        }
        let known = run.nodes.get(&at.0).and_then(|node| node.ways.get(&at.1)).cloned();
        let ways = match known {
            Some(ways) => ways,
            None => {
                let ways = self.ways_past_exclusions(context, at.0, spec)?;
                if let Some(node) = run.nodes.get_mut(&at.0) {
                    node.ways.insert(at.1, ways.clone());
                }
                ways
            }
        };
        for way in ways.iter() {
            if found.is_full() {
                break;
            }
            if way.needs_no_extra() {
                self.members(context, run, &way.spec, found)?;
            } else {
                self.with_extra_members(context, run, at.0, way, found)?;
            }
        }
        Ok(())
    }

    fn ways_past_exclusions(
        &mut self,
        context: Context<'_>,
        id: SchemaId,
        spec: &Arc<ObjectSpec>,
    ) -> Result<Arc<[ObjectWay]>> {
        let mut open = vec![ObjectWay::new(spec.clone())];
        let mut done = Vec::new();
        while let Some(way) = open.pop() {
            if way.spec.excluded.is_empty() {
                done.push(way);
            } else {
                let ways = self.expander.ways_past_an_exclusion(context.program, &way);
                open.extend(ways.map_err(|e| self.exceeded(context, id, e))?);
            }
        }
        Ok(done.into())
    }

    /// Objects with members of further keys.
    fn with_extra_members(
        &mut self,
        context: Context<'_>,
        run: &mut Run,
        id: SchemaId,
        way: &ObjectWay,
        found: &mut Collected,
    ) -> Result<()> {
        let mut open = vec![Way::Object(way.clone())];
        while let Some(way) = open.pop() {
            let needs = match way {
                // Members of few keys have become properties.
                Way::Object(way) if way.needs_no_extra() => {
                    self.members(context, run, &way.spec, found)?;
                    continue;
                }
                Way::Object(way) => {
                    let ways = self.expander.ways_of_object(context.program, way);
                    open.extend(ways.map_err(|e| self.exceeded(context, id, e))?);
                    continue;
                }
                Way::Needs(needs) => needs,
                // Exclusions are resolved here, and so are their cases.
                Way::Array(_) | Way::Cases(_) => continue,
            };
            let mut possible = true;
            for &need in &needs.all {
                possible &= self.look(context, &mut Source::Run(run), need, 1)?.least() > 0;
            }
            if let Some((least, some)) = &needs.at_least {
                let mut count = 0;
                for &need in some {
                    let found = self.look(context, &mut Source::Run(run), need, 1)?;
                    count += u64::from(found.least() > 0);
                }
                possible &= count >= *least;
            }
            if possible {
                // There are infinitely many further keys.
                found.add_at_least(INFINITE);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Objects, ignoring exclusions.
    fn members(
        &mut self,
        context: Context<'_>,
        run: &mut Run,
        spec: &ObjectSpec,
        found: &mut Collected,
    ) -> Result<()> {
        let mut source = Source::Run(run);
        let mut members: Vec<(Arc<str>, Count)> = Vec::new();
        for property in spec.properties.iter().filter(|property| property.required) {
            let values = self.look(context, &mut source, property.schema, 1)?;
            if values.least() == 0 {
                return Ok(());
            }
            members.push((property.name.clone(), values));
        }
        let required = members.len();
        let room = spec.max_properties.unwrap_or(u64::MAX).checked_sub(required as u64);
        let Some(room) = room else { return Ok(()) };
        let missing = spec.min_properties.saturating_sub(required as u64);
        if missing > room {
            return Ok(());
        }
        let mut listed: Vec<(Arc<str>, Count)> = Vec::new();
        for class in spec.others.iter().filter(|_| room > 0) {
            let values = self.look(context, &mut source, class.schema, 1)?;
            if values.least() == 0 {
                continue;
            }
            let names = self.expander.few_keys(class.keys.as_ref(), spec, &[], 0);
            let Some(names) = names.map_err(|e| self.exceeded(context, SchemaId::ANY, e))? else {
                found.add_at_least(INFINITE);
                return Ok(());
            };
            listed.extend(names.into_iter().map(|name| (name, values.clone())));
        }
        for property in spec.properties.iter().filter(|property| !property.required && room > 0) {
            let values = self.look(context, &mut source, property.schema, 1)?;
            if values.least() > 0 {
                members.push((property.name.clone(), values));
            }
        }
        members.extend(listed);
        if missing > (members.len() - required) as u64 {
            return Ok(());
        }
        let mut lists: Vec<(Arc<str>, Arc<[ValueId]>)> = Vec::with_capacity(members.len());
        let mut least = 0;
        for (name, values) in members {
            match values {
                Count::AtLeast(count) => least = least.max(count),
                Count::Few(values) => lists.push((name, values)),
            }
        }
        if least > 0 {
            found.add_at_least(least);
            return Ok(());
        }
        let all = ObjectMembers { lists, required, missing, room };
        self.combine(&all, found).map_err(|e| self.exceeded(context, SchemaId::ANY, e))
    }

    /// All objects with such members, until enough are found.
    fn combine(&mut self, all: &ObjectMembers, found: &mut Collected) -> Result<(), LimitExceeded> {
        let mut path: Vec<usize> = vec![0];
        let mut chosen: Vec<Option<ValueId>> = Vec::new();
        while let Some(choice) = path.last_mut() {
            let place = chosen.len();
            self.expander.charge(1)?;
            let Some((_, values)) = all.lists.get(place) else {
                let members = all.lists.iter().zip(&chosen);
                let members: Vec<(Arc<str>, ValueId)> = members
                    .filter_map(|((name, _), value)| Some((name.clone(), (*value)?)))
                    .collect();
                self.expander.charge(members.len())?;
                found.add(self.expander.values.object(members)?);
                if found.is_full() {
                    return Ok(());
                }
                path.pop();
                chosen.pop();
                continue;
            };
            let next = *choice;
            *choice += 1;
            let taken = chosen.iter().skip(all.required).flatten().count() as u64;
            let optional = place >= all.required;
            if let Some(&value) = values.get(next) {
                if optional && taken >= all.room {
                    continue;
                }
                chosen.push(Some(value));
                path.push(0);
            } else if optional && next == values.len() {
                let later = (all.lists.len() - place - 1) as u64;
                if taken + later >= all.missing {
                    chosen.push(None);
                    path.push(0);
                }
            } else {
                path.pop();
                chosen.pop();
            }
        }
        Ok(())
    }
}

/// The members of an object, the required ones first.
struct ObjectMembers {
    lists: Vec<(Arc<str>, Arc<[ValueId]>)>,
    required: usize,
    /// How many of the others are required, and how many are allowed.
    missing: u64,
    room: u64,
}
