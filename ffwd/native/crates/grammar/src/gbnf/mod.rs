//! GBNF, the grammars of llama.cpp: rules of strings, character classes and tokens.
//!
//! ```text
//! root ::= "- " item ("\n- " item)*    # a comment
//! item ::= [^\n]{1,80} |
//!          <think> !</think>* </think>
//! ```
//!
//! A rule ends with its line, except for lines that end in `|` or `::=` and within brackets. If a
//! text has several parses, all of them hold. `docs/gbnf.md` lists the differences from llama.cpp.

pub(crate) mod expression;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use expression::Expression;
use rules::Rules;
use text::{Cursor, EmptyClass, Notation};

use crate::{Grammar, GrammarError, GrammarErrorKind, Node, NodeId, TokenItem, TokenSet};
use ffwd_regular::regex::{Ast, CharClass};

const NOTATION: Notation = Notation {
    name: "GBNF",
    escapes: &[
        ('n', '\n'),
        ('r', '\r'),
        ('t', '\t'),
        ('\\', '\\'),
        ('"', '"'),
        ('[', '['),
        (']', ']'),
        ('-', '-'),
    ],
    class_escapes: "",
    long_hex: false,
    newlines: true,
    empty_class: EmptyClass::Refused(
        "a character class must not be empty: llama.cpp reads it as the empty text, which is \"\"; \
         any character is a dot",
    ),
};

/// Reads a grammar; texts are those of the rule `root`.
pub fn parse(text: &str, root: &str) -> Result<Grammar, GrammarError> {
    let mut grammar = Grammar::new();
    let source = grammar.add_source(NOTATION.name, text);
    let cursor = Cursor::new(text, &NOTATION)?;
    let mut parser = Parser { cursor, grammar, rules: Rules::new(source) };
    parser.cursor.space(true);
    while !parser.cursor.is_at_end() {
        parser.rule()?;
        parser.cursor.space(true);
    }
    let Parser { cursor, mut grammar, rules } = parser;
    rules.finish(&mut grammar, &cursor, root)?;
    Ok(grammar)
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    grammar: Grammar,
    rules: Rules<'t>,
}

fn in_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

impl<'t> Parser<'t> {
    /// A rule with the end of its line.
    fn rule(&mut self) -> Result<(), GrammarError> {
        let offset = self.cursor.offset();
        let name = self.cursor.take_while(in_name);
        if name.is_empty() {
            let message = match self.cursor.peek() {
                Some('|') => {
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
        self.cursor.space(false);
        if !self.cursor.take("::=") {
            let message = format!(
                "::= must follow the name of the rule `{name}`, but {}",
                self.cursor.found()
            );
            return Err(self.cursor.fault(self.cursor.offset(), message));
        }
        self.cursor.space(true);
        let body = self.body()?;
        self.rules.define(&mut self.grammar, &self.cursor, (name, offset), body)
    }

    /// Parses the right side of `::=`.
    fn body(&mut self) -> Result<NodeId, GrammarError> {
        let mut expression = Expression::default();
        loop {
            self.cursor.space(expression.is_nested());
            let offset = self.cursor.offset();
            let Some(character) = self.cursor.peek() else { break };
            match character {
                '\n' | '\r' => break,
                '|' => {
                    self.cursor.take("|");
                    self.cursor.space(true);
                    expression.alternative(&mut self.grammar)?;
                }
                '(' => {
                    self.cursor.take("(");
                    expression.open(&self.cursor, offset)?;
                }
                ')' => {
                    self.cursor.take(")");
                    if !expression.close(&mut self.grammar, &self.cursor)? {
                        return Err(self.cursor.fault(offset, "this ) closes nothing"));
                    }
                }
                '*' | '+' | '?' | '{' => self.repetition(&mut expression)?,
                _ => {
                    let item = self.item(character)?;
                    expression.push(item);
                }
            }
        }
        if expression.is_nested() {
            return Err(self.cursor.fault(expression.opened(), "the bracket is not closed by )"));
        }
        Ok(expression.finish(&mut self.grammar)?)
    }

    fn item(&mut self, character: char) -> Result<NodeId, GrammarError> {
        let offset = self.cursor.offset();
        let language = match character {
            '"' => Ast::literal(&self.cursor.string()?),
            '[' => Ast::class(self.cursor.class()?),
            '.' => {
                self.cursor.take(".");
                Ast::Class(CharClass::any())
            }
            '<' | '!' => return self.token(),
            _ if in_name(character) => {
                let name = self.cursor.take_while(in_name);
                self.no_definition(name, offset)?;
                let rule = self.rules.named(&mut self.grammar, name, offset)?;
                return Ok(self.grammar.rule(rule)?);
            }
            _ => {
                let message = format!(
                    "a string, a character class, a token, a group or the name of a rule must \
                     stand here, but {}",
                    self.cursor.found()
                );
                return Err(self.cursor.fault(offset, message));
            }
        };
        Ok(self.grammar.text(language)?)
    }

    /// Sees that a name does not begin a rule.
    fn no_definition(&mut self, name: &str, offset: usize) -> Result<(), GrammarError> {
        let end = self.cursor.offset();
        self.cursor.space(false);
        if self.cursor.starts_with("::=") {
            let message = format!(
                "the rule `{name}` begins within another: start it in a line of its own, and close \
                 the brackets before it; a rule for the empty text is written \"\""
            );
            return Err(self.cursor.fault(offset, message));
        }
        self.cursor.back_to(end);
        Ok(())
    }

    fn repetition(&mut self, expression: &mut Expression) -> Result<(), GrammarError> {
        let offset = self.cursor.offset();
        let newlines = expression.is_nested();
        let counts = if self.cursor.take("*") {
            (0, None)
        } else if self.cursor.take("+") {
            (1, None)
        } else if self.cursor.take("?") {
            (0, Some(1))
        } else {
            self.cursor.take("{");
            self.cursor.space(newlines);
            let min = self.cursor.count()?;
            self.cursor.space(newlines);
            let max = if self.cursor.take(",") {
                self.cursor.space(newlines);
                if self.cursor.starts_with("}") {
                    None
                } else {
                    Some(self.cursor.count()?)
                }
            } else {
                Some(min)
            };
            self.cursor.space(newlines);
            if !self.cursor.take("}") {
                let message = format!(
                    "a repetition is written {{2}}, {{2,}} or {{2,4}}, but {}",
                    self.cursor.found()
                );
                return Err(self.cursor.fault(self.cursor.offset(), message));
            }
            (min, max)
        };
        if !expression.repeat(&mut self.grammar, &self.cursor, offset, counts)? {
            let message = "nothing stands before this to be repeated";
            return Err(self.cursor.fault(offset, message));
        }
        Ok(())
    }

    /// `<[12]>` or `<name>`, or with `!` any token but that.
    fn token(&mut self) -> Result<NodeId, GrammarError> {
        let began = self.cursor.offset();
        let exclude = self.cursor.take("!");
        let opened = self.cursor.offset();
        if !self.cursor.take("<") {
            let message =
                format!("a token must follow the !, as in !<think>, but {}", self.cursor.found());
            return Err(self.cursor.fault(opened, message));
        }
        let item = if self.cursor.take("[") {
            let at = self.cursor.offset();
            let digits = self.cursor.take_while(|character| character.is_ascii_digit());
            if digits.is_empty() || !self.cursor.take("]>") {
                let message = "a token by its id is written <[12]>";
                return Err(self.cursor.fault(began, message));
            }
            let Ok(id) = digits.parse() else {
                let message = format!("there is no token with the id {digits}");
                return Err(self.cursor.error(at, GrammarErrorKind::UnknownToken, message));
            };
            TokenItem::Ids(id, id)
        } else {
            self.cursor.take_while(|character| !matches!(character, '>' | '\n' | '\r'));
            if !self.cursor.take(">") {
                let message = "the name of the token has no closing >";
                return Err(self.cursor.fault(opened, message));
            }
            TokenItem::Named(self.cursor.between(opened).into())
        };
        let place = self.rules.place(began);
        let tokens = TokenSet { items: [item].into(), exclude, place };
        Ok(self.grammar.add(Node::Tokens(tokens.into()))?)
    }
}
