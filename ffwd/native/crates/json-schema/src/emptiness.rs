//! Whether constraints on strings and numbers leave anything.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::LimitExceeded;
use super::lattice::common_step;
use super::number_range::NumberRange;
use super::numbers::{spellings, NumberConstraint};
use super::options::{Numbers, SchemaOptions};
use super::{NumberSpec, StringSpec};
use ffwd_regular::regex::Ast;

/// Values of `enum` that are matched against languages one by one when a normal form is made, also
/// where that takes a search.
const MAX_VALUES_MATCHED: usize = 64;

/// Answers questions about languages; simple cases without asking the automaton.
#[derive(Clone, Copy)]
pub struct Emptiness<'o> {
    pub options: &'o SchemaOptions,
    /// For some languages, a text that belongs to it.
    pub witnesses: &'o FxHashMap<Ast, &'static str>,
}

impl Emptiness<'_> {
    fn language(&self, language: &Ast) -> Result<bool, LimitExceeded> {
        if *language == Ast::Empty {
            return Ok(true);
        }
        if shortest(language).is_some() {
            return Ok(false);
        }
        self.options.languages.is_empty(language, self.options.limits)
    }

    fn witness_length(&self, language: &Ast) -> Option<u64> {
        self.witnesses.get(language).map(|text| text.chars().count() as u64)
    }

    pub fn string(&self, spec: &StringSpec) -> Result<bool, LimitExceeded> {
        let within = |length: u64| {
            length >= u64::from(spec.min_length)
                && spec.max_length.is_none_or(|maximum| length <= u64::from(maximum))
        };
        match (&spec.one_of, &spec.languages[..]) {
            (None, []) => Ok(spec.max_length.is_some_and(|maximum| maximum < spec.min_length)),
            (Some(values), []) => Ok(values.is_empty()),
            (None, [language])
                if shortest(language).is_some_and(within)
                    || self.witness_length(language).is_some_and(within) =>
            {
                Ok(false)
            }
            (Some(values), languages) => {
                let mut work = 0;
                let mut is_one = |value: &Arc<str>| belongs(languages, value, &mut work);
                for value in values.iter().filter(|value| within(value.chars().count() as u64)) {
                    match is_one(value)? {
                        Some(false) => {}
                        Some(true) => return Ok(false),
                        None => return self.language(&spec.language()),
                    }
                }
                Ok(true)
            }
            _ => self.language(&spec.language()),
        }
    }

    /// The string alternative without the values that break its languages, if each can be tested;
    /// `None` if nothing is left.
    pub fn prune_string(&self, spec: &StringSpec) -> Result<Option<StringSpec>, LimitExceeded> {
        let as_it_is = || Ok((!self.string(spec)?).then(|| spec.clone()));
        let (Some(values), false) = (&spec.one_of, spec.languages.is_empty()) else {
            return as_it_is();
        };
        let mut kept: Vec<Arc<str>> = Vec::new();
        let mut work = 0;
        for value in values.iter() {
            if let Some(is_one) = belongs(&spec.languages, value, &mut work)? {
                kept.extend(is_one.then(|| value.clone()));
                continue;
            }
            if values.len() > MAX_VALUES_MATCHED {
                return as_it_is();
            }
            let parts = spec.languages.iter().cloned().chain([Ast::literal(value)]);
            if !self.language(&Ast::intersection(parts))? {
                kept.push(value.clone());
            }
        }
        Ok((!kept.is_empty()).then(|| StringSpec::values(kept)))
    }

    /// The spellings of the numbers; none if there are no numbers.
    pub fn number_spec(&self, range: &NumberRange) -> Result<Option<NumberSpec>, LimitExceeded> {
        if range.is_empty()? {
            return Ok(None);
        }
        let mut constraint = NumberConstraint {
            kinds: range.kinds,
            minimum: range.minimum.clone(),
            maximum: range.maximum.clone(),
            one_of: range.one_of.as_ref().map(|values| values.to_vec()),
            multiple_of: if range.multiple_of.is_empty() { None } else { common_step(range)? },
            not_multiple_of: range.not_multiple_of.clone(),
            none_of: range.none_of.clone(),
            plain: false,
        };
        let text = spellings(&constraint)?;
        let narrow = match self.options.numbers {
            Numbers::Any => None,
            Numbers::Plain => {
                constraint.plain = true;
                Some(spellings(&constraint)?).filter(|narrow| *narrow != text)
            }
        };
        Ok((text != Ast::Empty).then_some(NumberSpec { text, narrow }))
    }

    pub fn number(&self, range: &NumberRange) -> Result<bool, LimitExceeded> {
        range.is_empty()
    }
}

/// Whether a text belongs to all languages; `None` if deciding that is expensive.
fn belongs(languages: &[Ast], text: &str, work: &mut usize) -> Result<Option<bool>, LimitExceeded> {
    for language in languages {
        match language.holds(text, work) {
            Ok(true) => {}
            Ok(false) => return Ok(Some(false)),
            Err(error) if error.is_interruption() => return Err(error),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(true))
}

/// The length in characters of the shortest string of a language without intersection, complement
/// and lookaround; `None` if it has no string, or the length is not simple to find.
fn shortest(language: &Ast) -> Option<u64> {
    match language {
        Ast::Empty
        | Ast::Intersection(_)
        | Ast::Complement(_)
        | Ast::Magnitude(_)
        | Ast::Before(_)
        | Ast::After(_) => None,
        Ast::Approximate { known, .. } => shortest(known),
        Ast::Epsilon | Ast::Substring(_) => Some(0),
        Ast::Finite(finite) => Some(u64::from(!finite.accepts())),
        Ast::Class(class) => (!class.is_empty()).then_some(1),
        Ast::Literal(text) => Some(text.chars().count() as u64),
        Ast::Concat(parts) => {
            parts.iter().try_fold(0u64, |sum, part| Some(sum.saturating_add(shortest(part)?)))
        }
        Ast::Alternation(parts) => parts.iter().filter_map(shortest).min(),
        Ast::Repeat { min: 0, .. } => Some(0),
        Ast::Repeat { inner, min, .. } => Some(shortest(inner)?.saturating_mul((*min).into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffwd_regular::regex::CharClass;

    #[test]
    fn plain_languages_are_not_asked_about() {
        let options = SchemaOptions::new(|language| {
            Ok((matches!(language, Ast::Intersection(parts) if parts.len() == 2), 1))
        });
        let seen = Ast::complement(Ast::literal("no"));
        let witnesses = FxHashMap::from_iter([(seen.clone(), "yes")]);
        let emptiness = Emptiness { options: &options, witnesses: &witnesses };
        let spec = StringSpec { languages: vec![seen], max_length: Some(3), ..StringSpec::any() };
        assert_eq!(emptiness.string(&spec), Ok(false));
        assert_eq!(emptiness.string(&StringSpec { max_length: Some(2), ..spec }), Ok(true));
        let word = Ast::repeat(Ast::Class(CharClass::any()), 3, None);
        assert_eq!(shortest(&Ast::concat([word.clone(), Ast::literal("é!")])), Some(5));
        assert_eq!(shortest(&Ast::alternation([word.clone(), Ast::literal("x")])), Some(1));
        assert_eq!(shortest(&Ast::complement(word.clone())), None);
        let spec = StringSpec { languages: vec![word], max_length: Some(3), ..StringSpec::any() };
        assert_eq!(emptiness.string(&spec), Ok(false));
        assert_eq!(emptiness.string(&StringSpec { max_length: Some(2), ..spec }), Ok(true));
    }
}
