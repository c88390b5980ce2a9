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

use options::RuleOptions;

use crate::bnf::rules::Rules;
use crate::bnf::text::{Cursor, EmptyClass, Notation};
use crate::bnf::{self, Dialect};
use crate::{Grammar, GrammarError, NodeId};

const NOTATION: Notation = Notation {
    name: "EBNF",
    name_marks: "-_.",
    digits_first: false,
    line_ends: false,
    empty_alternatives: false,
    repeats_twice: false,
    // XGrammar prints it.
    minus_one: true,
    lookaheads: true,
    items: "a string, a character class, a group, a macro",
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
    bnf::parse::<Ebnf>(text, root)
}

#[derive(Default)]
struct Ebnf<'t> {
    /// The rules that have options.
    options: Vec<(&'t str, RuleOptions)>,
}

type EbnfParser<'t> = bnf::Parser<'t, Ebnf<'t>>;

impl<'t> Dialect<'t> for Ebnf<'t> {
    const NOTATION: &'static Notation = &NOTATION;

    fn head(parser: &mut EbnfParser<'t>, name: &'t str, offset: usize) -> Result<(), GrammarError> {
        if matches!(name, "true" | "false") {
            let message = format!("{name} cannot be the name of a rule");
            return Err(parser.cursor.fault(offset, message));
        }
        if options::follow(&parser.cursor) {
            let options = options::read(&mut parser.cursor, name)?;
            parser.dialect.options.push((name, options));
        }
        Ok(())
    }

    fn has_head(cursor: &Cursor<'t>) -> bool {
        options::follow(cursor)
    }

    fn item(
        parser: &mut EbnfParser<'t>,
        _character: char,
        offset: usize,
    ) -> Result<Option<NodeId>, GrammarError> {
        let name = if parser.cursor.is_at_name() { parser.cursor.name() } else { "" };
        if matches!(name, "true" | "false") {
            let message = format!("{name} is a value of macros, and no rule");
            return Err(parser.cursor.fault(offset, message));
        }
        if macros::NAMES.contains(&name) {
            return parser.call(name, offset).map(Some);
        }
        parser.cursor.back_to(offset);
        Ok(None)
    }

    fn finish(
        self,
        grammar: &mut Grammar,
        cursor: &Cursor<'t>,
        rules: &Rules<'t>,
    ) -> Result<(), GrammarError> {
        let of = |(name, options)| Some((rules.id(name)?, options));
        options::apply(grammar, cursor, self.options.into_iter().filter_map(of).collect())
    }
}
