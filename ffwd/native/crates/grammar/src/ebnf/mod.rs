//! EBNF as XGrammar reads it: GBNF's rules with options, macros and lookahead assertions.
//!
//! ```text
//! root  ::= "items: " item ("," item){0, 4}
//! item[capture="item", max_tokens=8] ::= [a-z_]+ (= ",")
//! ```
//!
//! Line ends have no meaning, except that a rule starts its line. A lookahead assertion is the
//! author's promise about the text after the rule: XGrammar uses it to know more tokens in advance,
//! and it restricts neither texts nor masks. This crate does not need it, so it is parsed, checked,
//! and has no effect. `docs/gbnf.md` lists the differences from XGrammar.

mod dispatch;
mod macros;
mod options;
mod pattern;
#[cfg(test)]
mod tests;
mod values;

use options::Options;

use crate::gbnf::expression::Expression;
use crate::gbnf::rules::Rules;
use crate::gbnf::text::{Cursor, EmptyClass, Notation};
use crate::{Grammar, GrammarError, NodeId, RuleId};
use ffwd_regular::regex::Ast;

const NOTATION: Notation = Notation {
    name: "EBNF",
    escapes: &[
        ('n', '\n'),
        ('r', '\r'),
        ('t', '\t'),
        ('b', '\u{8}'),
        ('f', '\u{c}'),
        ('a', '\u{7}'),
        ('v', '\u{b}'),
        ('0', '\0'),
        ('e', '\u{1b}'),
        ('\\', '\\'),
        ('"', '"'),
        ('\'', '\''),
        ('?', '?'),
        ('/', '/'),
    ],
    class_escapes: "^$.*+?()[]{}|/-",
    long_hex: true,
    newlines: false,
    empty_class: EmptyClass::Plain,
};

/// Reads a grammar; texts are those of the rule `root`.
pub fn parse(text: &str, root: &str) -> Result<Grammar, GrammarError> {
    let mut grammar = Grammar::new();
    let source = grammar.add_source(NOTATION.name, text);
    let cursor = Cursor::new(text, &NOTATION)?;
    let mut parser = Parser { cursor, grammar, rules: Rules::new(source), options: Vec::new() };
    parser.cursor.space(true);
    while !parser.cursor.is_at_end() {
        parser.rule()?;
    }
    let Parser { cursor, mut grammar, rules, options } = parser;
    rules.finish(&mut grammar, &cursor, root)?;
    options::apply(&mut grammar, &cursor, options)?;
    Ok(grammar)
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    grammar: Grammar,
    rules: Rules<'t>,
    /// The options of rules.
    options: Vec<(RuleId, Options)>,
}

fn begins_name(character: char) -> bool {
    character.is_ascii_alphabetic() || matches!(character, '-' | '_' | '.')
}

fn in_name(character: char) -> bool {
    begins_name(character) || character.is_ascii_digit()
}

/// The end of the alternatives of a rule, of a lookahead or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Rule,
    Lookahead,
}

impl Parser<'_> {
    fn rule(&mut self) -> Result<(), GrammarError> {
        let offset = self.cursor.offset();
        if !self.cursor.peek().is_some_and(begins_name) {
            let message =
                format!("a rule must begin here, as in root ::= …, but {}", self.cursor.found());
            return Err(self.cursor.fault(offset, message));
        }
        let name = self.cursor.take_while(in_name);
        if matches!(name, "true" | "false") {
            return Err(self.cursor.fault(offset, format!("{name} cannot be the name of a rule")));
        }
        let options = if options::follow(&self.cursor) {
            Some(options::read(&mut self.cursor, name)?)
        } else {
            None
        };
        self.cursor.space(true);
        if !self.cursor.take("::=") {
            let message = format!(
                "::= must follow the name of the rule `{name}`, but {}",
                self.cursor.found()
            );
            return Err(self.cursor.fault(self.cursor.offset(), message));
        }
        let body = self.alternatives(End::Rule)?;
        if self.cursor.starts_with("(=") {
            self.lookahead()?;
        }
        self.rules.define(&mut self.grammar, &self.cursor, (name, offset), body)?;
        if let Some(options) = options {
            let id = self.rules.named(&mut self.grammar, name, offset)?;
            self.options.push((id, options));
        }
        if !self.cursor.is_at_end() && !self.at_rule()? {
            let message = format!(
                "the next rule must begin here, but {}: a lookahead assertion ends its rule, and \
                 alternatives that have one are rules of their own",
                self.cursor.found()
            );
            return Err(self.cursor.fault(self.cursor.offset(), message));
        }
        Ok(())
    }

    /// `(= …)`, which is a promise and changes nothing.
    fn lookahead(&mut self) -> Result<(), GrammarError> {
        let opened = self.cursor.offset();
        self.cursor.take("(=");
        self.alternatives(End::Lookahead)?;
        if !self.cursor.take(")") {
            let message =
                format!("the lookahead assertion is not closed by ), but {}", self.cursor.found());
            return Err(self.cursor.fault(opened, message));
        }
        self.cursor.space(true);
        Ok(())
    }

    /// Whether a rule begins here. It must be the first in its line.
    fn at_rule(&mut self) -> Result<bool, GrammarError> {
        let offset = self.cursor.offset();
        if !self.cursor.peek().is_some_and(begins_name) {
            return Ok(false);
        }
        let name = self.cursor.take_while(in_name);
        if options::follow(&self.cursor) {
            self.cursor.back_to(offset);
            return Ok(true);
        }
        self.cursor.space(true);
        let found = self.cursor.starts_with("::=");
        self.cursor.back_to(offset);
        if found && !self.cursor.begins_line(offset) {
            let message = format!("the rule `{name}` must begin in a line of its own");
            return Err(self.cursor.fault(offset, message));
        }
        Ok(found)
    }

    /// Alternatives, up to what cannot belong to them.
    fn alternatives(&mut self, end: End) -> Result<NodeId, GrammarError> {
        let mut expression = Expression::default();
        // The last element may be repeated.
        let mut repeatable = false;
        loop {
            self.cursor.space(true);
            let offset = self.cursor.offset();
            let Some(character) = self.cursor.peek() else { break };
            match character {
                '|' => {
                    self.not_empty(&expression)?;
                    self.cursor.take("|");
                    expression.alternative(&mut self.grammar)?;
                    repeatable = false;
                }
                '(' if self.cursor.starts_with("(=") => {
                    if end == End::Rule && !expression.is_nested() {
                        break;
                    }
                    let message = "a lookahead assertion stands at the end of a rule, outside of \
                                   brackets: give what it belongs to a rule of its own";
                    return Err(self.cursor.fault(offset, message));
                }
                '(' => {
                    self.cursor.take("(");
                    expression.open(&self.cursor, offset)?;
                    self.cursor.space(true);
                    repeatable = false;
                    if self.cursor.take(")") {
                        expression.close(&mut self.grammar, &self.cursor)?;
                        repeatable = true;
                    }
                }
                ')' => {
                    if !expression.is_nested() && end == End::Lookahead {
                        break;
                    }
                    self.not_empty(&expression)?;
                    self.cursor.take(")");
                    if !expression.close(&mut self.grammar, &self.cursor)? {
                        return Err(self.cursor.fault(offset, "this ) closes nothing"));
                    }
                    repeatable = true;
                }
                '*' | '+' | '?' | '{' => {
                    if !repeatable {
                        return Err(self.cursor.fault(
                            offset,
                            "nothing stands before this to be repeated: what is repeated twice \
                             needs brackets, as in (\"a\"+)?",
                        ));
                    }
                    let counts = self.counts()?;
                    expression.repeat(&mut self.grammar, &self.cursor, offset, counts)?;
                    repeatable = false;
                }
                _ => {
                    if begins_name(character) && self.at_rule()? {
                        break;
                    }
                    let item = self.item(character)?;
                    expression.push(item);
                    repeatable = true;
                }
            }
        }
        if expression.is_nested() {
            return Err(self.cursor.fault(expression.opened(), "the bracket is not closed by )"));
        }
        self.not_empty(&expression)?;
        Ok(expression.finish(&mut self.grammar)?)
    }

    fn not_empty(&self, expression: &Expression) -> Result<(), GrammarError> {
        if !expression.is_empty() {
            return Ok(());
        }
        let message = format!(
            "a string, a character class, a group, a macro or the name of a rule must stand \
             here, but {}: the empty text is written \"\"",
            self.cursor.found()
        );
        Err(self.cursor.fault(self.cursor.offset(), message))
    }

    fn item(&mut self, character: char) -> Result<NodeId, GrammarError> {
        let offset = self.cursor.offset();
        let language = match character {
            '"' => Ast::literal(&self.cursor.string()?),
            '[' => Ast::class(self.cursor.class()?),
            _ if begins_name(character) => {
                let name = self.cursor.take_while(in_name);
                if matches!(name, "true" | "false") {
                    let message = format!("{name} is a value of macros, and no rule");
                    return Err(self.cursor.fault(offset, message));
                }
                if macros::NAMES.contains(&name) {
                    return self.call(name, offset);
                }
                let rule = self.rules.named(&mut self.grammar, name, offset)?;
                return Ok(self.grammar.rule(rule)?);
            }
            _ => {
                let message = format!(
                    "a string, a character class, a group, a macro or the name of a rule must \
                     stand here, but {}",
                    self.cursor.found()
                );
                return Err(self.cursor.fault(offset, message));
            }
        };
        Ok(self.grammar.text(language)?)
    }

    /// How often something is repeated.
    fn counts(&mut self) -> Result<(u32, Option<u32>), GrammarError> {
        if self.cursor.take("*") {
            return Ok((0, None));
        }
        if self.cursor.take("+") {
            return Ok((1, None));
        }
        if self.cursor.take("?") {
            return Ok((0, Some(1)));
        }
        self.cursor.take("{");
        self.cursor.space(true);
        let min = self.cursor.count()?;
        self.cursor.space(true);
        let mut max = Some(min);
        if self.cursor.take(",") {
            self.cursor.space(true);
            // XGrammar prints -1 where there is no largest number.
            max = if self.cursor.starts_with("}") || self.cursor.take("-1") {
                None
            } else {
                Some(self.cursor.count()?)
            };
            self.cursor.space(true);
        }
        if !self.cursor.take("}") {
            let message = format!(
                "a repetition is written {{2}}, {{2,}} or {{2,4}}, but {}",
                self.cursor.found()
            );
            return Err(self.cursor.fault(self.cursor.offset(), message));
        }
        Ok((min, max))
    }
}
