//! Members with undeclared keys that break exclusions: which keys they may have, and which of them
//! may be one member.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::error::LimitExceeded;
use super::evidence::{ObjectWay, Way};
use super::expand::Expander;
use super::languages::MAX_KEYS;
use super::program::Program;
use super::{ObjectSpec, Property, SchemaId};
use ffwd_regular::regex::Ast;

/// A member with a key that the object does not declare.
#[derive(Clone, Debug)]
pub struct Extra {
    /// The keys that it may have, more than a search can use up; `None` for any.
    pub keys: Option<Ast>,
    /// The exclusions that it breaks, which do not declare its key.
    pub breaks: SmallVec<[Arc<ObjectSpec>; 1]>,
    pub schema: SchemaId,
}

impl Extra {
    fn declares(&self, name: &str) -> bool {
        let mut declared = self.breaks.iter().flat_map(|spec| &spec.properties);
        declared.any(|property| *property.name == *name)
    }
}

/// An object with a member of this name.
pub(super) fn with_member(name: &Arc<str>, schema: SchemaId, required: bool) -> ObjectSpec {
    let properties = vec![Property { name: name.clone(), schema, required, free: true }];
    ObjectSpec { properties, ..ObjectSpec::any() }
}

impl Expander {
    /// The keys of a language that neither an object nor its exclusions declare, if the language
    /// has so few that they may be used up. `members`: how many members may need a key.
    pub(super) fn few_keys(
        &mut self,
        keys: Option<&Ast>,
        spec: &ObjectSpec,
        breaks: &[Arc<ObjectSpec>],
        members: usize,
    ) -> Result<Option<Vec<Arc<str>>>, LimitExceeded> {
        let Some(keys) = keys else { return Ok(None) };
        let specs = || std::iter::once(spec).chain(breaks.iter().map(|spec| &**spec));
        let most = MAX_KEYS.max(members);
        let declared = specs().map(|spec| spec.properties.len()).sum::<usize>();
        self.charge(1 + declared)?;
        let Some(mut names) = self.languages.list_exactly(keys, most + declared)? else {
            return Ok(None);
        };
        self.charge(names.len())?;
        let declared: FxHashSet<&str> =
            specs().flat_map(|spec| &spec.properties).map(|property| &*property.name).collect();
        names.retain(|name| !declared.contains(&**name));
        Ok((names.len() <= most).then_some(names))
    }

    /// The ways for an object that has room for fewer members than it needs: several of the further
    /// members are one, or one is a required property. Each way decides about one more of them.
    pub(super) fn ways_with_fewer_members(
        &mut self,
        program: &Program,
        way: &ObjectWay,
        room: u64,
    ) -> Result<Vec<Way>, LimitExceeded> {
        let ObjectWay { spec, extra, apart } = way;
        let Some(coming) = extra.get(*apart) else { return Ok(Vec::new()) };
        self.charge(1 + spec.properties.len())?;
        let without = |at: &[usize]| -> SmallVec<[Extra; 2]> {
            let kept = extra.iter().enumerate().filter(|(place, _)| !at.contains(place));
            kept.map(|(_, extra)| extra.clone()).collect()
        };
        let mut ways = Vec::new();
        let required = spec.properties.iter().filter(|property| property.required);
        for property in required {
            let inside = match &coming.keys {
                None => true,
                Some(keys) => self.languages.contains(keys, &property.name)?,
            };
            if !inside || coming.declares(&property.name) {
                continue;
            }
            let member = with_member(&property.name, coming.schema, true);
            if let Some(both) = self.conjoin_objects(program, &[spec, &member])? {
                let (spec, extra) = (Arc::new(both), without(&[*apart]));
                ways.push(Way::Object(ObjectWay { spec, extra, apart: *apart }));
            }
        }
        for (place, earlier) in extra[..*apart].iter().enumerate() {
            let Some(one) = self.as_one_member(program, earlier, coming)? else { continue };
            match self.few_keys(one.keys.as_ref(), spec, &one.breaks, extra.len())? {
                Some(names) => {
                    for name in names {
                        let member = with_member(&name, one.schema, true);
                        if let Some(both) = self.conjoin_objects(program, &[spec, &member])? {
                            let (spec, extra) = (Arc::new(both), without(&[place, *apart]));
                            ways.push(Way::Object(ObjectWay { spec, extra, apart: *apart - 1 }));
                        }
                    }
                }
                None => {
                    let mut extra = without(&[*apart]);
                    extra[place] = one;
                    ways.push(Way::Object(ObjectWay { spec: spec.clone(), extra, apart: *apart }));
                }
            }
        }
        let required = spec.properties.iter().filter(|property| property.required).count();
        if ((required + apart) as u64) < room {
            ways.push(Way::Object(ObjectWay { apart: *apart + 1, ..way.clone() }));
        }
        Ok(ways)
    }

    /// A member that serves for two; `None` if there is none.
    fn as_one_member(
        &mut self,
        program: &Program,
        one: &Extra,
        other: &Extra,
    ) -> Result<Option<Extra>, LimitExceeded> {
        let schema = self.both(program, &[one.schema, other.schema])?;
        if schema == SchemaId::NEVER {
            return Ok(None);
        }
        let keys = match (&one.keys, &other.keys) {
            (None, keys) | (keys, None) => keys.clone(),
            (Some(a), Some(b)) if a == b => Some(a.clone()),
            (Some(a), Some(b)) => {
                let both = Ast::intersection([a.clone(), b.clone()]);
                if self.languages.is_empty(&both)? {
                    return Ok(None);
                }
                Some(both)
            }
        };
        let breaks = one.breaks.iter().chain(&other.breaks).cloned().collect();
        Ok(Some(Extra { keys, breaks, schema }))
    }
}
