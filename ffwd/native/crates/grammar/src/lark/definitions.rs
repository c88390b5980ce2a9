//! The definitions of a grammar's names.

use rustc_hash::FxHashMap;

use super::ast::{Choice, Definition, Item};
use super::common;
use super::fault::Fault;
use super::options::Options;
use super::token::names_terminal;
use crate::GrammarErrorKind;

/// The definition of a name. A nested grammar has names of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named<'g, 't> {
    Rule(&'g Definition<'t>),
    Terminal(&'g Definition<'t>),
    /// A terminal of a library, by its pattern, and where it is imported.
    Imported(&'static str, usize),
    /// A terminal that the user of the grammar provides.
    Declared,
}

#[derive(Debug, Default)]
pub(super) struct Definitions<'g, 't> {
    pub names: FxHashMap<&'t str, Named<'g, 't>>,
    pub ignored: Vec<&'g Choice<'t>>,
    pub options: Options,
}

impl<'g, 't> Definitions<'g, 't> {
    pub fn new(items: &'g [Item<'t>]) -> Result<Self, Fault> {
        let mut definitions = Self::default();
        for item in items {
            match item {
                Item::Definition(definition) => {
                    let named = if names_terminal(definition.name) {
                        Named::Terminal(definition)
                    } else {
                        Named::Rule(definition)
                    };
                    definitions.name(definition.at, definition.name, named)?;
                }
                Item::Ignore(choice) => definitions.ignored.push(choice),
                Item::Import { at, path, name } => {
                    definitions.name(*at, name, Named::Imported(imported(*at, path)?, *at))?;
                }
                Item::Declare { at, name } => {
                    definitions.name(*at, name, Named::Declared)?;
                }
                Item::Options { at, text } => definitions.options.merge(*at, text)?,
            }
        }
        Ok(definitions)
    }

    fn name(&mut self, at: usize, name: &'t str, named: Named<'g, 't>) -> Result<(), Fault> {
        match self.names.insert(name, named) {
            None => Ok(()),
            Some(_) => {
                let message = format!("`{name}` is defined twice");
                Err(Fault::new(at, GrammarErrorKind::RepeatedRule, message))
            }
        }
    }
}

fn imported(at: usize, path: &str) -> Result<&'static str, Fault> {
    let Some(name) = path.strip_prefix("common.") else {
        let message = format!("only terminals of `common` can be imported, not `{path}`");
        return Err(Fault::unsupported(at, "imports of other libraries", message));
    };
    common::pattern(name).ok_or_else(|| {
        let message = format!("`common` has no terminal `{name}`; it has {}", common::names());
        Fault::new(at, GrammarErrorKind::UnknownRule, message)
    })
}
