//! Languages of terminals, with what they cost.

use rustc_hash::FxHashMap;

use super::fault::Fault;
use ffwd_bounds::error::LimitExceeded;
use ffwd_regular::regex::{rust_dialect, Ast, CharClass};

/// How many bytes all terminals of a grammar may take, shared parts counted as often as they occur.
const MAX_BYTES: usize = 64 << 20;
/// How deep the language of a terminal may nest.
const MAX_DEPTH: usize = 500;
/// How deep groups of a pattern may nest.
const MAX_NESTING: u32 = 200;
/// The estimated memory of a part in the list of its whole.
const PART: usize = std::mem::size_of::<Ast>() + 16;

/// A regular language with its size, which is checked before anything larger is built of it.
#[derive(Clone, Debug)]
pub(super) struct Language {
    pub ast: Ast,
    bytes: usize,
    depth: usize,
}

/// Makes languages within the limits of one grammar.
#[derive(Debug, Default)]
pub(super) struct Languages<'t> {
    bytes: usize,
    /// Equal patterns are read once.
    patterns: FxHashMap<(&'t str, &'t str), Language>,
    /// Characters in either case.
    folded: FxHashMap<char, Ast>,
}

impl<'t> Languages<'t> {
    fn language(
        &mut self,
        at: usize,
        bytes: usize,
        depth: usize,
        make: impl FnOnce() -> Ast,
    ) -> Result<Language, Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_BYTES {
            let limit = LimitExceeded::new("lark_terminal_bytes", MAX_BYTES);
            return Err(Fault::limit(at, limit));
        }
        if depth > MAX_DEPTH {
            let limit = LimitExceeded::new("lark_terminal_nesting", MAX_DEPTH);
            return Err(Fault::limit(at, limit));
        }
        Ok(Language { ast: make(), bytes, depth })
    }

    pub fn simple(&mut self, at: usize, ast: Ast) -> Result<Language, Fault> {
        let (bytes, depth) = (ast.memory_bytes(), depth(&ast));
        self.language(at, bytes, depth, || ast)
    }

    pub fn text(&mut self, at: usize, text: &str, ignore_case: bool) -> Result<Language, Fault> {
        if !ignore_case {
            return self.simple(at, Ast::literal(text));
        }
        let mut characters = Vec::with_capacity(text.len());
        for character in text.chars() {
            let known = self.folded.get(&character).cloned();
            characters.push(match known {
                Some(known) => known,
                None => {
                    let pattern =
                        format!("(?i){}", regex_syntax::escape(character.encode_utf8(&mut [0; 4])));
                    let ast = rust_dialect::anchored(&pattern)
                        .map_err(|error| Fault::pattern(at, "", usize::MAX, &error))?;
                    self.folded.insert(character, ast.clone());
                    ast
                }
            });
        }
        if characters.iter().all(|ast| matches!(ast, Ast::Literal(_))) {
            return self.simple(at, Ast::literal(text));
        }
        self.simple(at, Ast::concat(characters))
    }

    pub fn range(&mut self, at: usize, first: char, last: char) -> Result<Language, Fault> {
        self.simple(at, Ast::class(CharClass::new([(first as u32, last as u32)])))
    }

    /// A pattern of the `regex` crate, which begins at a byte.
    pub fn regex(
        &mut self,
        at: usize,
        pattern: &'t str,
        flags: &'t str,
    ) -> Result<Language, Fault> {
        if let Some(known) = self.patterns.get(&(pattern, flags)) {
            return Ok(known.clone());
        }
        if flags.contains('l') {
            let message = "the flag `l` is not supported: patterns know no locale";
            return Err(Fault::unsupported(at, "the flag `l` of patterns", message));
        }
        refuse_looks(at, pattern, flags)?;
        let language = if flags.is_empty() {
            rust_dialect::anchored(pattern).map_err(|error| Fault::pattern(at, pattern, 0, &error))
        } else {
            let flagged = format!("(?{flags}){pattern}");
            let before = flags.len() + "(?)".len();
            rust_dialect::anchored(&flagged)
                .map_err(|error| Fault::pattern(at, pattern, before, &error))
        }?;
        let language = self.simple(at, language)?;
        self.patterns.insert((pattern, flags), language.clone());
        Ok(language)
    }

    /// One after the other.
    pub fn concat(&mut self, at: usize, parts: Vec<Language>) -> Result<Language, Fault> {
        self.joined(at, parts, |ast| matches!(ast, Ast::Concat(_)), Ast::concat)
    }

    /// Any of these.
    pub fn choice(&mut self, at: usize, parts: Vec<Language>) -> Result<Language, Fault> {
        self.joined(at, parts, |ast| matches!(ast, Ast::Alternation(_)), Ast::alternation)
    }

    /// Returns the intersection of all of these.
    pub fn intersection(&mut self, at: usize, parts: Vec<Language>) -> Result<Language, Fault> {
        self.joined(at, parts, |_| false, Ast::intersection)
    }

    fn joined(
        &mut self,
        at: usize,
        mut parts: Vec<Language>,
        merges: fn(&Ast) -> bool,
        make: fn(Vec<Ast>) -> Ast,
    ) -> Result<Language, Fault> {
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        let bytes = parts.iter().fold(0usize, |sum, part| sum.saturating_add(PART + part.bytes));
        let deep = |part: &Language| part.depth + usize::from(!merges(&part.ast));
        let depth = parts.iter().map(deep).max().unwrap_or(0);
        self.language(at, bytes, depth, || make(parts.into_iter().map(|part| part.ast).collect()))
    }

    pub fn repeat(
        &mut self,
        at: usize,
        inner: Language,
        min: u32,
        max: Option<u32>,
    ) -> Result<Language, Fault> {
        let (bytes, depth) = (PART + inner.bytes, inner.depth + 1);
        self.language(at, bytes, depth, || Ast::repeat(inner.ast, min, max))
    }

    pub fn complement(&mut self, at: usize, inner: Language) -> Result<Language, Fault> {
        let (bytes, depth) = (PART + inner.bytes, inner.depth + 1);
        self.language(at, bytes, depth, || Ast::complement(inner.ast))
    }
}

/// Word boundaries and line anchors depend on the text around a lexeme, which a lexer does not see.
fn refuse_looks(at: usize, pattern: &str, flags: &str) -> Result<(), Fault> {
    let boundary = ["\\b", "\\B", "\\<", "\\>"].iter().filter_map(|sign| pattern.find(sign)).min();
    if boundary.is_none() && !flags.contains('m') && !may_set_multi_line(pattern) {
        return Ok(());
    }
    let mut parser = regex_syntax::ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .multi_line(flags.contains('m'))
        .ignore_whitespace(flags.contains('x'))
        .build();
    // The parser of the pattern reports its errors.
    let Ok(read) = parser.parse(pattern) else { return Ok(()) };
    let looks = read.properties().look_set();
    if looks.contains_word() {
        let message =
            "word boundaries are not supported in lexemes, which do not see what is around \
                       them: the longest match ends a word";
        let place = at + boundary.unwrap_or(0);
        return Err(Fault::unsupported(place, "word boundary", message));
    }
    if looks.contains_anchor_line() {
        let message = "line anchors are not supported in lexemes, which do not see what is around \
                       them: match the line ends";
        return Err(Fault::unsupported(at, "multi-line anchor", message));
    }
    Ok(())
}

/// Whether a group of a pattern may set the flag `m`.
fn may_set_multi_line(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|group| {
        let flags = group.chars().take_while(|&sign| sign.is_ascii_alphabetic() || sign == '-');
        flags.into_iter().any(|flag| flag == 'm')
    })
}

/// How deeply the language of a pattern nests; patterns do not nest deeply.
fn depth(ast: &Ast) -> usize {
    match ast {
        Ast::Concat(parts) | Ast::Alternation(parts) | Ast::Intersection(parts) => {
            1 + parts.iter().map(depth).max().unwrap_or(0)
        }
        Ast::Repeat { inner, .. }
        | Ast::Complement(inner)
        | Ast::Before(inner)
        | Ast::After(inner) => 1 + depth(inner),
        Ast::Approximate { known, possible } => 1 + depth(known).max(depth(possible)),
        Ast::Empty
        | Ast::Epsilon
        | Ast::Class(_)
        | Ast::Literal(_)
        | Ast::Magnitude(_)
        | Ast::Finite(_)
        | Ast::Substring(_) => 0,
    }
}
