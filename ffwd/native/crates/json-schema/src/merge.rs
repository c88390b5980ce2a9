//! Conjunctions of alternatives, per JSON type.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::alternatives::Alternatives;
use super::error::LimitExceeded;
use super::expand::Expander;
use super::number_range::NumberRange;
use super::program::Program;
use super::{ArraySpec, Contains, KeyClass, ObjectSpec, Property, SchemaId, StringSpec};

/// The most alternatives that implications become; if they would multiply to more, they become
/// exclusions of one specification. Other alternatives do so if they would multiply to too many.
const MAX_MULTIPLIED: usize = 64;

/// Alternatives of objects, and an equivalent single specification, if there is one.
type Objects = (Vec<Arc<ObjectSpec>>, Option<Arc<ObjectSpec>>);

impl Expander {
    /// Returns the values that all parts allow. Properties are declared in the order of the parts.
    pub fn conjunction(
        &mut self,
        program: &Program,
        parts: &[Arc<Alternatives>],
    ) -> Result<Arc<Alternatives>, LimitExceeded> {
        let mut kept: SmallVec<[&Arc<Alternatives>; 8]> = SmallVec::new();
        let mut seen: FxHashSet<*const Alternatives> = FxHashSet::default();
        for part in parts {
            if seen.insert(Arc::as_ptr(part)) && !part.is_any() {
                kept.push(part);
            }
        }
        if let [part] = kept[..] {
            return Ok(part.clone());
        }
        if kept.is_empty() {
            return Ok(Arc::new(Alternatives::any()));
        }
        let (objects, joined) = self.objects(program, &kept)?;
        Ok(Arc::new(Alternatives {
            objects,
            joined,
            null: kept.iter().all(|part| part.null),
            boolean_false: kept.iter().all(|part| part.boolean_false),
            boolean_true: kept.iter().all(|part| part.boolean_true),
            numbers: self.product(
                kept.iter().map(|part| &part.numbers[..]),
                |range| range.is_any(),
                |expander, left, right| {
                    // Each excluded step is compared with all others.
                    let excluded = left.not_multiple_of.len() + right.not_multiple_of.len();
                    let listed = |range: &NumberRange| range.one_of.as_ref().map_or(0, |v| v.len());
                    expander.charge(1 + excluded * excluded + listed(left) + listed(right))?;
                    Ok(left.intersect(right))
                },
            )?,
            strings: self.product(
                kept.iter().map(|part| &part.strings[..]),
                StringSpec::is_any,
                |expander, left, right| {
                    expander.charge(left.one_of.as_ref().map_or(0, |values| values.len()))?;
                    Ok(conjoin_strings(left, right))
                },
            )?,
            arrays: self.product(
                kept.iter().map(|part| &part.arrays[..]),
                |array| array.is_any(),
                |expander, left, right| {
                    Ok(expander.conjoin_arrays(program, left, right)?.map(Arc::new))
                },
            )?,
        }))
    }

    /// All combinations of one alternative from each list.
    fn product<'p, T: Clone + Eq + Hash + 'p>(
        &mut self,
        lists: impl Iterator<Item = &'p [T]>,
        is_any: impl Fn(&T) -> bool,
        mut conjoin: impl FnMut(&mut Self, &T, &T) -> Result<Option<T>, LimitExceeded>,
    ) -> Result<Vec<T>, LimitExceeded> {
        let mut product: Option<Vec<T>> = None;
        let mut any: &[T] = &[];
        for list in lists {
            if matches!(list, [single] if is_any(single)) {
                any = list;
                continue;
            }
            let Some(before) = product else {
                product = Some(list.to_vec());
                continue;
            };
            let mut pairs = Vec::new();
            let mut seen = FxHashSet::default();
            for left in &before {
                self.charge(list.len())?;
                for right in list {
                    if let Some(both) = conjoin(self, left, right)? {
                        if seen.insert(both.clone()) {
                            pairs.push(both);
                        }
                    }
                }
                self.check_width(pairs.len())?;
            }
            product = Some(pairs);
        }
        Ok(product.unwrap_or_else(|| any.to_vec()))
    }

    fn objects(
        &mut self,
        program: &Program,
        parts: &[&Arc<Alternatives>],
    ) -> Result<Objects, LimitExceeded> {
        if parts.iter().any(|part| part.objects.is_empty()) {
            return Ok((Vec::new(), None));
        }
        let mut joins: Vec<Option<Arc<ObjectSpec>>> =
            parts.iter().map(|part| part.joined.clone()).collect();
        let widths = parts.iter().map(|part| part.objects.len());
        if self.check_width(widths.fold(1, usize::saturating_mul)).is_err() {
            for (part, join) in parts.iter().zip(&mut joins).filter(|(_, join)| join.is_none()) {
                if part.objects.len() > 1 {
                    *join = self.join_alternatives(program, &part.objects)?;
                }
            }
        }
        if joins.iter().all(Option::is_none) {
            return Ok((self.object_product(program, parts)?, None));
        }
        let any = Arc::new(ObjectSpec::any());
        let joined_of = |(part, join): (&&Arc<Alternatives>, &Option<Arc<ObjectSpec>>)| match (
            join,
            &part.objects[..],
        ) {
            (Some(joined), _) => Some(joined.clone()),
            (None, [single]) => Some(single.clone()),
            _ => None,
        };
        let product = |implied: bool| {
            let counted = parts.iter().zip(&joins).filter(|(_, join)| join.is_some() || !implied);
            counted.map(|(part, _)| part.objects.len()).fold(1, usize::saturating_mul)
        };
        let several = product(true) > MAX_MULTIPLIED || self.check_width(product(false)).is_err();
        let objects = match several {
            false => self.object_product(program, parts)?,
            true => Vec::new(),
        };
        if !several && objects.len() < 2 {
            return Ok((objects, None));
        }
        let all: Vec<Option<Arc<ObjectSpec>>> = parts.iter().zip(&joins).map(joined_of).collect();
        let specs: Vec<&ObjectSpec> = all.iter().flatten().map(|spec| &**spec).collect();
        let joined = self.conjoin_objects(program, &specs)?.map(Arc::new);
        if specs.len() == parts.len() {
            return Ok(match (several, joined) {
                (true, joined) => (joined.into_iter().collect(), None),
                (false, joined) => (objects, joined),
            });
        }
        if !several {
            return Ok((objects, None));
        }
        // The others are multiplied with the merged implications.
        let Some(joined) = joined else { return Ok((Vec::new(), None)) };
        let mut lists: Vec<&[Arc<ObjectSpec>]> = vec![std::slice::from_ref(&joined)];
        let others = parts.iter().zip(&all).filter(|(_, joined)| joined.is_none());
        lists.extend(others.map(|(part, _)| &part.objects[..]));
        lists.retain(|list| !matches!(list, [single] if *single == any));
        let objects = self.product(
            lists.into_iter(),
            |_| false,
            |expander, left, right| {
                Ok(expander.conjoin_objects(program, &[left, right])?.map(Arc::new))
            },
        )?;
        Ok((objects, None))
    }

    /// All combinations of one alternative from each part.
    fn object_product(
        &mut self,
        program: &Program,
        parts: &[&Arc<Alternatives>],
    ) -> Result<Vec<Arc<ObjectSpec>>, LimitExceeded> {
        // Runs of single alternatives are merged at one go: an `allOf` of dozens of references to
        // objects with thousands of properties is real.
        let mut lists: Vec<Vec<Arc<ObjectSpec>>> = Vec::new();
        let mut run: Vec<&ObjectSpec> = Vec::new();
        let merged = |expander: &mut Self, run: &[&ObjectSpec]| {
            let spec = expander.conjoin_objects(program, run)?;
            Ok::<Vec<_>, LimitExceeded>(spec.into_iter().map(Arc::new).collect())
        };
        for part in parts {
            match &part.objects[..] {
                [] => return Ok(Vec::new()),
                [single] if single.is_any() => {}
                [single] => run.push(single),
                several => {
                    if !run.is_empty() {
                        lists.push(merged(self, &run)?);
                        run.clear();
                    }
                    lists.push(several.to_vec());
                }
            }
        }
        if !run.is_empty() {
            lists.push(merged(self, &run)?);
        }
        if lists.is_empty() {
            return Ok(vec![Arc::new(ObjectSpec::any())]);
        }
        self.product(
            lists.iter().map(|list| &list[..]),
            |_| false,
            |expander, left, right| {
                Ok(expander.conjoin_objects(program, &[left, right])?.map(Arc::new))
            },
        )
    }

    /// `None` if that is plainly no object.
    pub(super) fn conjoin_objects(
        &mut self,
        program: &Program,
        specs: &[&ObjectSpec],
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        struct Entry<'n> {
            name: &'n Arc<str>,
            required: bool,
            free: bool,
            schemas: SmallVec<[SchemaId; 4]>,
            /// Those of the restrictive specs that declare the name.
            declared_by: SmallVec<[usize; 4]>,
        }
        let open = [KeyClass { keys: None, schema: SchemaId::ANY }];
        let restrictive: SmallVec<[usize; 8]> =
            (0..specs.len()).filter(|&i| specs[i].others != open).collect();
        let mut entries: Vec<Entry> = Vec::new();
        let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
        for (i, spec) in specs.iter().enumerate() {
            self.charge(1 + spec.properties.len())?;
            for property in &spec.properties {
                let place = *by_name.entry(&property.name).or_insert_with(|| {
                    entries.push(Entry {
                        name: &property.name,
                        required: false,
                        free: true,
                        schemas: SmallVec::new(),
                        declared_by: SmallVec::new(),
                    });
                    entries.len() - 1
                });
                let entry = &mut entries[place];
                entry.required |= property.required;
                entry.free &= property.free;
                entry.schemas.push(property.schema);
                if spec.others != open {
                    entry.declared_by.push(i);
                }
            }
        }
        let mut others: Vec<KeyClass> = open.to_vec();
        for &i in &restrictive {
            others = self.classes_both(program, &others, &specs[i].others)?;
        }
        self.charge(entries.len() * restrictive.len())?;
        let mut properties = Vec::with_capacity(entries.len());
        for mut entry in entries {
            if entry.declared_by.len() < restrictive.len() {
                for &i in restrictive.iter().filter(|i| !entry.declared_by.contains(i)) {
                    let schema = self.class_schema(&specs[i].others, entry.name)?;
                    entry.schemas.push(schema);
                }
            }
            let schema = self.both(program, &entry.schemas)?;
            let (name, required, free) = (entry.name.clone(), entry.required, entry.free);
            properties.push(Property { name, schema, required, free });
        }
        let mut excluded: Vec<Arc<ObjectSpec>> = Vec::new();
        for spec in specs.iter().flat_map(|spec| &spec.excluded) {
            if !excluded.contains(spec) {
                excluded.push(spec.clone());
            }
        }
        let spec = ObjectSpec {
            properties,
            others,
            min_properties: specs.iter().map(|spec| spec.min_properties).max().unwrap_or(0),
            max_properties: specs.iter().filter_map(|spec| spec.max_properties).min(),
            excluded,
        };
        self.settle_object(program, spec)
    }

    /// The canonical form of an object, with its exclusions simplified by the rest; `None` if it is
    /// clearly empty.
    pub(super) fn settle_object(
        &mut self,
        program: &Program,
        spec: ObjectSpec,
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        match self.settle_members(spec)? {
            Some(spec) if !spec.excluded.is_empty() => self.settle_exclusions(program, spec),
            settled => Ok(settled),
        }
    }

    /// As [`Self::settle_object`], with the exclusions as they are.
    pub(super) fn settle_members(
        &mut self,
        mut spec: ObjectSpec,
    ) -> Result<Option<ObjectSpec>, LimitExceeded> {
        self.list_keys(&mut spec)?;
        if spec.properties.iter().any(|p| p.required && p.schema == SchemaId::NEVER) {
            return Ok(None);
        }
        if spec.others.is_empty() {
            spec.properties.retain(|property| property.schema != SchemaId::NEVER);
        }
        // Names without a place come last. Any order is allowed for them, so equal objects get the
        // same one.
        if spec.properties.iter().any(|property| property.free) {
            spec.properties.sort_by(|a, b| match (a.free, b.free) {
                (true, true) => a.name.cmp(&b.name),
                (a, b) => a.cmp(&b),
            });
        }
        let required = spec.properties.iter().filter(|p| p.required).count() as u64;
        if spec.min_properties <= required {
            spec.min_properties = 0;
        }
        if spec.others.is_empty() {
            let longest = spec.properties.len() as u64;
            spec.max_properties = spec.max_properties.filter(|&max| max < longest);
            if spec.min_properties > longest {
                return Ok(None);
            }
        }
        if spec.max_properties.is_some_and(|max| max < required.max(spec.min_properties)) {
            return Ok(None);
        }
        Ok(Some(spec))
    }

    pub(super) fn conjoin_arrays(
        &mut self,
        program: &Program,
        left: &ArraySpec,
        right: &ArraySpec,
    ) -> Result<Option<ArraySpec>, LimitExceeded> {
        let length = left.prefix.len().max(right.prefix.len());
        self.charge(length)?;
        let at = |spec: &ArraySpec, place: usize| {
            spec.prefix.get(place).copied().or(spec.items).unwrap_or(SchemaId::NEVER)
        };
        let mut both = |place| self.both(program, &[at(left, place), at(right, place)]);
        let prefix = (0..length).map(&mut both).collect::<Result<_, _>>()?;
        let items = both(length)?;
        let mut contains: Vec<Contains> = left.contains.clone();
        for other in &right.contains {
            let same =
                |known: &&mut Contains| known.schema == other.schema && known.from == other.from;
            match contains.iter_mut().find(same) {
                Some(known) => {
                    known.min = known.min.max(other.min);
                    known.max = [known.max, other.max].into_iter().flatten().min();
                }
                None => contains.push(other.clone()),
            }
        }
        let max_items = [left.max_items, right.max_items].into_iter().flatten().min();
        let min_items = left.min_items.max(right.min_items);
        Ok(settle_array(ArraySpec {
            prefix,
            items: Some(items),
            min_items,
            max_items,
            contains,
            unique: left.unique || right.unique,
            repeats: left.repeats || right.repeats,
        }))
    }
}

/// The canonical form: no place past the longest array, no item that is plainly forbidden. `None`
/// if no length is left.
pub fn settle_array(mut spec: ArraySpec) -> Option<ArraySpec> {
    if spec.unique && spec.repeats {
        return None;
    }
    if spec.contains.iter().any(|c| c.max.is_some_and(|max| max < c.min)) {
        return None;
    }
    for contains in &spec.contains {
        if contains.min > 0 {
            if contains.schema == SchemaId::NEVER {
                return None;
            }
            spec.min_items = spec.min_items.max(contains.from.saturating_add(contains.min));
        }
    }
    spec.contains.retain(|contains| {
        contains.schema != SchemaId::NEVER && (contains.min > 0 || contains.max.is_some())
    });
    spec.items = spec.items.filter(|&items| items != SchemaId::NEVER);
    if let Some(place) = spec.prefix.iter().position(|&item| item == SchemaId::NEVER) {
        spec.prefix.truncate(place);
        spec.items = None;
    }
    let prefix = spec.prefix.len() as u64;
    if spec.items.is_none() {
        spec.max_items = Some(spec.max_items.map_or(prefix, |maximum| maximum.min(prefix)));
    }
    if let Some(maximum) = spec.max_items {
        if maximum < spec.min_items {
            return None;
        }
        if maximum <= prefix {
            spec.prefix.truncate(maximum as usize);
            spec.items = None;
        }
        if maximum < 2 {
            if spec.repeats {
                return None;
            }
            spec.unique = false;
        }
    }
    Some(spec)
}

/// `None` if that is plainly no string.
pub fn conjoin_strings(left: &StringSpec, right: &StringSpec) -> Option<StringSpec> {
    let mut languages = left.languages.clone();
    for language in &right.languages {
        if let Err(place) = languages.binary_search(language) {
            languages.insert(place, language.clone());
        }
    }
    let one_of = match (&left.one_of, &right.one_of) {
        (Some(mine), Some(others)) => {
            Some(mine.iter().filter(|v| others.binary_search(v).is_ok()).cloned().collect())
        }
        (mine, others) => mine.clone().or_else(|| others.clone()),
    };
    settle_string(StringSpec {
        min_length: left.min_length.max(right.min_length),
        max_length: [left.max_length, right.max_length].into_iter().flatten().min(),
        languages,
        one_of,
    })
}

/// The canonical form: lengths are applied to the values, if there are any. `None` if nothing is
/// left.
pub fn settle_string(mut spec: StringSpec) -> Option<StringSpec> {
    if spec.max_length.is_some_and(|maximum| maximum < spec.min_length) {
        return None;
    }
    if let Some(values) = spec.one_of.take() {
        let fits = |value: &&Arc<str>| {
            let length = value.chars().count() as u64;
            length >= u64::from(spec.min_length)
                && spec.max_length.is_none_or(|maximum| length <= u64::from(maximum))
        };
        let unbounded = spec.min_length == 0 && spec.max_length.is_none();
        let kept: Arc<[Arc<str>]> =
            if unbounded { values } else { values.iter().filter(fits).cloned().collect() };
        if kept.is_empty() {
            return None;
        }
        spec.one_of = Some(kept);
        spec.min_length = 0;
        spec.max_length = None;
    }
    Some(spec)
}
