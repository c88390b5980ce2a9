//! Terminals as regular languages.

use rustc_hash::FxHashMap;

use super::ast::{Atom, Choice, Element, Value};
use super::definitions::{Definitions, Named};
use super::fault::Fault;
use super::language::{Language, Languages};
use super::substring;
use crate::{Condition, GrammarErrorKind};

/// The terminals of one grammar that were requested so far.
#[derive(Debug, Default)]
pub(super) struct Terminals<'t> {
    known: FxHashMap<&'t str, TerminalState>,
}

#[derive(Debug)]
enum TerminalState {
    /// In progress: it needs other terminals.
    Open,
    Known(Language),
}

impl<'t> Terminals<'t> {
    /// Returns whether a terminal was requested.
    pub fn is_known(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// The language of a terminal that is used at a byte.
    ///
    /// Its own terminals come first, on an explicit stack, because chains of them may be long.
    pub fn language(
        &mut self,
        definitions: &Definitions<'_, 't>,
        languages: &mut Languages<'t>,
        at: usize,
        name: &'t str,
    ) -> Result<Language, Fault> {
        let mut open = vec![(at, name)];
        while let Some(&(at, name)) = open.last() {
            let body = match definitions.names.get(name) {
                Some(Named::Terminal(definition)) => &definition.body,
                Some(&Named::Imported(pattern, imported)) => {
                    if !self.known.contains_key(name) {
                        let language = languages.regex(imported, pattern, "")?;
                        self.known.insert(name, TerminalState::Known(language));
                    }
                    open.pop();
                    continue;
                }
                Some(Named::Rule(_)) => {
                    let message = format!(
                        "a terminal cannot contain the rule `{name}`: write it in upper case, as a \
                         terminal"
                    );
                    return Err(Fault::syntax(at, message));
                }
                Some(Named::Declared) => {
                    let message =
                        format!("`{name}` is declared, and has no text within a terminal");
                    return Err(Fault::unsupported(at, "declared terminals in terminals", message));
                }
                None => return Err(unknown(at, name)),
            };
            match self.known.get(name) {
                Some(TerminalState::Known(_)) => {
                    open.pop();
                }
                Some(TerminalState::Open) => {
                    let language = self.choice(languages, body)?;
                    self.known.insert(name, TerminalState::Known(language));
                    open.pop();
                }
                None => {
                    self.known.insert(name, TerminalState::Open);
                    self.ask(definitions, body, &mut open)?;
                }
            }
        }
        match self.known.get(name) {
            Some(TerminalState::Known(language)) => Ok(language.clone()),
            _ => Err(unknown(at, name)),
        }
    }

    /// The language of an expression in a terminal's body.
    pub fn inline(
        &mut self,
        definitions: &Definitions<'_, 't>,
        languages: &mut Languages<'t>,
        choice: &Choice<'t>,
    ) -> Result<Language, Fault> {
        for (at, name) in used(choice) {
            self.language(definitions, languages, at, name)?;
        }
        self.choice(languages, choice)
    }

    /// The same for a single atom.
    pub fn inline_atom(
        &mut self,
        definitions: &Definitions<'_, 't>,
        languages: &mut Languages<'t>,
        at: usize,
        atom: &Atom<'t>,
    ) -> Result<Language, Fault> {
        let mut names = Vec::new();
        used_by_atom(at, atom, &mut names);
        for (at, name) in names {
            self.language(definitions, languages, at, name)?;
        }
        self.atom(languages, at, atom)
    }

    /// Pushes the terminals that a body names and that have no language yet.
    fn ask(
        &self,
        definitions: &Definitions<'_, 't>,
        body: &Choice<'t>,
        open: &mut Vec<(usize, &'t str)>,
    ) -> Result<(), Fault> {
        for (at, name) in used(body) {
            match self.known.get(name) {
                Some(TerminalState::Known(_)) => {}
                Some(TerminalState::Open) => {
                    let message = format!(
                        "the terminal `{name}` contains itself: terminals are regular, so write it in \
                         lower case, as a rule"
                    );
                    return Err(Fault::unsupported(at, "recursive terminals", message));
                }
                None if definitions.names.contains_key(name) => open.push((at, name)),
                None => return Err(unknown(at, name)),
            }
        }
        Ok(())
    }

    fn choice(
        &self,
        languages: &mut Languages<'t>,
        choice: &Choice<'t>,
    ) -> Result<Language, Fault> {
        let mut options = Vec::with_capacity(choice.alternatives.len());
        for alternative in &choice.alternatives {
            if let Some((at, condition)) = &alternative.condition {
                if *condition != Condition::True {
                    let message = "`%if` asks about the parameter of a rule; terminals have none";
                    return Err(Fault::syntax(*at, message));
                }
            }
            let mut conjuncts = Vec::with_capacity(alternative.conjuncts.len());
            for elements in &alternative.conjuncts {
                let mut parts = Vec::with_capacity(elements.len());
                for element in elements {
                    parts.push(self.element(languages, element)?);
                }
                let at = elements.first().map_or(choice.at, |element| element.at);
                conjuncts.push(languages.concat(at, parts)?);
            }
            options.push(languages.intersection(choice.at, conjuncts)?);
        }
        languages.choice(choice.at, options)
    }

    fn element(
        &self,
        languages: &mut Languages<'t>,
        element: &Element<'t>,
    ) -> Result<Language, Fault> {
        let inner = self.atom(languages, element.at, &element.atom)?;
        match element.count {
            None => Ok(inner),
            Some((min, max)) => languages.repeat(element.at, inner, min, max),
        }
    }

    fn atom(
        &self,
        languages: &mut Languages<'t>,
        at: usize,
        atom: &Atom<'t>,
    ) -> Result<Language, Fault> {
        match atom {
            Atom::Group(choice) => self.choice(languages, choice),
            Atom::Optional(choice) => {
                let inner = self.choice(languages, choice)?;
                languages.repeat(at, inner, 0, Some(1))
            }
            Atom::Not(inner) => {
                let inner = self.atom(languages, at, inner)?;
                languages.complement(at, inner)
            }
            Atom::Value(value) => self.value(languages, at, value),
        }
    }

    /// The language of a value that is no name.
    pub fn value(
        &self,
        languages: &mut Languages<'t>,
        at: usize,
        value: &Value<'t>,
    ) -> Result<Language, Fault> {
        let what = match value {
            Value::Name(name) => {
                return match self.known.get(name) {
                    Some(TerminalState::Known(language)) => Ok(language.clone()),
                    _ => Err(unknown(at, name)),
                }
            }
            Value::Text { text, ignore_case } => return languages.text(at, text, *ignore_case),
            &Value::Range(first, last) => return languages.range(at, first, last),
            &Value::Regex { at, pattern, flags } => return languages.regex(at, pattern, flags),
            Value::Substring(text) => return languages.simple(at, substring::language(at, text)?),
            Value::Special(_) => "special tokens",
            Value::Json(_) => "`%json`",
            Value::Nested(_) => "`%lark`",
            Value::Reference(_) => "other grammars",
            Value::Parametric(..) => "rules with a parameter",
            Value::Template(..) => "templates",
        };
        let message = format!(
            "{what} cannot stand within a terminal, nor in the body of a rule that is lazy or has a \
             suffix or stop"
        );
        Err(Fault::syntax(at, message))
    }
}

fn unknown(at: usize, name: &str) -> Fault {
    let message = format!("`{name}` is not defined");
    Fault::new(at, GrammarErrorKind::UnknownRule, message)
}

/// The names that a choice uses, and where.
fn used<'t>(choice: &Choice<'t>) -> Vec<(usize, &'t str)> {
    let mut names = Vec::new();
    used_by(choice, &mut names);
    names
}

fn used_by<'t>(choice: &Choice<'t>, names: &mut Vec<(usize, &'t str)>) {
    for element in choice.alternatives.iter().flat_map(|one| one.conjuncts.iter().flatten()) {
        used_by_atom(element.at, &element.atom, names);
    }
}

fn used_by_atom<'t>(at: usize, atom: &Atom<'t>, names: &mut Vec<(usize, &'t str)>) {
    match atom {
        Atom::Group(choice) | Atom::Optional(choice) => used_by(choice, names),
        Atom::Not(inner) => used_by_atom(at, inner, names),
        Atom::Value(Value::Name(name)) => names.push((at, name)),
        Atom::Value(_) => {}
    }
}
