//! Names whose values many exclusions distinguish by constants.
//!
//! Each constant is a class, and all other values form one more: the class of a member's value
//! determines which exclusions it satisfies. The query therefore asks for the digits of the class's
//! number instead of one schema per exclusion, and completions of the object are searched class by
//! class.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::json::exclusion_set::ExclusionSet;
use ffwd_bounds::meter;
use ffwd_json_schema::{SchemaId, SchemaSet, ValueId};

/// The number of exclusions that distinguish a name's values by constants from which on it has a
/// table.
const MIN_TOLD_APART: usize = 12;

/// The demand of one exclusion on the name.
#[derive(Debug)]
struct Told {
    exclusion: u32,
    /// Sorted.
    classes: Box<[u32]>,
    /// Whether all other classes suit it.
    negated: bool,
}

/// The classes of the values of one name.
#[derive(Debug)]
pub struct Cases {
    /// Those of the classes from 1 on; 0 is all other values.
    values: Vec<ValueId>,
    told: Vec<Told>,
    /// The exclusions that the class decides.
    pub decided: ExclusionSet,
    /// For each binary digit, the values whose class has it.
    pub digits: Vec<SchemaId>,
}

impl Cases {
    /// `asks` has exclusions, and what they ask of the name.
    pub fn new(
        set: &SchemaSet,
        exclusions: usize,
        asks: &[(u32, SchemaId)],
    ) -> Result<Option<Self>> {
        if asks.len() < MIN_TOLD_APART {
            return Ok(None);
        }
        let mut listed = Vec::new();
        for &(exclusion, schema) in asks {
            if let Some((values, negated)) = set.listed_values(schema)? {
                listed.push((exclusion, values, negated));
            }
        }
        if listed.len() < MIN_TOLD_APART {
            return Ok(None);
        }
        let mut values: Vec<ValueId> =
            listed.iter().flat_map(|(_, values, _)| values.iter().copied()).collect();
        values.sort_unstable();
        values.dedup();
        meter::charge(values.len())?;
        let class = |value: &ValueId| values.partition_point(|known| known < value) as u32 + 1;
        let mut decided = ExclusionSet::all(exclusions).none();
        let mut told = Vec::with_capacity(listed.len());
        for (exclusion, values, negated) in &listed {
            decided.insert(*exclusion as usize);
            let mut classes: Box<[u32]> = values.iter().map(class).collect();
            classes.sort_unstable();
            told.push(Told { exclusion: *exclusion, classes, negated: *negated });
        }
        let mut digits = Vec::new();
        while values.len() >> digits.len() > 0 {
            let has = |&at: &usize| (at + 1) >> digits.len() & 1 == 1;
            let with_digit = (0..values.len()).filter(has).map(|at| values[at]).collect();
            digits.push(set.one_of_values(with_digit)?);
        }
        Ok(Some(Self { values, told, decided, digits }))
    }

    pub fn memory_bytes(&self) -> usize {
        let told = self.told.iter().map(|told| std::mem::size_of_val(&*told.classes));
        std::mem::size_of::<Self>()
            + std::mem::size_of_val(&*self.values)
            + std::mem::size_of_val(&*self.told)
            + told.sum::<usize>()
            + self.digits.len() * 4
    }

    /// Which of some exclusions a value of a class suits.
    pub fn suited(&self, class: usize, among: &ExclusionSet) -> ExclusionSet {
        let mut suited = among.none();
        for told in &self.told {
            let listed = told.classes.binary_search(&(class as u32)).is_ok();
            if listed != told.negated && among.contains(told.exclusion as usize) {
                suited.insert(told.exclusion as usize);
            }
        }
        suited
    }

    /// The classes that suit the same of some exclusions, with these.
    pub fn alike(&self, among: &ExclusionSet) -> Result<Vec<(ExclusionSet, Vec<usize>)>> {
        let mut of_class: Vec<ExclusionSet> = Vec::with_capacity(self.values.len() + 1);
        let (mut always, mut listing) = (among.none(), 0);
        for told in self.told.iter().filter(|told| among.contains(told.exclusion as usize)) {
            listing += 1 + told.classes.len();
            if told.negated {
                always.insert(told.exclusion as usize);
            }
        }
        meter::charge(1 + listing + self.values.len() * (1 + self.told.len() / 256))?;
        of_class.resize(self.values.len() + 1, always);
        for told in self.told.iter().filter(|told| among.contains(told.exclusion as usize)) {
            for &class in &told.classes {
                match told.negated {
                    true => of_class[class as usize].remove(told.exclusion as usize),
                    false => of_class[class as usize].insert(told.exclusion as usize),
                }
            }
        }
        let mut places: FxHashMap<ExclusionSet, usize> = FxHashMap::default();
        let mut groups: Vec<(ExclusionSet, Vec<usize>)> = Vec::new();
        for (class, suited) in of_class.into_iter().enumerate() {
            let place = *places.entry(suited.clone()).or_insert_with(|| {
                groups.push((suited, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(class);
        }
        Ok(groups)
    }

    /// The values of some classes; `None` for all values.
    pub fn schema(&self, set: &SchemaSet, mut classes: Vec<usize>) -> Result<Option<SchemaId>> {
        classes.sort_unstable();
        if classes.len() > self.values.len() {
            return Ok(None);
        }
        let value = |class: usize| self.values[class - 1];
        if classes.first() != Some(&0) {
            return Ok(Some(set.one_of_values(classes.into_iter().map(value).collect())?));
        }
        let others = (1..=self.values.len()).filter(|class| classes.binary_search(class).is_err());
        let others = set.one_of_values(others.map(value).collect())?;
        Ok(Some(set.negation(others)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffwd_json_schema::SchemaOptions;

    /// Each value's class, composed of its digits, suits the exclusions that ask for the value, and
    /// the negated ones that ask for another.
    #[test]
    fn classes_tell_apart_what_the_values_do() {
        let set = SchemaSet::parse("true", SchemaOptions::new(|_| Ok((false, 0)))).unwrap();
        let equal: Vec<SchemaId> =
            (0..20).map(|number| set.equal_to(&number.to_string()).unwrap()).collect();
        let is_negated = |exclusion: usize| exclusion.is_multiple_of(3);
        let asks: Vec<(u32, SchemaId)> = (0..15)
            .map(|exclusion| match is_negated(exclusion) {
                true => (exclusion as u32, set.negation(equal[exclusion]).unwrap()),
                false => (exclusion as u32, equal[exclusion]),
            })
            .collect();
        let cases = Cases::new(&set, asks.len(), &asks).unwrap().expect("there are enough");
        let all = ExclusionSet::all(asks.len());
        let holds = |schema: SchemaId, value: SchemaId| {
            set.is_satisfiable(set.conjunction(&[schema, value]).unwrap()).unwrap()
        };
        let class_of = |value: SchemaId| {
            let digits = cases.digits.iter().enumerate();
            digits
                .fold(0, |class, (place, &digit)| class | usize::from(holds(digit, value)) << place)
        };
        let groups = cases.alike(&all).unwrap();
        for (number, &value) in equal.iter().enumerate() {
            let class = class_of(value);
            let suited = cases.suited(class, &all);
            for exclusion in 0..asks.len() {
                let asked = (exclusion == number) != is_negated(exclusion);
                assert_eq!(suited.contains(exclusion), asked, "{number} for {exclusion}");
            }
            let (alike, classes) =
                groups.iter().find(|(_, classes)| classes.contains(&class)).unwrap();
            assert_eq!(*alike, suited);
            let schema = cases.schema(&set, classes.clone()).unwrap();
            assert!(schema.is_none_or(|schema| holds(schema, value)));
            for (_, others) in groups.iter().filter(|(other, _)| *other != suited) {
                let schema = cases.schema(&set, others.clone()).unwrap();
                assert!(schema.is_some_and(|schema| !holds(schema, value)), "{number}");
            }
        }
        let mut classes: Vec<usize> = groups.into_iter().flat_map(|(_, classes)| classes).collect();
        classes.sort_unstable();
        assert_eq!(classes, (0..=asks.len()).collect::<Vec<_>>());
    }

    #[test]
    fn few_are_not_told_apart() {
        let set = SchemaSet::parse("true", SchemaOptions::new(|_| Ok((false, 0)))).unwrap();
        let asks = [(0, set.equal_to("1").unwrap())];
        assert!(Cases::new(&set, 1, &asks).unwrap().is_none());
    }
}
