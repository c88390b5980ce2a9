//! `regex`: texts that are regular expressions of ECMA-262, by the rules of the `u` flag.
//!
//! Nested groups are not regular, and neither are distinct group names, references to existing
//! groups, and ordered bounds of quantifiers and ranges. The language is therefore narrower. Groups
//! nest four deep and have no names (the inner ones no lookaround), and there are no references.
//! Ranges stay within digits or the letters of one case, and two counts with the same number of
//! digits, more than one, differ in the first.

use super::{class, digit, hexadecimal, literal, many, one_of};

use ffwd_regular::regex::Ast;

const NESTING: usize = 4;

pub(super) fn pattern() -> Ast {
    let quantifier = Ast::optional(quantifier());
    let atom = Ast::concat([atom(), quantifier.clone()]);
    let anchor = Ast::alternation([one_of("^^$$"), literal("\\b"), literal("\\B")]);
    let simple = Ast::alternation([atom, anchor]);
    let mut inner = disjunction(simple.clone());
    for level in 1..=NESTING {
        // A group may be repeated, a lookaround may not.
        let open = Ast::concat([literal("("), Ast::optional(literal("?:"))]);
        let group = Ast::concat([open, inner.clone(), literal(")"), quantifier.clone()]);
        let mut terms = vec![simple.clone(), group];
        if level + 1 >= NESTING {
            let open = Ast::alternation(["(?=", "(?!", "(?<=", "(?<!"].map(literal));
            terms.push(Ast::concat([open, disjunction(simple.clone()), literal(")")]));
        }
        inner = disjunction(Ast::alternation(terms));
    }
    inner
}

/// Any text but with something to repeat or to close in front.
pub(super) fn possible_pattern() -> Ast {
    let first = Ast::class(class("**++??{{))}}]]").negate());
    Ast::optional(Ast::concat([first, Ast::any_text()]))
}

fn disjunction(term: Ast) -> Ast {
    many(Ast::alternation([term, literal("|")]))
}

/// One character, an escape, or a class.
fn atom() -> Ast {
    let plain = class("\n\n\r\r\u{2028}\u{2029}$$(+..??[^{}||**").negate();
    Ast::alternation([Ast::class(plain), literal("."), escape(), bracketed()])
}

fn escape() -> Ast {
    let control = Ast::concat([literal("c"), one_of("azAZ")]);
    let byte = Ast::concat([literal("x"), hexadecimal(), hexadecimal()]);
    // Without surrogates.
    let high = Ast::alternation([
        Ast::concat([one_of("09acAC"), hexadecimal()]),
        Ast::concat([one_of("ddDD"), one_of("07")]),
        Ast::concat([one_of("efEF"), hexadecimal()]),
    ]);
    let unit = Ast::concat([literal("u"), high, hexadecimal(), hexadecimal()]);
    let categories = [
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
        "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp",
    ];
    let category = Ast::alternation(categories.map(literal));
    let property = Ast::concat([one_of("ppPP"), literal("{"), category, literal("}")]);
    let simple = one_of("ddDDwwWWssSSttnnvvffrr^^$$\\\\..**++??(())[[]]{{}}||//");
    Ast::concat([literal("\\"), Ast::alternation([simple, control, byte, unit, property])])
}

/// A class: no empty one, no bracket within, a hyphen only in front, and no two characters in a
/// row that other dialects read as an operator.
fn bracketed() -> Ast {
    let plain = class("--[]^^&&~~\n\n\r\r\u{2028}\u{2029}\\\\").negate();
    let ranges = [('0', '9'), ('a', 'z'), ('A', 'Z')].into_iter().flat_map(|(first, last)| {
        (first..=last).map(move |low| {
            let high: String = [low, last].iter().collect();
            Ast::concat([literal(&format!("{low}-")), one_of(&high)])
        })
    });
    let item =
        Ast::alternation([Ast::class(plain), escape(), literal("\\-"), Ast::alternation(ranges)]);
    let front = [literal("-"), item.clone()];
    let items = Ast::concat([Ast::alternation(front), many(item)]);
    Ast::concat([literal("["), Ast::optional(literal("^")), items, literal("]")])
}

fn quantifier() -> Ast {
    // The second count is longer, or greater in the first digit, or it is one digit.
    let rest = |length: usize| Ast::repeat(digit(), length as u32, Some(length as u32));
    let count = || Ast::alternation([literal("0"), Ast::concat([one_of("19"), up_to(digit(), 2)])]);
    let mut bounds = vec![Ast::concat([count(), Ast::optional(literal(","))])];
    for (low, next) in ('0'..='9').zip(('1'..='9').chain([':'])) {
        let first = |low: char| one_of(&String::from_iter([low, '9']));
        let lower = |length: usize| Ast::concat([literal(&low.to_string()), rest(length)]);
        let short =
            Ast::alternation([first(low), Ast::concat([one_of("19"), digit(), up_to(digit(), 1)])]);
        bounds.push(Ast::concat([literal(&format!("{low},")), short]));
        if low > '0' && low < '9' {
            for length in [1, 2] {
                let upper = Ast::concat([first(next), rest(length)]);
                bounds.push(Ast::concat([lower(length), literal(","), upper]));
            }
        }
    }
    let (two, three) =
        (|| Ast::concat([one_of("19"), digit()]), || Ast::concat([one_of("19"), rest(2)]));
    bounds.push(Ast::concat([two(), literal(","), three()]));
    let counted = Ast::alternation(bounds);
    let braces = Ast::concat([literal("{"), counted, literal("}")]);
    Ast::concat([Ast::alternation([one_of("**++??"), braces]), Ast::optional(literal("?"))])
}

fn up_to(inner: Ast, most: u32) -> Ast {
    Ast::repeat(inner, 0, Some(most))
}

#[cfg(test)]
pub(super) const CASES: &[super::tests::Case] = &[(
    "regex",
    &[
        "",
        "^x-",
        "([abc])+\\s+$",
        "^\\d{3}-\\d{4}$",
        "[-a-zA-Z0-9_.]",
        "a{2,10}?",
        "a{5,5}",
        "(?:a|b)*",
        "(?!foo)(?=bar)(?<!a)b",
        "\\p{Lu}\\u00e9\\x41\\cJ",
        "[^\\]\\\\]",
        "a|",
        "()",
        "((((a))))",
        "a{100,255}",
        "[a\\-]",
    ],
    &[
        "^(abc]", "\\a", "(", ")", "[", "]", "a{", "a{2,1}", "[b-a]", "a**", "^*", "(?i)a", "\\1",
        "(?=a)*", "[]", "\\p{X}", "\\u12", "(?<n>a)", "\\", "\\ud800", "a{11,10}", "a++",
    ],
)];
