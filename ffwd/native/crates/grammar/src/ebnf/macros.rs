//! Macros: `Token(…)`, `ExcludeToken(…)`, `TokenTagDispatch(…)`, `TagDispatch(…)`, `Regex(…)` and
//! `Substring(…)`.

use super::dispatch::{self, Dispatch};
use super::values::{Arguments, MacroValue, ValueKind};
use super::{pattern, EbnfParser};
use crate::{GrammarError, GrammarErrorKind, Node, NodeId, TokenItem, TokenSet};

/// Names that a used rule cannot have.
pub(super) const NAMES: [&str; 6] =
    ["TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "Regex", "Substring"];

impl<'t> EbnfParser<'t> {
    /// The call of a macro whose name was read.
    pub(super) fn call(&mut self, name: &str, offset: usize) -> Result<NodeId, GrammarError> {
        let arguments = Arguments::read(&mut self.cursor, name)?;
        match name {
            "Token" | "ExcludeToken" => {
                self.named(&arguments, name, &[])?;
                if arguments.positional.is_empty() {
                    let message = format!("{name} needs the id of a token, as in {name}(12)");
                    return Err(self.cursor.fault(offset, message));
                }
                let ids = self.ids(&arguments.positional)?;
                self.tokens(ids, name == "ExcludeToken", offset)
            }
            "TokenTagDispatch" => self.token_dispatch(&arguments, offset),
            "TagDispatch" => self.tag_dispatch(&arguments, offset),
            "Regex" => {
                self.named(&arguments, name, &["json_string", "flags"])?;
                let language = pattern::regex(&self.cursor, &arguments, offset)?;
                Ok(self.grammar.text(language)?)
            }
            _ => {
                self.named(&arguments, name, &[])?;
                let language = pattern::substring(&self.cursor, &arguments.positional)?;
                Ok(self.grammar.text(language)?)
            }
        }
    }

    /// Checks that the named arguments are among these.
    fn named(
        &self,
        arguments: &Arguments<'t>,
        called: &str,
        known: &[&str],
    ) -> Result<(), GrammarError> {
        let Some((name, value)) = arguments.named.iter().find(|(name, _)| !known.contains(name))
        else {
            return Ok(());
        };
        let message = match known {
            [] => format!("{called} has no argument {name}: it has no named ones"),
            _ => format!("{called} has no argument {name}: it has {}", known.join(" and ")),
        };
        Err(self.cursor.fault(value.offset, message))
    }

    fn ids(&self, values: &[MacroValue<'t>]) -> Result<Vec<u32>, GrammarError> {
        let mut ids = Vec::with_capacity(values.len());
        for value in values {
            let ValueKind::Number(id) = value.kind else {
                let message = "the id of a token must stand here, as a whole number";
                return Err(self.cursor.fault(value.offset, message));
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// One token of these, or any but these.
    fn tokens(
        &mut self,
        mut ids: Vec<u32>,
        exclude: bool,
        offset: usize,
    ) -> Result<NodeId, GrammarError> {
        ids.sort_unstable();
        ids.dedup();
        let items = ids.into_iter().map(|id| TokenItem::Ids(id, id)).collect();
        let tokens = TokenSet { items, exclude, place: self.rules.place(offset) };
        Ok(self.grammar.add(Node::Tokens(tokens.into()))?)
    }

    /// The pairs of a trigger and the rule that follows it.
    fn pairs<'a>(
        &mut self,
        arguments: &'a Arguments<'t>,
        called: &str,
    ) -> Result<Vec<(&'a MacroValue<'t>, NodeId)>, GrammarError> {
        let mut pairs = Vec::with_capacity(arguments.positional.len());
        for value in &arguments.positional {
            let (trigger, rule) = match &value.kind {
                ValueKind::Tuple(values) => match values.as_slice() {
                    [trigger, rule] => (trigger, rule),
                    _ => return Err(self.no_pair(value, called)),
                },
                _ => return Err(self.no_pair(value, called)),
            };
            let ValueKind::Name(name) = rule.kind else {
                return Err(self.cursor.fault(rule.offset, "the name of a rule must stand here"));
            };
            let rule = self.rules.named(&mut self.grammar, name, rule.offset)?;
            pairs.push((trigger, self.grammar.rule(rule)?));
        }
        Ok(pairs)
    }

    fn no_pair(&self, value: &MacroValue<'t>, called: &str) -> GrammarError {
        let trigger = if called == "TagDispatch" { "\"<tag>\"" } else { "12" };
        let message =
            format!("{called} takes pairs with the name of a rule, as in ({trigger}, rule)");
        self.cursor.fault(value.offset, message)
    }

    /// Whether free text continues after a trigger's rule, and what it excludes.
    fn dispatch_options<'a>(
        &self,
        arguments: &'a Arguments<'t>,
        called: &str,
    ) -> Result<(bool, &'a [MacroValue<'t>]), GrammarError> {
        self.named(arguments, called, &["loop_after_dispatch", "excludes"])?;
        let mut options: (bool, &[MacroValue<'t>]) = (true, &[]);
        for (name, value) in &arguments.named {
            match (*name, &value.kind) {
                ("loop_after_dispatch", &ValueKind::Boolean(repeated)) => options.0 = repeated,
                ("loop_after_dispatch", _) => {
                    let message = "loop_after_dispatch must be true or false";
                    return Err(self.cursor.fault(value.offset, message));
                }
                (_, ValueKind::Tuple(values)) => options.1 = values,
                (_, ValueKind::Text(_) | ValueKind::Number(_)) => {
                    options.1 = std::slice::from_ref(value);
                }
                _ => {
                    let message = "excludes must be a tuple, as in (\"x\",)";
                    return Err(self.cursor.fault(value.offset, message));
                }
            }
        }
        Ok(options)
    }

    fn token_dispatch(
        &mut self,
        arguments: &Arguments<'t>,
        offset: usize,
    ) -> Result<NodeId, GrammarError> {
        let (repeated, excludes) = self.dispatch_options(arguments, "TokenTagDispatch")?;
        let excludes = self.ids(excludes)?;
        let mut stops = excludes.clone();
        let mut ways = Vec::new();
        for (trigger, rule) in self.pairs(arguments, "TokenTagDispatch")? {
            let id = self.ids(std::slice::from_ref(trigger))?;
            if id.iter().any(|id| excludes.contains(id)) {
                let message = "the token begins something, and is excluded: it cannot be both";
                let kind = GrammarErrorKind::Contradiction;
                return Err(self.cursor.error(trigger.offset, kind, message));
            }
            stops.extend_from_slice(&id);
            let token = self.tokens(id, false, trigger.offset)?;
            ways.push((token, rule));
        }
        let free = self.tokens(stops, true, offset)?;
        let free = self.grammar.repeat(free, 0, None)?;
        let mut begun = Vec::with_capacity(ways.len());
        for (token, rule) in ways {
            begun.push(self.grammar.seq(vec![free, token, rule])?);
        }
        Ok(dispatch::ways(&mut self.grammar, begun, free, repeated)?)
    }

    fn tag_dispatch(
        &mut self,
        arguments: &Arguments<'t>,
        offset: usize,
    ) -> Result<NodeId, GrammarError> {
        let (repeated, excludes) = self.dispatch_options(arguments, "TagDispatch")?;
        let mut dispatch = Dispatch::new(offset);
        for value in excludes {
            let text = self.tag(value)?;
            dispatch.exclude(text);
        }
        for (trigger, rule) in self.pairs(arguments, "TagDispatch")? {
            let text = self.tag(trigger)?;
            dispatch.add(&self.cursor, text, trigger.offset, rule)?;
        }
        dispatch.finish(&mut self.grammar, &self.cursor, repeated)
    }

    fn tag<'a>(&self, value: &'a MacroValue<'t>) -> Result<&'a str, GrammarError> {
        match &value.kind {
            ValueKind::Text(text) if !text.is_empty() => Ok(text),
            _ => Err(self.cursor.fault(value.offset, "a string that is not empty must stand here")),
        }
    }
}
