//! A grammar as it is written.

use crate::{Argument, Condition};

/// One line, or more, of a grammar.
#[derive(Debug)]
pub(super) enum Item<'t> {
    Definition(Definition<'t>),
    Ignore(Choice<'t>),
    /// A terminal of a library, and what it is called here.
    Import {
        at: usize,
        path: String,
        name: &'t str,
    },
    Declare {
        at: usize,
        name: &'t str,
    },
    /// The JSON text after `%llguidance`.
    Options {
        at: usize,
        text: &'t str,
    },
}

/// A rule or a terminal.
#[derive(Debug)]
pub(super) struct Definition<'t> {
    pub name: &'t str,
    pub at: usize,
    /// The rule has a parameter: `name::_`.
    pub parametric: bool,
    /// The placeholders of a template.
    pub placeholders: Vec<&'t str>,
    pub attributes: Attributes<'t>,
    pub body: Choice<'t>,
}

/// The attributes in brackets after the name of a rule.
#[derive(Debug, Default)]
pub(super) struct Attributes<'t> {
    pub capture: Option<String>,
    pub lazy: bool,
    pub ending: Option<Ending<'t>>,
    /// The name under which the ending is reported.
    pub stop_capture: Option<String>,
    pub max_tokens: Option<u64>,
    /// Characters after which the rule ends where it can.
    pub max_chars: Option<u32>,
    pub temperature: bool,
}

/// The ending of a rule: `suffix=` or `stop=`.
#[derive(Debug)]
pub(super) struct Ending<'t> {
    pub at: usize,
    pub value: Value<'t>,
    /// `stop=`: what follows the rule may begin with the ending, and then shares it.
    pub hidden: bool,
}

#[derive(Debug)]
pub(super) struct Choice<'t> {
    pub at: usize,
    pub alternatives: Vec<Alternative<'t>>,
}

#[derive(Debug)]
pub(super) struct Alternative<'t> {
    /// The operands of `&`.
    pub conjuncts: Vec<Vec<Element<'t>>>,
    /// `%if`, and where it stands.
    pub condition: Option<(usize, Condition)>,
}

/// An atom and how often it comes; one without a number comes once.
#[derive(Debug)]
pub(super) struct Element<'t> {
    pub at: usize,
    pub atom: Atom<'t>,
    pub count: Option<(u32, Option<u32>)>,
}

#[derive(Debug)]
pub(super) enum Atom<'t> {
    Group(Choice<'t>),
    Optional(Choice<'t>),
    Not(Box<Atom<'t>>),
    Value(Value<'t>),
}

#[derive(Debug)]
pub(super) enum Value<'t> {
    Name(&'t str),
    /// A rule with its parameter's value.
    Parametric(&'t str, Argument),
    /// A template with the arguments of its placeholders.
    Template(&'t str, Vec<Element<'t>>),
    Text {
        text: String,
        ignore_case: bool,
    },
    Range(char, char),
    /// A pattern that begins at a byte.
    Regex {
        at: usize,
        pattern: &'t str,
        flags: &'t str,
    },
    /// `<...>`, with the brackets.
    Special(&'t str),
    Reference(&'t str),
    Json(&'t str),
    Substring(&'t str),
    Nested(Vec<Item<'t>>),
}

impl<'t> Choice<'t> {
    /// Returns its only value.
    pub fn only_value(&self) -> Option<&Value<'t>> {
        let [Alternative { conjuncts, condition: None }] = &self.alternatives[..] else {
            return None;
        };
        let [conjunct] = &conjuncts[..] else { return None };
        match &conjunct[..] {
            [Element { atom: Atom::Value(value), count: None, .. }] => Some(value),
            _ => None,
        }
    }
}
