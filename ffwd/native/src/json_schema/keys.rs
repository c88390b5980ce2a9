//! The keys that an object does not declare, in classes that have no key in common.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::error::LimitExceeded;
use super::expand::Expander;
use super::program::Program;
use super::{KeyClass, ObjectSpec, Property, SchemaId};
use crate::regex::Ast;

impl Expander {
    /// The classes that patterns make, of which several may match a key; `additional` is what the
    /// other keys must satisfy.
    pub(super) fn key_classes(
        &mut self,
        program: &Program,
        patterns: &[(&Ast, SchemaId)],
        additional: SchemaId,
    ) -> Result<Vec<KeyClass>, LimitExceeded> {
        // Keys, the schema of the patterns that match, and whether there is one.
        let mut classes: Vec<(Option<Ast>, SchemaId, bool)> = vec![(None, SchemaId::ANY, false)];
        for &(keys, schema) in patterns {
            let mut split = Vec::with_capacity(classes.len() + 1);
            for (known, satisfies, matched) in classes {
                self.charge(1)?;
                let inside = match &known {
                    None => keys.clone(),
                    Some(known) => Ast::intersection([known.clone(), keys.clone()]),
                };
                let outside = match known {
                    None => Ast::complement(keys.clone()),
                    Some(known) => Ast::intersection([known, Ast::complement(keys.clone())]),
                };
                if !self.languages.is_empty(&inside)? {
                    let schema = self.both(program, &[satisfies, schema])?;
                    split.push((Some(inside), schema, true));
                }
                if !self.languages.is_empty(&outside)? {
                    split.push((Some(outside), satisfies, matched));
                }
            }
            self.check_width(split.len())?;
            classes = split;
        }
        let mut merged: Vec<KeyClass> = Vec::with_capacity(classes.len());
        for (keys, satisfies, matched) in classes {
            let schema = if matched { satisfies } else { additional };
            if schema == SchemaId::NEVER {
                continue;
            }
            match merged.iter_mut().find(|class| class.schema == schema) {
                Some(class) => {
                    let both = [class.keys.take(), keys].into_iter().flatten();
                    class.keys = Some(Ast::alternation(both));
                }
                None => merged.push(KeyClass { keys, schema }),
            }
        }
        // All keys, however they are spelled out.
        if let [class] = &mut merged[..] {
            if let Some(keys) = &class.keys {
                if self.languages.is_empty(&Ast::complement(keys.clone()))? {
                    class.keys = None;
                }
            }
        }
        Ok(merged)
    }

    /// What a key that is not declared must satisfy; [`SchemaId::NEVER`] if it is in no class.
    pub(super) fn class_schema(
        &mut self,
        classes: &[KeyClass],
        name: &Arc<str>,
    ) -> Result<SchemaId, LimitExceeded> {
        for class in classes {
            let inside = match &class.keys {
                None => true,
                Some(keys) => self.languages.contains(keys, name)?,
            };
            if inside {
                return Ok(class.schema);
            }
        }
        Ok(SchemaId::NEVER)
    }

    /// The keys that are in a class of both, which then must satisfy both.
    pub(super) fn classes_both(
        &mut self,
        program: &Program,
        left: &[KeyClass],
        right: &[KeyClass],
    ) -> Result<Vec<KeyClass>, LimitExceeded> {
        let any = |classes: &[KeyClass]| {
            matches!(classes, [KeyClass { keys: None, schema: SchemaId::ANY }])
        };
        if any(left) || left == right {
            return Ok(right.to_vec());
        }
        if any(right) {
            return Ok(left.to_vec());
        }
        let mut classes = Vec::new();
        self.charge(left.len() * right.len())?;
        for a in left {
            for b in right {
                let schema = self.both(program, &[a.schema, b.schema])?;
                if schema == SchemaId::NEVER {
                    continue;
                }
                let keys = match (&a.keys, &b.keys) {
                    (None, keys) | (keys, None) => keys.clone(),
                    (Some(a), Some(b)) if a == b => Some(a.clone()),
                    (Some(a), Some(b)) => {
                        let both = Ast::intersection([a.clone(), b.clone()]);
                        if self.languages.is_empty(&both)? {
                            continue;
                        }
                        Some(both)
                    }
                };
                classes.push(KeyClass { keys, schema });
            }
        }
        self.check_width(classes.len())?;
        Ok(classes)
    }

    /// Makes properties of the classes that plainly have few keys.
    pub(super) fn list_keys(&mut self, spec: &mut ObjectSpec) -> Result<(), LimitExceeded> {
        if spec.others.iter().all(|class| class.keys.is_none()) {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(spec.others.len());
        let mut declared: Option<FxHashSet<Arc<str>>> = None;
        for class in std::mem::take(&mut spec.others) {
            let listed = match &class.keys {
                Some(keys) => self.languages.list(keys)?,
                None => None,
            };
            let Some(names) = listed else {
                kept.push(class);
                continue;
            };
            self.charge(names.len())?;
            let declared = declared.get_or_insert_with(|| {
                spec.properties.iter().map(|property| property.name.clone()).collect()
            });
            for name in names {
                if declared.insert(name.clone()) {
                    let schema = class.schema;
                    spec.properties.push(Property { name, schema, required: false, free: true });
                }
            }
        }
        spec.others = kept;
        Ok(())
    }
}
