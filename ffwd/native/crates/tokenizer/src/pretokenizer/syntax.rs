//! The parser of a pattern's text.
//!
//! `regex-syntax` supports neither look-ahead nor possessive quantifiers. A look-ahead at one
//! character is replaced by a marker character before the text is parsed. A possessive quantifier
//! is parsed as a repetition of a repetition, which no pattern otherwise contains without a group
//! in between.

use std::ops::Range;

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    AssertionKind, Ast, ClassSet as AstClassSet, Flag, FlagsItemKind, GroupKind, Repetition,
    RepetitionKind, RepetitionRange, Span,
};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::error::PreTokenizerError;

/// Which engine the pattern is written for, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The regular expressions of a tokenizer.json.
    Oniguruma,
    /// The regular expressions of tiktoken.
    FancyRegex,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Empty,
    Class(ClassUnicode),
    Look(Look),
    Concat(Vec<Syntax>),
    Alternation(Vec<Syntax>),
    Repeat {
        node: Box<Syntax>,
        least: u32,
        most: Option<u32>,
        kind: RepeatKind,
        /// The offset of the quantifier in the pattern.
        offset: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatKind {
    Greedy,
    Lazy,
    Possessive,
}

/// The next character is of `next`, or the text ends if it may end here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub next: ClassUnicode,
    pub at_end: bool,
}

/// How deep groups and quantifiers may nest, so that reading them is bounded.
const MAX_NESTING: u32 = 100;

/// The marker of a look-ahead while the text is parsed. The same character in the pattern itself is
/// recognized by its offset.
const MARK: char = char::MAX;

pub(super) fn parse(pattern: &str, dialect: Dialect) -> Result<Syntax, PreTokenizerError> {
    let marked = Marked::new(pattern)?;
    let ast = ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(&marked.text).map_err(
        |error| PreTokenizerError::Invalid {
            offset: marked.original(error.span().start.offset),
            reason: error.kind().to_string(),
        },
    )?;
    Reader { marked, dialect }.read(&ast, false)
}

pub(super) fn literal(text: &str) -> Syntax {
    Syntax::Concat(text.chars().map(|character| Syntax::Class(single(character))).collect())
}

fn single(character: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(character, character)])
}

/// A pattern with a marker for each look-ahead.
struct Marked {
    text: String,
    looks: Vec<MarkedLook>,
}

struct MarkedLook {
    /// The offset of the marker in the replaced text.
    mark: usize,
    /// The range of the look-ahead in the original text.
    original: Range<usize>,
    negative: bool,
    inner: String,
}

impl Marked {
    fn new(pattern: &str) -> Result<Self, PreTokenizerError> {
        let mut text = String::with_capacity(pattern.len());
        let mut looks = Vec::new();
        let mut rest = pattern;
        let mut depth = 0_usize;
        while let Some(first) = rest.chars().next() {
            let offset = pattern.len() - rest.len();
            let unsupported = |construct| Err(PreTokenizerError::Unsupported { construct, offset });
            let taken = match first {
                '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                '[' => {
                    depth += 1;
                    let negation = usize::from(rest[1..].starts_with('^'));
                    // The first bracket is an item of the class.
                    1 + negation + usize::from(rest[1 + negation..].starts_with(']'))
                }
                ']' => {
                    depth = depth.saturating_sub(1);
                    1
                }
                '(' if depth == 0 && rest.starts_with("(?>") => {
                    return unsupported("an atomic group");
                }
                '(' if depth == 0 && (rest.starts_with("(?<=") || rest.starts_with("(?<!")) => {
                    return unsupported("a lookbehind");
                }
                '(' if depth == 0 && (rest.starts_with("(?=") || rest.starts_with("(?!")) => {
                    let Some(length) = group_length(rest) else {
                        return Err(PreTokenizerError::Invalid {
                            offset,
                            reason: "the look-ahead is not closed".to_owned(),
                        });
                    };
                    looks.push(MarkedLook {
                        mark: text.len(),
                        original: offset..offset + length,
                        negative: rest.starts_with("(?!"),
                        inner: rest[3..length - 1].to_owned(),
                    });
                    text.push(MARK);
                    rest = &rest[length..];
                    continue;
                }
                other => other.len_utf8(),
            };
            text.push_str(&rest[..taken]);
            rest = &rest[taken..];
        }
        Ok(Self { text, looks })
    }

    /// The place in the pattern of a place in the text.
    fn original(&self, offset: usize) -> usize {
        match self.looks.iter().rev().find(|look| look.mark < offset) {
            Some(look) => look.original.end + (offset - look.mark - MARK.len_utf8()),
            None => offset,
        }
    }
}

/// Returns the length of the group at the start of `text`.
fn group_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut class = false;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '(' if !class => depth += 1,
            ')' if !class => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

struct Reader {
    marked: Marked,
    dialect: Dialect,
}

impl Reader {
    fn unsupported<T>(&self, construct: &'static str, span: &Span) -> Result<T, PreTokenizerError> {
        let offset = self.marked.original(span.start.offset);
        Err(PreTokenizerError::Unsupported { construct, offset })
    }

    fn text(&self, span: &Span) -> &str {
        self.marked.text.get(span.start.offset..span.end.offset).unwrap_or_default()
    }

    fn read(&self, ast: &Ast, ignore_case: bool) -> Result<Syntax, PreTokenizerError> {
        let list = |asts: &[Ast]| {
            asts.iter().map(|ast| self.read(ast, ignore_case)).collect::<Result<Vec<_>, _>>()
        };
        match ast {
            Ast::Empty(_) => Ok(Syntax::Empty),
            Ast::Flags(flags) => self.unsupported("flags for the rest of a group", &flags.span),
            Ast::Literal(literal) => {
                let mark = literal.span.start.offset;
                match self.marked.looks.iter().find(|look| look.mark == mark) {
                    Some(look) => self.look(look, ignore_case).map(Syntax::Look),
                    None => self.class(&literal.span, ignore_case).map(Syntax::Class),
                }
            }
            Ast::Dot(span) => self.class(span, ignore_case).map(Syntax::Class),
            Ast::ClassUnicode(class) => self.class(&class.span, ignore_case).map(Syntax::Class),
            Ast::ClassPerl(class) => self.class(&class.span, ignore_case).map(Syntax::Class),
            Ast::ClassBracketed(class) => {
                if self.dialect == Dialect::Oniguruma {
                    self.check_brackets(&class.kind)?;
                }
                self.class(&class.span, ignore_case).map(Syntax::Class)
            }
            Ast::Assertion(assertion) => match (&assertion.kind, self.dialect) {
                (AssertionKind::EndText, _) | (AssertionKind::EndLine, Dialect::FancyRegex) => {
                    Ok(Syntax::Look(Look { next: ClassUnicode::empty(), at_end: true }))
                }
                (AssertionKind::EndLine, Dialect::Oniguruma) => {
                    Ok(Syntax::Look(Look { next: single('\n'), at_end: true }))
                }
                _ => self.unsupported("an assertion about the text before", &assertion.span),
            },
            Ast::Repetition(repetition) => self.repetition(repetition, ignore_case),
            Ast::Group(group) => {
                let inner_ignores = match &group.kind {
                    GroupKind::NonCapturing(flags) => {
                        let mut value = true;
                        let mut result = ignore_case;
                        for item in &flags.items {
                            match &item.kind {
                                FlagsItemKind::Negation => value = false,
                                FlagsItemKind::Flag(Flag::CaseInsensitive) => result = value,
                                FlagsItemKind::Flag(_) => {
                                    return self.unsupported("a flag other than i", &item.span);
                                }
                            }
                        }
                        result
                    }
                    GroupKind::CaptureIndex(_) | GroupKind::CaptureName { .. } => ignore_case,
                };
                if inner_ignores && self.dialect == Dialect::Oniguruma {
                    self.check_folding(&group.span)?;
                }
                self.read(&group.ast, inner_ignores)
            }
            Ast::Alternation(alternation) => Ok(Syntax::Alternation(list(&alternation.asts)?)),
            Ast::Concat(concat) => Ok(Syntax::Concat(list(&concat.asts)?)),
        }
    }

    fn repetition(
        &self,
        repetition: &Repetition,
        ignore_case: bool,
    ) -> Result<Syntax, PreTokenizerError> {
        let (least, most) = match &repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(range) => match *range {
                RepetitionRange::Exactly(_)
                    if !repetition.greedy && self.dialect == Dialect::Oniguruma =>
                {
                    return self.unsupported("a lazy quantifier {n}?", &repetition.op.span);
                }
                RepetitionRange::Exactly(n) => (n, Some(n)),
                RepetitionRange::AtLeast(n) => (n, None),
                RepetitionRange::Bounded(least, most) => (least, Some(most)),
            },
        };
        let offset = self.marked.original(repetition.op.span.start.offset);
        let kind = if repetition.greedy { RepeatKind::Greedy } else { RepeatKind::Lazy };
        if let Ast::Repetition(inner) = &*repetition.ast {
            let plus = repetition.greedy && repetition.op.kind == RepetitionKind::OneOrMore;
            if !plus || !inner.greedy || matches!(&*inner.ast, Ast::Repetition(_)) {
                return self.unsupported("a quantifier of a quantifier", &repetition.op.span);
            }
            let mut node = self.repetition(inner, ignore_case)?;
            // Oniguruma takes the plus behind braces for a repetition of what is before it.
            let braces = matches!(inner.op.kind, RepetitionKind::Range(_));
            if braces && self.dialect == Dialect::Oniguruma {
                return Ok(Syntax::Repeat { node: Box::new(node), least, most, kind, offset });
            }
            if let Syntax::Repeat { kind, .. } = &mut node {
                *kind = RepeatKind::Possessive;
            }
            return Ok(node);
        }
        let node = Box::new(self.read(&repetition.ast, ignore_case)?);
        Ok(Syntax::Repeat { node, least, most, kind, offset })
    }

    fn class(&self, span: &Span, ignore_case: bool) -> Result<ClassUnicode, PreTokenizerError> {
        let text = self.text(span);
        if self.dialect == Dialect::Oniguruma && (text.contains(r"\w") || text.contains(r"\W")) {
            return self.unsupported(r"the class \w, which differs between engines", span);
        }
        match class_of(text, ignore_case) {
            Ok(Some(class)) => Ok(class),
            Ok(None) => self.unsupported("a class that is empty or of bytes", span),
            Err(reason) => {
                let offset = self.marked.original(span.start.offset);
                Err(PreTokenizerError::Invalid { offset, reason })
            }
        }
    }

    fn look(&self, look: &MarkedLook, ignore_case: bool) -> Result<Look, PreTokenizerError> {
        let refused = PreTokenizerError::Unsupported {
            construct: "a look-ahead at more than one character",
            offset: look.original.start,
        };
        if ignore_case && self.dialect == Dialect::Oniguruma {
            return Err(refused);
        }
        let node = parse(&look.inner, self.dialect).map_err(|_| refused.clone())?;
        let mut next = one_character(&node).ok_or(refused)?;
        if ignore_case {
            next.case_fold_simple();
        }
        if look.negative {
            next.negate();
        }
        Ok(Look { next, at_end: look.negative })
    }

    /// Refuses what Oniguruma reads in another way than `regex-syntax`.
    fn check_brackets(&self, set: &AstClassSet) -> Result<(), PreTokenizerError> {
        use regex_syntax::ast::{ClassSetBinaryOpKind, ClassSetItem};
        match set {
            AstClassSet::BinaryOp(operation) => {
                if operation.kind != ClassSetBinaryOpKind::Intersection {
                    return self.unsupported("a class operation other than &&", &operation.span);
                }
                self.check_brackets(&operation.lhs)?;
                self.check_brackets(&operation.rhs)
            }
            AstClassSet::Item(ClassSetItem::Ascii(class)) => {
                self.unsupported("a POSIX class", &class.span)
            }
            AstClassSet::Item(ClassSetItem::Bracketed(class)) => self.check_brackets(&class.kind),
            AstClassSet::Item(ClassSetItem::Union(union)) => union
                .items
                .iter()
                .try_for_each(|item| self.check_brackets(&AstClassSet::Item(item.clone()))),
            AstClassSet::Item(_) => Ok(()),
        }
    }

    /// When case is ignored, Oniguruma matches "ss" with "ß" and the like, and `regex-syntax` does
    /// not. Only parts without such a pair are accepted: ASCII, without quantifiers and negations.
    fn check_folding(&self, span: &Span) -> Result<(), PreTokenizerError> {
        const PAIRS: [&str; 5] = ["ss", "st", "ff", "fi", "fl"];
        let text = self.text(span).to_ascii_lowercase();
        let inner = text.split_once(':').map_or(&*text, |(_, inner)| inner);
        let odd = |character: char| !character.is_ascii() || r"\?*+{^&(".contains(character);
        if inner.contains(odd) || PAIRS.iter().any(|pair| inner.contains(pair)) {
            return self.unsupported("text without regard to case, other than plain ASCII", span);
        }
        Ok(())
    }
}

/// Returns the set of a tree of one character.
fn one_character(node: &Syntax) -> Option<ClassUnicode> {
    match node {
        Syntax::Class(class) => Some(class.clone()),
        Syntax::Alternation(nodes) => {
            let mut union = ClassUnicode::empty();
            for node in nodes {
                union.union(&one_character(node)?);
            }
            Some(union)
        }
        Syntax::Concat(nodes) => match &nodes[..] {
            [node] => one_character(node),
            _ => None,
        },
        Syntax::Empty | Syntax::Look(_) | Syntax::Repeat { .. } => None,
    }
}

/// Returns the set of the text of one class or one character.
fn class_of(text: &str, ignore_case: bool) -> Result<Option<ClassUnicode>, String> {
    let hir = regex_syntax::ParserBuilder::new()
        .case_insensitive(ignore_case)
        .build()
        .parse(text)
        .map_err(|error| error.to_string())?;
    Ok(match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.clone()),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class(),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok();
            text.and_then(|text| {
                let mut characters = text.chars();
                characters.next().filter(|_| characters.next().is_none()).map(single)
            })
        }
        _ => None,
    }
    .filter(|class| !class.ranges().is_empty()))
}
