//! The automaton's expectations, in words.

use super::names::{Names, RulePlace};
use super::pattern;
use crate::engine::{Compiled, Recipe};
use ffwd_automaton::expected::{Expected, Types, What};
use ffwd_automaton::obstacle::{Obstacle, Why};
use ffwd_automaton::{Automaton, Result};
use ffwd_json_schema::SchemaId;

/// The kind of an allowed item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// The text may end.
    End,
    /// A terminal of a grammar, or the rest of a regular language.
    Terminal,
    /// A token that the grammar names, taken as a whole.
    Token,
    /// A key of an object.
    Key,
    /// A JSON value.
    Value,
    /// A mark of JSON's own syntax, such as a comma.
    Punctuation,
    /// The part before the text of the grammar.
    Before,
}

/// An allowed continuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The kind of `what`.
    pub kind: ItemKind,
    /// A description; for a terminal its text or expression.
    pub what: String,
    /// Whether a part of it is already written.
    pub begun: bool,
    /// The rules that have the terminal.
    pub rules: Vec<RulePlace>,
    /// The JSON pointers of the schemas that require it.
    pub pointers: Vec<String>,
    /// Bytes that complete it.
    pub example: Option<Vec<u8>>,
}

/// Why a continuation is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What is wrong, as a clause without a full stop.
    pub message: String,
    /// The rules whose terminals are allowed instead, at most six.
    pub rules: Vec<RulePlace>,
    /// JSON pointers of the schemas that decide it, at most eight.
    pub pointers: Vec<String>,
}

/// The longest example that is shown, in bytes.
const MAX_EXAMPLE: usize = 200;
/// How many pointers are listed.
const MAX_POINTERS: usize = 8;
const MAX_NAMES: usize = 12;

/// The names and positions in the source of one compiled grammar.
pub struct Describer<'a> {
    automaton: &'a Automaton,
    names: Option<Names<'a>>,
}

impl<'a> Describer<'a> {
    pub fn of(compiled: &'a Compiled, automaton: &'a Automaton) -> Self {
        match compiled.recipe() {
            Recipe::Rules { grammar, .. } => Self { automaton, names: Some(Names::of(grammar)) },
            _ => Self { automaton, names: None },
        }
    }

    pub fn items(&self, expected: Vec<Expected>) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(expected.len());
        for Expected { what, begun, schemas, example } in expected {
            let example = example.map(|text| text.to_vec()).filter(|e| e.len() <= MAX_EXAMPLE);
            let item = |kind, what: String| Item {
                kind,
                what,
                begun,
                rules: Vec::new(),
                pointers: self.pointers(&schemas),
                example: example.clone(),
            };
            match what {
                What::End => items.push(item(ItemKind::End, "the end of the text".into())),
                What::Terminals(nodes) => {
                    let Some(names) = &self.names else { continue };
                    let alone = nodes.len() == 1;
                    for node in nodes {
                        let literal = names.literal(node).filter(|_| !begun);
                        let literal = literal.map(|text| text.as_bytes().to_vec());
                        let own = example.clone().filter(|_| alone);
                        items.push(Item {
                            rules: names.rules_with(node),
                            example: literal.filter(|e| e.len() <= MAX_EXAMPLE).or(own),
                            ..item(ItemKind::Terminal, names.shown(node))
                        });
                    }
                }
                What::Language(language) => {
                    items.push(item(ItemKind::Terminal, pattern::shown(&language)));
                }
                What::Tokens(node) => {
                    if let Some(names) = &self.names {
                        let rules = names.rules_with(node);
                        items.push(Item { rules, ..item(ItemKind::Token, names.shown(node)) });
                    }
                }
                What::Key { names, more, others } => {
                    let all =
                        listed(&names.iter().map(|n| pattern::quoted(n)).collect::<Vec<_>>(), more);
                    items.push(item(
                        ItemKind::Key,
                        match (names.is_empty(), others) {
                            (false, false) => format!("the key {all}"),
                            (false, true) => format!("the key {all}, or another key"),
                            (true, _) => "a key".into(),
                        },
                    ));
                }
                What::Value(types) => items.push(item(ItemKind::Value, value(&types))),
                What::Mark(mark) => items.push(item(ItemKind::Punctuation, pattern::quoted(mark))),
            }
        }
        let mut distinct: Vec<Item> = Vec::with_capacity(items.len());
        for item in items {
            let same = |known: &&mut Item| {
                (known.kind, &known.what, known.begun, &known.rules, &known.pointers)
                    == (item.kind, &item.what, item.begun, &item.rules, &item.pointers)
            };
            match distinct.iter_mut().find(same) {
                Some(known) => known.example = known.example.take().or(item.example),
                None => distinct.push(item),
            }
        }
        Ok(distinct)
    }

    pub fn reasons(&self, obstacles: Vec<Obstacle>) -> Vec<Reason> {
        let of = |Obstacle { why, schemas }: Obstacle| {
            let message = match why {
                Why::Missing { names, members } if names.is_empty() && members == 0 => {
                    "the object may not close as it is".to_owned()
                }
                Why::Missing { names, members } if names.is_empty() => {
                    format!("the object needs at least {members} more members before it closes")
                }
                Why::Missing { names, .. } => {
                    let more = names.len().saturating_sub(MAX_NAMES);
                    let shown = names.iter().take(MAX_NAMES).map(|name| pattern::quoted(name));
                    let names = listed(&shown.collect::<Vec<_>>(), more);
                    format!("the object may not close before its required key {names}")
                }
                Why::NoMember => "the object may have no further member".to_owned(),
                Why::TooShort => "the array may not close: it needs further items".to_owned(),
                Why::NoItem => "the array may have no further item".to_owned(),
                Why::NotNow { name } => format!(
                    "the key {} may not come here: it has come, or its place in the declared order \
                     is before what came or after a key that is still required",
                    pattern::quoted(&name)
                ),
                Why::UnknownKey => "no key that may come here begins so".to_owned(),
            };
            Reason { message, rules: Vec::new(), pointers: self.pointers(&schemas) }
        };
        obstacles.into_iter().map(of).collect()
    }

    fn pointers(&self, schemas: &[SchemaId]) -> Vec<String> {
        let Some(json) = self.automaton.json() else { return Vec::new() };
        let mut pointers: Vec<String> = Vec::new();
        for &schema in schemas {
            for place in json.schema.places(schema) {
                let place = if place.contains('#') { place } else { format!("#{place}") };
                if !pointers.contains(&place) && pointers.len() < MAX_POINTERS {
                    pointers.push(place);
                }
            }
        }
        pointers
    }
}

fn value(types: &Types) -> String {
    let article = |name: &&str| match *name {
        "null" | "true" | "false" => (*name).to_owned(),
        "integer" | "object" | "array" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    let mut all: Vec<String> = types.types.iter().map(article).collect();
    all.extend(types.values.iter().cloned());
    match all.is_empty() {
        true => "a value".to_owned(),
        false => listed(&all, types.more_values),
    }
}

fn listed(parts: &[String], more: usize) -> String {
    match (parts, more) {
        (_, 1..) => format!("{} or {more} more", parts.join(", ")),
        ([.., _], 0) if parts.len() > 1 => {
            let (last, rest) = (&parts[parts.len() - 1], &parts[..parts.len() - 1]);
            format!("{} or {last}", rest.join(", "))
        }
        _ => parts.join(", "),
    }
}
