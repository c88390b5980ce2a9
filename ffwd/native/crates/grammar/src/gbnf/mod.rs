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

#[cfg(test)]
mod tests;

use crate::bnf::text::{EmptyClass, Notation};
use crate::bnf::{self, Dialect, Parser};
use crate::{Grammar, GrammarError, GrammarErrorKind, Node, NodeId, TokenItem, TokenSet};
use ffwd_regular::regex::{Ast, CharClass};

const NOTATION: Notation = Notation {
    name: "GBNF",
    name_marks: "-_",
    digits_first: true,
    line_ends: true,
    empty_alternatives: true,
    repeats_twice: true,
    minus_one: false,
    lookaheads: false,
    items: "a string, a character class, a token, a group",
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
    bnf::parse::<Gbnf>(text, root)
}

#[derive(Default)]
struct Gbnf;

impl<'t> Dialect<'t> for Gbnf {
    const NOTATION: &'static Notation = &NOTATION;

    fn item(
        parser: &mut Parser<'t, Self>,
        character: char,
        _offset: usize,
    ) -> Result<Option<NodeId>, GrammarError> {
        Ok(match character {
            '.' => {
                parser.cursor.take(".");
                Some(parser.grammar.text(Ast::Class(CharClass::any()))?)
            }
            '<' | '!' => Some(token(parser)?),
            _ => None,
        })
    }
}

/// `<[12]>` or `<name>`, or with `!` any token but that.
fn token(parser: &mut Parser<'_, Gbnf>) -> Result<NodeId, GrammarError> {
    let began = parser.cursor.offset();
    let exclude = parser.cursor.take("!");
    let opened = parser.cursor.offset();
    if !parser.cursor.take("<") {
        let message =
            format!("a token must follow the !, as in !<think>, but {}", parser.cursor.found());
        return Err(parser.cursor.fault(opened, message));
    }
    let item = if parser.cursor.take("[") {
        let at = parser.cursor.offset();
        let digits = parser.cursor.take_while(|character| character.is_ascii_digit());
        if digits.is_empty() || !parser.cursor.take("]>") {
            let message = "a token by its id is written <[12]>";
            return Err(parser.cursor.fault(began, message));
        }
        let Ok(id) = digits.parse() else {
            let message = format!("there is no token with the id {digits}");
            return Err(parser.cursor.error(at, GrammarErrorKind::UnknownToken, message));
        };
        TokenItem::Ids(id, id)
    } else {
        parser.cursor.take_while(|character| !matches!(character, '>' | '\n' | '\r'));
        if !parser.cursor.take(">") {
            let message = "the name of the token has no closing >";
            return Err(parser.cursor.fault(opened, message));
        }
        TokenItem::Named(parser.cursor.between(opened).into())
    };
    let place = parser.rules.place(began);
    let tokens = TokenSet { items: [item].into(), exclude, place };
    Ok(parser.grammar.add(Node::Tokens(tokens.into()))?)
}
