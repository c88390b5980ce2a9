//! Implications as exclusions.
//!
//! "An object that satisfies the premise satisfies the consequent" excludes the premise together
//! with the opposite of each part of the consequent. Several implications are therefore collected
//! in one specification, where alternatives would multiply. Whether an object with exclusions
//! exists is decided by the cheapest method first: optional names, parts without common names, the
//! values of one name, and only then case by case.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alternatives::Alternatives;
use super::error::LimitExceeded;
use super::evidence::{Needs, ObjectWay, Way};
use super::expand::Expander;
use super::program::Program;
use super::values::ValueId;
use super::{KeyClass, ObjectSpec, Property, SchemaId};

/// The most exclusions that some alternatives become.
const MAX_JOINED: usize = 64;

const OPEN: [KeyClass; 1] = [KeyClass { keys: None, schema: SchemaId::ANY }];

/// The untried values of a name.
#[derive(Clone, Debug)]
pub struct Cases {
    spec: Arc<ObjectSpec>,
    /// Which property it is.
    property: usize,
    /// The constants, the last one first.
    values: Vec<ValueId>,
    /// All other values, which are tried first.
    others: Option<SchemaId>,
}

fn absent(name: &Arc<str>) -> Property {
    Property { name: name.clone(), schema: SchemaId::NEVER, required: false, free: true }
}

fn of_one(property: Property) -> ObjectSpec {
    ObjectSpec { properties: vec![property], ..ObjectSpec::any() }
}

/// The names of some specifications without any demand, so that they are declared where the
/// specifications declare them.
fn declared_names<'a>(specs: impl Iterator<Item = &'a Arc<ObjectSpec>>) -> Vec<Property> {
    let mut properties: Vec<Property> = Vec::new();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    for property in specs.flat_map(|spec| &spec.properties) {
        if seen.insert(&property.name) {
            let schema = SchemaId::ANY;
            properties.push(Property { schema, required: false, ..property.clone() });
        }
    }
    properties
}

impl Expander {
    /// Adds to the alternatives of an implication an equivalent single specification, if there is
    /// one.
    pub(super) fn join_implication(
        &mut self,
        program: &Program,
        union: &mut Alternatives,
        tests: &[Arc<ObjectSpec>],
        then: &Alternatives,
        otherwise: &Alternatives,
    ) -> Result<(), LimitExceeded> {
        if union.objects.len() < 2 {
            return Ok(());
        }
        let mut excluded = Vec::new();
        for test in tests {
            if !self.add_clauses(program, test, then, &mut excluded)? {
                return Ok(());
            }
        }
        if !matches!(&otherwise.objects[..], [any] if any.is_any()) {
            let [test] = tests else { return Ok(()) };
            let Some(opposites) = self.opposites(test)? else { return Ok(()) };
            for opposite in &opposites {
                if !self.add_clauses(program, opposite, otherwise, &mut excluded)? {
                    return Ok(());
                }
            }
        }
        let both = then.objects.iter().chain(&otherwise.objects);
        let properties = declared_names(tests.iter().chain(both));
        let joined = ObjectSpec { properties, excluded, ..ObjectSpec::any() };
        union.joined = self.settle_object(program, joined)?.map(Arc::new);
        Ok(())
    }

    /// One specification of the objects of a few alternatives: it excludes those that break a
    /// constraint of each.
    pub(super) fn join_alternatives(
        &mut self,
        program: &Program,
        alternatives: &[Arc<ObjectSpec>],
    ) -> Result<Option<Arc<ObjectSpec>>, LimitExceeded> {
        let mut excluded = vec![ObjectSpec::any()];
        for spec in alternatives {
            let Some(mut opposites) = self.opposites(spec)? else { return Ok(None) };
            opposites.extend(spec.excluded.iter().map(|spec| ObjectSpec::clone(spec)));
            if excluded.len().saturating_mul(opposites.len()) > MAX_JOINED {
                return Ok(None);
            }
            let mut both = Vec::new();
            for one in &excluded {
                for other in &opposites {
                    match self.conjoin_objects(program, &[one, other])? {
                        Some(spec) if !spec.excluded.is_empty() => return Ok(None),
                        spec => both.extend(spec),
                    }
                }
            }
            excluded = both;
        }
        let excluded = excluded.into_iter().map(Arc::new).collect();
        let properties = declared_names(alternatives.iter());
        let joined = ObjectSpec { properties, excluded, ..ObjectSpec::any() };
        Ok(self.settle_object(program, joined)?.map(Arc::new))
    }

    /// Adds the exclusions of objects that satisfy `premise` and not `consequent`. Returns whether
    /// they can be expressed.
    fn add_clauses(
        &mut self,
        program: &Program,
        premise: &ObjectSpec,
        consequent: &Alternatives,
        excluded: &mut Vec<Arc<ObjectSpec>>,
    ) -> Result<bool, LimitExceeded> {
        if !premise.excluded.is_empty() {
            return Ok(false);
        }
        let consequent = match (&consequent.joined, &consequent.objects[..]) {
            (Some(joined), _) => joined,
            (None, [single]) => single,
            (None, []) => {
                excluded.push(Arc::new(premise.clone()));
                return Ok(true);
            }
            _ => return Ok(false),
        };
        let Some(mut parts) = self.opposites(consequent)? else { return Ok(false) };
        parts.extend(consequent.excluded.iter().map(|spec| ObjectSpec::clone(spec)));
        for part in parts {
            if let Some(both) = self.conjoin_objects(program, &[premise, &part])? {
                if !both.excluded.is_empty() {
                    return Ok(false);
                }
                excluded.push(Arc::new(both));
            }
        }
        Ok(true)
    }

    /// For each constraint of a specification without its exclusions, the objects that break it;
    /// `None` if some are not one specification.
    fn opposites(&mut self, spec: &ObjectSpec) -> Result<Option<Vec<ObjectSpec>>, LimitExceeded> {
        if spec.others != OPEN {
            return Ok(None);
        }
        self.charge(1 + spec.properties.len())?;
        let mut opposites = Vec::new();
        for property in &spec.properties {
            let schema = self.interner.negation(property.schema)?;
            let required = !property.required;
            if schema == SchemaId::NEVER && required {
                continue;
            }
            let name = property.name.clone();
            opposites.push(of_one(Property { name, schema, required, free: true }));
        }
        if let Some(fewer) = spec.min_properties.checked_sub(1) {
            opposites.push(ObjectSpec { max_properties: Some(fewer), ..ObjectSpec::any() });
        }
        if let Some(max) = spec.max_properties {
            let min_properties = max.saturating_add(1);
            opposites.push(ObjectSpec { min_properties, ..ObjectSpec::any() });
        }
        Ok(Some(opposites))
    }

    /// The ways for an object to differ from all of its exclusions that are found without a pass
    /// over these; and whether they are all ways.
    pub(super) fn ways_at_once(
        &mut self,
        program: &Program,
        way: &ObjectWay,
    ) -> Result<(Vec<Way>, bool), LimitExceeded> {
        let spec = &way.spec;
        self.charge(spec.properties.len() + spec.excluded.len())?;
        let places: FxHashMap<&str, usize> =
            spec.properties.iter().enumerate().map(|(at, p)| (&*p.name, at)).collect();
        let is_required =
            |name: &str| places.get(name).is_some_and(|&at| spec.properties[at].required);
        // An exclusion that requires a name is avoided by leaving the name out.
        let free = |property: &&Property| property.required && !is_required(&property.name);
        let avoided: Option<FxHashSet<&Arc<str>>> = spec
            .excluded
            .iter()
            .map(|exclusion| exclusion.properties.iter().find(free).map(|found| &found.name))
            .collect();
        let required = spec.properties.iter().filter(|property| property.required).count() as u64;
        if let Some(without) = avoided {
            let mut rest = ObjectSpec { excluded: Vec::new(), ..ObjectSpec::clone(spec) };
            for name in without {
                match places.get(&**name) {
                    Some(&at) => rest.properties[at].schema = SchemaId::NEVER,
                    None if rest.others.is_empty() => {}
                    None => rest.properties.push(absent(name)),
                }
            }
            let complete = spec.min_properties <= required;
            return Ok((vec![Way::Object(way.with(Arc::new(rest)))], complete));
        }
        let of_names = |exclusion: &Arc<ObjectSpec>| {
            exclusion.others == OPEN
                && exclusion.min_properties == 0
                && exclusion.max_properties.is_none()
        };
        if !spec.excluded.iter().all(of_names) {
            return Ok((Vec::new(), false));
        }
        if way.needs_no_extra()
            && spec.min_properties <= required
            && spec.max_properties.is_none()
            && spec.excluded.len() > 1
        {
            if let Some(needs) = self.apart(spec)? {
                return Ok((vec![Way::Needs(needs)], true));
            }
        }
        if !way.needs_no_extra() {
            return Ok((Vec::new(), false));
        }
        let cases = self.cases(program, spec)?;
        let complete = cases.is_some();
        Ok((cases.into_iter().map(Way::Cases).collect(), complete))
    }

    /// Returns the needs of an object without bounds on the number of its members whose exclusions
    /// form groups without common names: each group by itself, beside its own names.
    fn apart(&mut self, spec: &ObjectSpec) -> Result<Option<Needs>, LimitExceeded> {
        let mut groups: Vec<usize> = (0..spec.excluded.len()).collect();
        fn root(groups: &mut [usize], mut at: usize) -> usize {
            while groups[at] != at {
                groups[at] = groups[groups[at]];
                at = groups[at];
            }
            at
        }
        let mut first: FxHashMap<&str, usize> = FxHashMap::default();
        for (at, exclusion) in spec.excluded.iter().enumerate() {
            self.charge(exclusion.properties.len())?;
            for property in &exclusion.properties {
                let other = *first.entry(&property.name).or_insert(at);
                let (one, other) = (root(&mut groups, at), root(&mut groups, other));
                groups[one.max(other)] = one.min(other);
            }
        }
        let roots: Vec<usize> = (0..groups.len()).map(|at| root(&mut groups, at)).collect();
        if roots.iter().all(|&root| root == 0) {
            return Ok(None);
        }
        let mut parts: FxHashMap<usize, ObjectSpec> = FxHashMap::default();
        let mut order = Vec::new();
        for (exclusion, &root) in spec.excluded.iter().zip(&roots) {
            let part = parts.entry(root).or_insert_with(|| {
                order.push(root);
                let (properties, excluded) = (Vec::new(), Vec::new());
                ObjectSpec {
                    properties,
                    others: spec.others.clone(),
                    excluded,
                    ..ObjectSpec::any()
                }
            });
            part.excluded.push(exclusion.clone());
        }
        let mut needs = Needs::default();
        for property in &spec.properties {
            match first.get(&*property.name) {
                Some(&at) => {
                    if let Some(part) = parts.get_mut(&roots[at]) {
                        part.properties.push(Property { free: true, ..property.clone() });
                    }
                }
                None if property.required => needs.all.push(property.schema),
                None => {}
            }
        }
        for root in order {
            if let Some(mut part) = parts.remove(&root) {
                part.properties.sort_by(|a, b| a.name.cmp(&b.name));
                needs.all.push(self.object_schema(part)?);
            }
        }
        Ok(Some(needs))
    }

    /// The values of the required name that most exclusions distinguish by constants.
    fn cases(
        &mut self,
        program: &Program,
        spec: &Arc<ObjectSpec>,
    ) -> Result<Option<Cases>, LimitExceeded> {
        // The number of exclusions that demand listed values of a name, these values, and the other
        // demands.
        type Told = (usize, Vec<ValueId>, Vec<SchemaId>);
        let mut constants: FxHashMap<&str, Told> = FxHashMap::default();
        let required: FxHashMap<&str, usize> = spec
            .properties
            .iter()
            .enumerate()
            .filter(|(_, property)| property.required)
            .map(|(at, property)| (&*property.name, at))
            .collect();
        for exclusion in &spec.excluded {
            for property in &exclusion.properties {
                if !required.contains_key(&*property.name) {
                    continue;
                }
                if let Some((values, negated)) = self.listed_values(program, property.schema)? {
                    self.charge(values.len())?;
                    let entry = constants.entry(&property.name).or_default();
                    entry.0 += 1;
                    entry.1.extend(values);
                    entry.2.extend(negated.then_some(property.schema));
                }
            }
        }
        let most = constants
            .into_iter()
            .filter(|(_, (times, ..))| *times > 1)
            .max_by(|a, b| (a.1 .0, b.0).cmp(&(b.1 .0, a.0)));
        let Some((name, (_, mut values, mut others))) = most else { return Ok(None) };
        values.sort_unstable();
        values.dedup();
        let property = required[name];
        let schema = spec.properties[property].schema;
        let listed = self.one_of_values(values.clone())?;
        others.push(self.interner.negation(listed)?);
        others.push(schema);
        let others = self.both(program, &others)?;
        if others == schema {
            return Ok(None);
        }
        values.reverse();
        let (spec, others) = (spec.clone(), Some(others));
        Ok(Some(Cases { spec, property, values, others }))
    }

    /// The first case, and the rest of the others, which are examined later.
    pub(super) fn next_case(
        &mut self,
        program: &Program,
        mut cases: Cases,
    ) -> Result<Vec<Way>, LimitExceeded> {
        let known = cases.spec.properties[cases.property].schema;
        let schema = match (cases.others.take(), cases.values.pop()) {
            (Some(others), value) => {
                cases.values.extend(value);
                others
            }
            (None, Some(value)) => {
                let value = self.one_of_values(vec![value])?;
                self.both(program, &[known, value])?
            }
            (None, None) => return Ok(Vec::new()),
        };
        if schema == SchemaId::NEVER {
            return Ok(vec![Way::Cases(cases)]);
        }
        let mut spec = ObjectSpec::clone(&cases.spec);
        spec.properties[cases.property].schema = schema;
        let settled = self.settle_object(program, spec)?;
        let mut ways = vec![Way::Cases(cases)];
        ways.extend(settled.map(|spec| Way::object(Arc::new(spec))));
        Ok(ways)
    }
}
