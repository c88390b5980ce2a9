//! The keys that an object does not declare, in classes that have no key in common.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::error::LimitExceeded;
use super::expand::Expander;
use super::languages::{MAX_KEYS, MAX_TEXTS};
use super::program::Program;
use super::{KeyClass, ObjectSpec, Property, SchemaId};
use ffwd_regular::regex::Ast;

impl Expander {
    /// The classes of keys under patterns, several of which may match a key. `additional` is the
    /// schema of the other keys.
    pub(super) fn key_classes(
        &mut self,
        program: &Program,
        patterns: &[(&Ast, SchemaId)],
        additional: SchemaId,
    ) -> Result<Vec<KeyClass>, LimitExceeded> {
        if patterns.is_empty() {
            return Ok(Some(additional)
                .filter(|&schema| schema != SchemaId::NEVER)
                .map(|schema| KeyClass { keys: None, schema })
                .into_iter()
                .collect());
        }
        let mut distinct: Vec<(&Ast, SchemaId)> = Vec::with_capacity(patterns.len());
        for &(keys, schema) in patterns {
            match distinct.iter_mut().find(|(known, _)| *known == keys) {
                Some((_, known)) => *known = self.both(program, &[*known, schema])?,
                None => distinct.push((keys, schema)),
            }
        }
        // Keys, and the schema of the patterns that match.
        let mut classes: Vec<(Ast, SchemaId)> = Vec::with_capacity(distinct.len());
        for &(keys, schema) in &distinct {
            let mut alone = keys.clone();
            let mut split = Vec::with_capacity(classes.len() + 2);
            for (known, satisfies) in classes {
                self.charge(1)?;
                let both = Ast::intersection([known.clone(), keys.clone()]);
                if start_apart(&known, keys) || self.languages.is_empty(&both)? {
                    split.push((known, satisfies));
                    continue;
                }
                let only = Ast::intersection([known.clone(), Ast::complement(keys.clone())]);
                if !self.languages.is_empty(&only)? {
                    split.push((only, satisfies));
                }
                split.push((both, self.both(program, &[satisfies, schema])?));
                alone = Ast::intersection([alone, Ast::complement(known)]);
            }
            if alone == *keys || !self.languages.is_empty(&alone)? {
                split.push((alone, schema));
            }
            self.check_width(split.len())?;
            classes = split;
        }
        if additional != SchemaId::NEVER {
            let matched = Ast::alternation(distinct.iter().map(|(keys, _)| (*keys).clone()));
            let unmatched = Ast::complement(matched);
            if !self.languages.is_empty(&unmatched)? {
                classes.push((unmatched, additional));
            }
        }
        let mut merged: Vec<KeyClass> = Vec::with_capacity(classes.len());
        for (keys, schema) in classes {
            if schema == SchemaId::NEVER {
                continue;
            }
            match merged.iter_mut().find(|class| class.schema == schema) {
                Some(class) => {
                    class.keys =
                        Some(Ast::alternation(class.keys.take().into_iter().chain([keys])));
                }
                None => merged.push(KeyClass { keys: Some(keys), schema }),
            }
        }
        // All keys, in any notation.
        if let ([class], true) = (&mut merged[..], additional != SchemaId::NEVER) {
            if let Some(keys) = &class.keys {
                if self.languages.is_empty(&Ast::complement(keys.clone()))? {
                    class.keys = None;
                }
            }
        }
        Ok(merged)
    }

    /// Returns the schema of an undeclared key; [`SchemaId::NEVER`] if it is in no class.
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

    /// Makes properties of the classes that plainly have few keys and, where members are counted,
    /// of all that have few.
    pub(super) fn list_keys(&mut self, spec: &mut ObjectSpec) -> Result<(), LimitExceeded> {
        if spec.others.iter().all(|class| class.keys.is_none()) {
            return Ok(());
        }
        let required = spec.properties.iter().filter(|property| property.required).count() as u64;
        // Of a class with keys, one is left unless they are declared.
        let sure = u64::from(spec.properties.is_empty());
        let is_counted = spec.min_properties > required + sure;
        let least = usize::try_from(spec.min_properties).unwrap_or(usize::MAX).min(MAX_TEXTS);
        let mut kept = Vec::with_capacity(spec.others.len());
        let mut declared: Option<FxHashSet<Arc<str>>> = None;
        for class in std::mem::take(&mut spec.others) {
            let listed = match &class.keys {
                Some(keys) if is_counted => self.few_keys(Some(keys), spec, &[], least)?,
                Some(keys) => self.languages.list(keys, MAX_KEYS)?,
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

/// Whether no text of one language is a prefix of a text of the other, nor the reverse.
fn start_apart(left: &Ast, right: &Ast) -> bool {
    let (left, right) = (start(left), start(right));
    let shared = left.len().min(right.len());
    left.as_bytes()[..shared] != right.as_bytes()[..shared]
}

/// The common prefix of all texts of a language, as far as it is simple to find.
fn start(language: &Ast) -> &str {
    match language {
        Ast::Literal(text) => text,
        Ast::Concat(parts) => parts.first().map_or("", start),
        _ => "",
    }
}
