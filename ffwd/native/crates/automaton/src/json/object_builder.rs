//! Puts the object alternatives of one query together.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::json::keys::{written, Names};
use crate::json::monitor::{Ask, Asks, Claims, Exclusion, Monitor, Role, Unnamed};
use crate::json::object_group::{ObjectGroup, OpenKeys};
use crate::json::punctuation::index;
use crate::json::punctuation::spec as lexeme_spec;
use crate::json::tables::Json;
use crate::stacks::ids::{LexemeId, NameId, ObjectGroupId};
use crate::stacks::on::On;
use crate::writing::PropertyOrder;
use ffwd_bounds::error::LimitExceeded;
use ffwd_json_schema::{ObjectSpec, SchemaId};
use ffwd_regular::expr::lexeme::{Ends, MAX_LANGUAGES};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// A pattern with at most this many keys is replaced by names.
const MAX_LISTED: u64 = 4096;
/// The most classes of keys that one alternative and its exclusions may distinguish.
const MAX_CLASSES: usize = 1024;

/// Undeclared keys that an alternative and its exclusions do not distinguish.
struct Class {
    keys: Option<Ast>,
    schema: SchemaId,
    asks: Vec<Ask>,
}

/// Builds a group.
struct Builder<'a, O> {
    on: &'a O,
    json: &'a Json,
    names: FxHashSet<Box<[u8]>>,
    languages: Vec<Option<Ast>>,
}

impl Json {
    pub(crate) fn object_group(
        &self,
        on: &impl On,
        objects: Vec<(Arc<ObjectSpec>, Verdict)>,
        required: Verdict,
    ) -> Result<ObjectGroupId> {
        // Whether an observed alternative holds does not depend on the order of the properties.
        let in_order = |owners: Verdict| {
            self.property_order == PropertyOrder::Declared && owners & required != 0
        };
        let mut alternatives: Vec<(Arc<ObjectSpec>, Verdict)> = Vec::with_capacity(objects.len());
        for (spec, owners) in objects {
            let same = |known: &&mut (Arc<ObjectSpec>, Verdict)| {
                known.0 == spec && (known.1 & required != 0) == (owners & required != 0)
            };
            match alternatives.iter_mut().find(same) {
                Some((_, known)) => *known |= owners,
                None => alternatives.push((spec, owners)),
            }
        }
        let mut builder =
            Builder { on, json: self, names: FxHashSet::default(), languages: Vec::new() };
        let mut classes = Vec::with_capacity(alternatives.len());
        for (spec, _) in &alternatives {
            builder.add_names(spec);
            for excluded in &spec.excluded {
                builder.add_names(excluded);
            }
            classes.push(builder.classes(spec)?);
        }
        let mut names: Vec<Box<[u8]>> = std::mem::take(&mut builder.names).into_iter().collect();
        names.sort_unstable();
        let names: Names = names.into();
        let mut monitors = Vec::with_capacity(alternatives.len());
        for ((spec, owners), classes) in alternatives.into_iter().zip(classes) {
            let in_order = in_order(owners);
            monitors.push(builder.monitor(spec, owners, in_order, &names, classes)?);
        }
        let cap = monitors.iter().map(Monitor::cap).max().unwrap_or(0);
        let group = ObjectGroup {
            remembers_keys: builder.languages.iter().any(Option::is_some)
                || monitors.iter().any(|monitor| !monitor.exclusions.is_empty()),
            monitors,
            required,
            names,
            languages: builder.languages,
            lexemes: Mutex::default(),
            start: OnceLock::new(),
            cap,
        };
        self.held.add(group.memory_bytes());
        Ok(ObjectGroupId(self.object_groups.push(group) as u32))
    }

    /// The lexeme of the undeclared keys, if some are allowed.
    pub(crate) fn other_keys(
        &self,
        on: &impl On,
        group: &ObjectGroup,
        open: OpenKeys,
    ) -> Result<Option<LexemeId>> {
        if open.required == 0 {
            return Ok(None);
        }
        if open.languages().all(|language| group.languages[language].is_none()) {
            return Ok(Some(index::ANY_STRING));
        }
        if let Some(&known) = group.lexemes.lock().get(&open) {
            return Ok(Some(known));
        }
        let languages = open
            .languages()
            .map(|language| group.languages[language].clone().unwrap_or_else(Ast::any_text))
            .collect();
        let required = open
            .languages()
            .enumerate()
            .filter(|(_, language)| open.required >> language & 1 == 1)
            .fold(0, |bits, (bit, _)| bits | 1 << bit);
        let spelling = Spelling::JsonString;
        let spec = LexemeSpec {
            spelling,
            languages,
            required,
            follow: None,
            follows_itself: false,
            ends: Ends::Anywhere,
        };
        let lexeme = on.add_lexeme(&spec)?;
        group.lexemes.lock().insert(open, lexeme);
        Ok(Some(lexeme))
    }
}

impl<O: On> Builder<'_, O> {
    fn add_names(&mut self, spec: &ObjectSpec) {
        for property in &spec.properties {
            self.names.insert(written(&property.name));
        }
    }

    fn language(&mut self, keys: &Option<Ast>) -> Result<u32> {
        if let Some(known) = self.languages.iter().position(|known| known == keys) {
            return Ok(known as u32);
        }
        if self.languages.len() >= MAX_LANGUAGES {
            let what = "key_patterns";
            return Err(LimitExceeded::new(what, MAX_LANGUAGES).into());
        }
        self.languages.push(keys.clone());
        Ok(self.languages.len() as u32 - 1)
    }

    /// Returns the classes of the keys without a name. If they are few, the keys become names.
    fn classes(&mut self, spec: &ObjectSpec) -> Result<Vec<Unnamed>> {
        let mut classes: Vec<Class> = Vec::with_capacity(spec.others.len());
        for class in &spec.others {
            // What is left of an object with exclusions depends on the earlier ones of few keys.
            if spec.excluded.is_empty() || self.is_endless(class.keys.as_ref())? {
                let (keys, schema) = (class.keys.clone(), class.schema);
                classes.push(Class { keys, schema, asks: Vec::new() });
            }
        }
        for excluded in &spec.excluded {
            classes = self.refine(classes, excluded)?;
        }
        let mut unnamed = Vec::with_capacity(classes.len());
        for class in classes {
            let language = self.language(&class.keys)?;
            unnamed.push(Unnamed::new(language, class.schema, class.asks.into()));
        }
        Ok(unnamed)
    }

    /// Splits classes by the demands of an excluded alternative.
    fn refine(&mut self, classes: Vec<Class>, excluded: &ObjectSpec) -> Result<Vec<Class>> {
        let mut rest = Vec::new();
        let mut parts: Vec<(Option<Ast>, Ask)> = Vec::new();
        for class in &excluded.others {
            rest.extend(class.keys.clone());
            parts.push((class.keys.clone(), ask(class.schema)));
        }
        if rest.len() == excluded.others.len() {
            let rest = match rest.is_empty() {
                true => None,
                false => Some(Ast::complement(Ast::alternation(rest))),
            };
            parts.push((rest, Ask::Forbids));
        }
        let mut refined = Vec::new();
        for class in classes {
            for (keys, ask) in &parts {
                let both = match (&class.keys, keys) {
                    (mine, None) => mine.clone(),
                    (None, theirs) => theirs.clone(),
                    (Some(mine), Some(theirs)) => {
                        Some(Ast::intersection([mine.clone(), theirs.clone()]))
                    }
                };
                if both != class.keys && !self.is_endless(both.as_ref())? {
                    continue;
                }
                let mut asks = class.asks.clone();
                asks.push(*ask);
                refined.push(Class { keys: both, schema: class.schema, asks });
                if refined.len() > MAX_CLASSES {
                    let what = "key_classes";
                    return Err(LimitExceeded::new(what, MAX_CLASSES).into());
                }
            }
        }
        Ok(refined)
    }

    /// Whether there are more keys than can be listed; those that can become names.
    fn is_endless(&mut self, keys: Option<&Ast>) -> Result<bool> {
        let Some(keys) = keys else { return Ok(true) };
        let lexeme = self.on.add_lexeme(&lexeme_spec(Spelling::JsonString, [keys.clone()]))?;
        let lexeme = self.on.lexeme(lexeme);
        if !lexeme.is_alive() {
            return Ok(false);
        }
        let Some(texts) = self.json.keys.texts(lexeme, MAX_LISTED)? else { return Ok(true) };
        for text in texts {
            // Without the closing quote.
            self.names.insert(text[..text.len() - 1].into());
        }
        Ok(false)
    }

    /// The class of a name that is not declared.
    fn class_of(&self, spec: &ObjectSpec, name: &[u8]) -> Result<Option<usize>> {
        for (at, class) in spec.others.iter().enumerate() {
            let Some(keys) = &class.keys else { return Ok(Some(at)) };
            let lexeme = self.on.add_lexeme(&lexeme_spec(Spelling::JsonString, [keys.clone()]))?;
            let lexeme = self.on.lexeme(lexeme);
            let mut state = lexeme.is_alive().then(|| lexeme.start());
            for &byte in name.iter().chain(b"\"") {
                state = match state {
                    Some(state) => lexeme.next(state, byte)?,
                    None => break,
                };
            }
            if state.is_some_and(|state| state.accepts()) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn roles(
        &self,
        spec: &ObjectSpec,
        names: &[Box<[u8]>],
        name_of: &[NameId],
    ) -> Result<Vec<Role>> {
        let mut declared: Vec<Option<u32>> = vec![None; names.len()];
        for (property, &name) in name_of.iter().enumerate() {
            declared[name.0 as usize] = Some(property as u32);
        }
        let role = |(declared, bytes): (&Option<u32>, &[u8])| {
            Ok(match declared {
                Some(property) => Role::Property(*property),
                None => match self.class_of(spec, bytes)? {
                    Some(class) => Role::Class(class as u32),
                    None => Role::Forbidden,
                },
            })
        };
        declared.iter().zip(names.iter().map(|name| &**name)).map(role).collect()
    }

    fn monitor(
        &self,
        spec: Arc<ObjectSpec>,
        owners: Verdict,
        in_order: bool,
        names: &[Box<[u8]>],
        unnamed: Vec<Unnamed>,
    ) -> Result<Monitor> {
        // Every name of a specification is among the names of the group.
        let names_of = |spec: &ObjectSpec| -> Vec<NameId> {
            let place =
                |name: &str| NameId(names.partition_point(|known| **known < *written(name)) as u32);
            spec.properties.iter().map(|property| place(&property.name)).collect()
        };
        let name_of = names_of(&spec);
        let roles = self.roles(&spec, names, &name_of)?;
        let mut exclusions = Vec::with_capacity(spec.excluded.len());
        for excluded in &spec.excluded {
            let name_of = names_of(excluded);
            let asks = if matches!(&excluded.others[..], [class] if class.is_any()) {
                let few = excluded.properties.iter().zip(&name_of);
                let mut few: Vec<(NameId, Ask)> =
                    few.map(|(property, &name)| (name, ask(property.schema))).collect();
                few.sort_unstable_by_key(|&(name, _)| name);
                Asks::Few(few)
            } else {
                let roles = self.roles(excluded, names, &name_of)?;
                let asks = roles.into_iter().map(|role| match role {
                    Role::Forbidden => Ask::Forbids,
                    Role::Property(at) => ask(excluded.properties[at as usize].schema),
                    Role::Class(at) => ask(excluded.others[at as usize].schema),
                });
                Asks::All(asks.collect())
            };
            let required = excluded.properties.iter().zip(&name_of);
            let required =
                required.filter(|(property, _)| property.required).map(|(_, &name)| name).collect();
            let spec = excluded.clone();
            exclusions.push(Exclusion { spec, asks, name_of, required });
        }
        let set = &self.json.schema;
        let claims = Claims { roles, name_of: &name_of, unnamed, exclusions };
        Monitor::new(set, spec, owners, in_order, claims)
    }
}

fn ask(schema: SchemaId) -> Ask {
    if schema == SchemaId::NEVER {
        Ask::Forbids
    } else {
        Ask::Value(schema)
    }
}
