//! The reader of GBNF and EBNF: rules of strings, character classes and what a [`Dialect`] adds.
//!
//! A [`Notation`] lists how the two differ. The methods of a [`Dialect`] read what only one of them
//! has.

mod expression;
pub(crate) mod rules;
pub(crate) mod text;

use expression::Expression;
use rules::Rules;
use text::{Cursor, Notation};

use crate::{Grammar, GrammarError, NodeId};
use ffwd_regular::regex::Ast;

/// The syntax that only one notation has.
pub(crate) trait Dialect<'t>: Default {
    const NOTATION: &'static Notation;

    /// Checks the name of a rule, and reads what stands between it and `::=`.
    fn head(
        _parser: &mut Parser<'t, Self>,
        _name: &'t str,
        _offset: usize,
    ) -> Result<(), GrammarError> {
        Ok(())
    }

    /// Whether something stands between a name and `::=`.
    fn has_head(_cursor: &Cursor<'t>) -> bool {
        false
    }

    /// Reads an element that only this notation has; `None` before any other element.
    fn item(
        parser: &mut Parser<'t, Self>,
        character: char,
        offset: usize,
    ) -> Result<Option<NodeId>, GrammarError>;

    /// Changes the grammar once all rules have been read.
    fn finish(
        self,
        _grammar: &mut Grammar,
        _cursor: &Cursor<'t>,
        _rules: &Rules<'t>,
    ) -> Result<(), GrammarError> {
        Ok(())
    }
}

/// Reads a grammar; texts are those of the rule `root`.
pub(crate) fn parse<'t, D: Dialect<'t>>(
    text: &'t str,
    root: &str,
) -> Result<Grammar, GrammarError> {
    let mut grammar = Grammar::new();
    let source = grammar.add_source(D::NOTATION.name, text);
    let cursor = Cursor::new(text, D::NOTATION)?;
    let mut parser = Parser { cursor, grammar, rules: Rules::new(source), dialect: D::default() };
    parser.cursor.space(true);
    while !parser.cursor.is_at_end() {
        parser.rule()?;
        parser.cursor.space(true);
    }
    let Parser { cursor, mut grammar, rules, dialect } = parser;
    rules.finish(&mut grammar, &cursor, root)?;
    dialect.finish(&mut grammar, &cursor, &rules)?;
    Ok(grammar)
}

pub(crate) struct Parser<'t, D> {
    pub cursor: Cursor<'t>,
    pub grammar: Grammar,
    pub rules: Rules<'t>,
    pub dialect: D,
}

/// What alternatives belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Rule,
    Lookahead,
}

impl<'t, D: Dialect<'t>> Parser<'t, D> {
    /// A rule, up to the end of its line or to the next one.
    fn rule(&mut self) -> Result<(), GrammarError> {
        let offset = self.cursor.offset();
        if !self.cursor.is_at_name() {
            let message = match self.cursor.peek() {
                Some('|') if D::NOTATION.line_ends => {
                    "a line cannot begin with |: write it at the end of the line before, or put \
                     the alternatives into brackets"
                        .to_owned()
                }
                _ => {
                    format!("a rule must begin here, as in root ::= …, but {}", self.cursor.found())
                }
            };
            return Err(self.cursor.fault(offset, message));
        }
        let name = self.cursor.name();
        D::head(self, name, offset)?;
        self.cursor.space(!D::NOTATION.line_ends);
        if !self.cursor.take("::=") {
            let message = format!(
                "::= must follow the name of the rule `{name}`, but {}",
                self.cursor.found()
            );
            return Err(self.cursor.fault(self.cursor.offset(), message));
        }
        self.cursor.space(true);
        let body = self.alternatives(Owner::Rule)?;
        if D::NOTATION.lookaheads && self.cursor.starts_with("(=") {
            self.lookahead()?;
        }
        self.rules.define(&mut self.grammar, &self.cursor, (name, offset), body)?;
        if !D::NOTATION.line_ends && !self.cursor.is_at_end() && !self.at_rule()? {
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
        self.alternatives(Owner::Lookahead)?;
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
        if !self.cursor.is_at_name() {
            return Ok(false);
        }
        let name = self.cursor.name();
        if D::has_head(&self.cursor) {
            self.cursor.back_to(offset);
            return Ok(true);
        }
        self.cursor.space(!D::NOTATION.line_ends);
        let found = self.cursor.starts_with("::=");
        self.cursor.back_to(offset);
        let message = if found && D::NOTATION.line_ends {
            format!(
                "the rule `{name}` begins within another: start it in a line of its own, and close \
                 the brackets before it; a rule for the empty text is written \"\""
            )
        } else if found && !self.cursor.begins_line(offset) {
            format!("the rule `{name}` must begin in a line of its own")
        } else {
            return Ok(found);
        };
        Err(self.cursor.fault(offset, message))
    }

    /// Alternatives, up to what cannot belong to them.
    fn alternatives(&mut self, owner: Owner) -> Result<NodeId, GrammarError> {
        let mut expression = Expression::default();
        // Whether the last element has no repetition yet.
        let mut repeatable = false;
        loop {
            let newlines = !D::NOTATION.line_ends || expression.is_nested();
            self.cursor.space(newlines);
            let offset = self.cursor.offset();
            let Some(character) = self.cursor.peek() else { break };
            match character {
                '\n' | '\r' => break,
                '|' => {
                    self.not_empty(&expression)?;
                    self.cursor.take("|");
                    self.cursor.space(true);
                    expression.alternative(&mut self.grammar)?;
                    repeatable = false;
                }
                '(' if D::NOTATION.lookaheads && self.cursor.starts_with("(=") => {
                    if owner == Owner::Rule && !expression.is_nested() {
                        break;
                    }
                    let message = "a lookahead assertion stands at the end of a rule, outside of \
                                   brackets: give what it belongs to a rule of its own";
                    return Err(self.cursor.fault(offset, message));
                }
                '(' => {
                    self.cursor.take("(");
                    expression.open(&self.cursor, offset)?;
                    repeatable = false;
                }
                ')' => {
                    if !expression.is_nested() && owner == Owner::Lookahead {
                        break;
                    }
                    if !expression.has_just_opened() {
                        self.not_empty(&expression)?;
                    }
                    self.cursor.take(")");
                    if !expression.close(&mut self.grammar, &self.cursor)? {
                        return Err(self.cursor.fault(offset, "this ) closes nothing"));
                    }
                    repeatable = true;
                }
                '*' | '+' | '?' | '{' => {
                    if !D::NOTATION.repeats_twice && !repeatable {
                        let message = "nothing stands before this to be repeated: what is \
                                       repeated twice needs brackets, as in (\"a\"+)?";
                        return Err(self.cursor.fault(offset, message));
                    }
                    let counts = self.counts(newlines)?;
                    if !expression.repeat(&mut self.grammar, &self.cursor, offset, counts)? {
                        let message = "nothing stands before this to be repeated";
                        return Err(self.cursor.fault(offset, message));
                    }
                    repeatable = false;
                }
                _ => {
                    if self.at_rule()? {
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
        if D::NOTATION.empty_alternatives || !expression.is_empty() {
            return Ok(());
        }
        let message = format!("{}: the empty text is written \"\"", self.no_item());
        Err(self.cursor.fault(self.cursor.offset(), message))
    }

    fn no_item(&self) -> String {
        let (items, found) = (D::NOTATION.items, self.cursor.found());
        format!("{items} or the name of a rule must stand here, but {found}")
    }

    fn item(&mut self, character: char) -> Result<NodeId, GrammarError> {
        let offset = self.cursor.offset();
        let language = match character {
            '"' => Ast::literal(&self.cursor.string()?),
            '[' => Ast::class(self.cursor.class()?),
            _ => {
                if let Some(item) = D::item(self, character, offset)? {
                    return Ok(item);
                }
                if !self.cursor.is_at_name() {
                    return Err(self.cursor.fault(offset, self.no_item()));
                }
                let name = self.cursor.name();
                let rule = self.rules.named(&mut self.grammar, name, offset)?;
                return Ok(self.grammar.rule(rule)?);
            }
        };
        Ok(self.grammar.text(language)?)
    }

    /// How often something is repeated.
    fn counts(&mut self, newlines: bool) -> Result<(u32, Option<u32>), GrammarError> {
        for (mark, counts) in [("*", (0, None)), ("+", (1, None)), ("?", (0, Some(1)))] {
            if self.cursor.take(mark) {
                return Ok(counts);
            }
        }
        self.cursor.take("{");
        self.cursor.space(newlines);
        let min = self.cursor.count()?;
        self.cursor.space(newlines);
        let mut max = Some(min);
        if self.cursor.take(",") {
            self.cursor.space(newlines);
            let unbounded =
                self.cursor.starts_with("}") || D::NOTATION.minus_one && self.cursor.take("-1");
            max = if unbounded { None } else { Some(self.cursor.count()?) };
            self.cursor.space(newlines);
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
