//! The bodies of rules: alternatives, sequences and their elements.

use super::ast::{Atom, Choice, Element, Value};
use super::definitions::Named;
use super::fault::Fault;
use super::lowering::{Around, Lowering, Scope};
use super::special;
use crate::{Argument, Condition, GrammarErrorKind, Node, NodeId};

impl<'g, 't: 'g, 'o> Lowering<'t, 'o> {
    pub(super) fn choice(
        &mut self,
        scope: &mut Scope<'g, 't>,
        around: &Around<'_, 't>,
        choice: &'g Choice<'t>,
    ) -> Result<NodeId, Fault> {
        let mut options = Vec::with_capacity(choice.alternatives.len());
        for alternative in &choice.alternatives {
            self.count(choice.at)?;
            let [elements] = &alternative.conjuncts[..] else {
                let message = "`&` stands within terminals only: give what it stands in a name in \
                               upper case";
                return Err(Fault::unsupported(choice.at, "`&` between rules", message));
            };
            let at = elements.first().map_or(choice.at, |element| element.at);
            let limit = |limit| Fault::limit(at, limit);
            let mut node = self.sequence(scope, around, at, elements)?;
            if let Some((at, condition)) = &alternative.condition {
                if *condition != Condition::True {
                    needs_parameter(around, *at)?;
                    let guard = Node::Guard(condition.clone(), node);
                    node = self.grammar.add(guard).map_err(limit)?;
                }
            }
            options.push(node);
        }
        self.grammar.choice(options).map_err(|limit| Fault::limit(choice.at, limit))
    }

    fn sequence(
        &mut self,
        scope: &mut Scope<'g, 't>,
        around: &Around<'_, 't>,
        at: usize,
        elements: &'g [Element<'t>],
    ) -> Result<NodeId, Fault> {
        let mut parts = Vec::with_capacity(elements.len());
        let mut shared: Option<&str> = None;
        for element in elements {
            self.count(element.at)?;
            let rest = shared.and_then(|text| scope.plain(element)?.strip_prefix(text));
            shared = scope.hidden(element);
            match rest {
                Some("") => {}
                Some(_) if Self::ignores(scope) => {
                    let message =
                        "what follows a rule with `stop` begins with its ending and goes \
                                   on: use `suffix`, and what is left of the string";
                    return Err(Fault::unsupported(element.at, "`stop` within a string", message));
                }
                Some(rest) => {
                    let language = self.languages.text(element.at, rest, false)?;
                    parts.push(self.lexeme(scope, element.at, language)?);
                }
                None => parts.push(self.element(scope, around, element)?),
            }
        }
        self.grammar.seq(parts).map_err(|limit| Fault::limit(at, limit))
    }

    fn element(
        &mut self,
        scope: &mut Scope<'g, 't>,
        around: &Around<'_, 't>,
        element: &'g Element<'t>,
    ) -> Result<NodeId, Fault> {
        let at = element.at;
        let limit = |limit| Fault::limit(at, limit);
        let node = match &element.atom {
            Atom::Group(choice) => self.choice(scope, around, choice)?,
            Atom::Optional(choice) => {
                let inner = self.choice(scope, around, choice)?;
                self.grammar.repeat(inner, 0, Some(1)).map_err(limit)?
            }
            not @ Atom::Not(_) => {
                let Scope { definitions, terminals, .. } = scope;
                let language = terminals.inline_atom(definitions, &mut self.languages, at, not)?;
                self.lexeme(scope, at, language)?
            }
            Atom::Value(value) => self.value(scope, around, at, value)?,
        };
        match element.count {
            None => Ok(node),
            Some((min, max)) => self.grammar.repeat(node, min, max).map_err(limit),
        }
    }

    fn value(
        &mut self,
        scope: &mut Scope<'g, 't>,
        around: &Around<'_, 't>,
        at: usize,
        value: &'g Value<'t>,
    ) -> Result<NodeId, Fault> {
        let limit = |limit| Fault::limit(at, limit);
        match value {
            Value::Name(name) => self.named(scope, around, at, name),
            Value::Parametric(name, argument) => {
                if *argument == Argument::Same || matches!(argument, Argument::Changed(_)) {
                    needs_parameter(around, at)?;
                }
                let Some(&Named::Rule(rule)) = scope.definitions.names.get(name) else {
                    return Err(unknown(at, name, "rule"));
                };
                if !rule.parametric {
                    let message =
                        format!("the rule `{name}` has no parameter: define it as `{name}::_`");
                    return Err(Fault::syntax(at, message));
                }
                let rule = self.rule(scope, rule, Vec::new())?;
                self.grammar.add(Node::Rule(rule, *argument)).map_err(limit)
            }
            Value::Template(name, elements) => {
                let Some(&Named::Rule(rule)) = scope.definitions.names.get(name) else {
                    return Err(unknown(at, name, "template"));
                };
                if rule.placeholders.len() != elements.len() {
                    let message = format!(
                        "the rule `{name}` has {} placeholders, not {}",
                        rule.placeholders.len(),
                        elements.len()
                    );
                    return Err(Fault::syntax(at, message));
                }
                if around.definition.parametric {
                    let message = "templates cannot be used in rules with a parameter";
                    return Err(Fault::unsupported(at, "templates and parameters", message));
                }
                let mut values = Vec::with_capacity(elements.len());
                for element in elements {
                    self.count(element.at)?;
                    values.push(self.element(scope, around, element)?);
                }
                let rule = self.rule(scope, rule, values)?;
                self.grammar.rule(rule).map_err(limit)
            }
            // No ignored text follows an empty part.
            Value::Text { text, .. } if text.is_empty() => {
                self.grammar.seq(Vec::new()).map_err(limit)
            }
            Value::Text { text, ignore_case } => {
                let language = self.languages.text(at, text, *ignore_case)?;
                self.lexeme(scope, at, language)
            }
            &Value::Regex { at, pattern, flags } => {
                if let Some(&known) = scope.patterns.get(&(pattern, flags)) {
                    return Ok(known);
                }
                let language = self.languages.regex(at, pattern, flags)?;
                let node = self.lexeme(scope, at, language)?;
                scope.patterns.insert((pattern, flags), node);
                Ok(node)
            }
            Value::Range(..) | Value::Substring(_) => {
                let language = scope.terminals.value(&mut self.languages, at, value)?;
                self.lexeme(scope, at, language)
            }
            Value::Special(token) => {
                let tokens = special::tokens(at, token, self.place(at))?;
                let node = self.grammar.add(Node::Tokens(tokens.into())).map_err(limit)?;
                self.skipping(scope, at, node)
            }
            Value::Json(schema) => {
                let place = self.place(at);
                let node = self.grammar.json(schema, Some(place)).map_err(limit)?;
                self.skipping(scope, at, node)
            }
            Value::Nested(items) => {
                let node = self.items(at, items)?;
                self.skipping(scope, at, node)
            }
            Value::Reference(name) => self.other(scope, at, name),
        }
    }

    fn named(
        &mut self,
        scope: &mut Scope<'g, 't>,
        around: &Around<'_, 't>,
        at: usize,
        name: &'t str,
    ) -> Result<NodeId, Fault> {
        let placeholder = around.definition.placeholders.iter().position(|known| *known == name);
        if let Some(value) = placeholder.and_then(|index| around.values.get(index)) {
            return Ok(*value);
        }
        match scope.definitions.names.get(name) {
            Some(&Named::Rule(rule)) => {
                if rule.parametric {
                    let message = format!(
                        "the rule `{name}` has a parameter, and no value is given: write \
                         `{name}::0`"
                    );
                    return Err(Fault::syntax(at, message));
                }
                if !rule.placeholders.is_empty() {
                    let message = format!("the rule `{name}` is a template: write `{name}{{...}}`");
                    return Err(Fault::syntax(at, message));
                }
                let rule = self.rule(scope, rule, Vec::new())?;
                self.grammar.rule(rule).map_err(|limit| Fault::limit(at, limit))
            }
            Some(Named::Declared) => self.other(scope, at, name),
            Some(Named::Terminal(_) | Named::Imported(..)) => self.terminal(scope, at, name),
            None => Err(unknown(at, name, "rule or terminal")),
        }
    }

    /// A grammar that was given with this one.
    fn other(&mut self, scope: &Scope<'g, 't>, at: usize, name: &'t str) -> Result<NodeId, Fault> {
        if let Some(&known) = self.included.get(name) {
            return self.skipping(scope, at, known);
        }
        let missing = || {
            let message = format!("no grammar was given for `{name}`, which is not defined here");
            Fault::new(at, GrammarErrorKind::UnknownRule, message)
        };
        let other = self.others.get(name).ok_or_else(missing)?;
        let included = self.grammar.include(other).map_err(|limit| Fault::limit(at, limit))?;
        let node = included.ok_or_else(missing)?;
        self.included.insert(name, node);
        self.skipping(scope, at, node)
    }
}

impl<'g, 't: 'g> Scope<'g, 't> {
    /// The ending of a rule with `stop` that an element calls, if it is plain text.
    fn hidden(&self, element: &'g Element<'t>) -> Option<&'g str> {
        let Element { atom: Atom::Value(Value::Name(name)), count: None, .. } = element else {
            return None;
        };
        let Some(&Named::Rule(rule)) = self.definitions.names.get(name) else { return None };
        let ending = rule.attributes.ending.as_ref().filter(|ending| ending.hidden)?;
        match &ending.value {
            Value::Text { text, ignore_case: false } if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The plain text that an element is, itself or as a terminal.
    fn plain(&self, element: &'g Element<'t>) -> Option<&'g str> {
        let Element { atom: Atom::Value(value), count: None, .. } = element else { return None };
        let value = match value {
            Value::Name(name) => match self.definitions.names.get(name) {
                Some(&Named::Terminal(terminal)) => terminal.body.only_value()?,
                _ => return None,
            },
            value => value,
        };
        match value {
            Value::Text { text, ignore_case: false } => Some(text),
            _ => None,
        }
    }
}

fn needs_parameter(around: &Around<'_, '_>, at: usize) -> Result<(), Fault> {
    let name = around.definition.name;
    if around.definition.parametric {
        return Ok(());
    }
    let message = format!("the rule `{name}` has no parameter: define it as `{name}::_`");
    Err(Fault::syntax(at, message))
}

fn unknown(at: usize, name: &str, what: &str) -> Fault {
    let message = format!("there is no {what} `{name}`");
    Fault::new(at, GrammarErrorKind::UnknownRule, message)
}
