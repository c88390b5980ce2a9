//! Compiled grammars, and the options and limits of a compilation.

use std::sync::Arc;
use std::time::Duration;

use ::ffwd_grammar::{ebnf, gbnf, lark};
use ffwd_automaton::{Escapes, Numbers, PropertyOrder, Whitespace, WhitespaceMode, Writing};
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::Meter;
use ffwd_engine::engine::{CompileError, Compiled, Engine, GrammarOptions};
use ffwd_json_schema::{Parsing, Policy};
use ffwd_regular::regex::{parse, Dialect, PatternOptions};

use crate::error::{borrowed, call, changed, ffwd_error, ffwd_status, free};
use crate::vocabulary::{ffwd_bytes, ffwd_vocabulary};

/// A language: a JSON Schema.
pub const FFWD_JSON_SCHEMA: u32 = 0;
/// A language: a regular expression, which the whole text matches.
pub const FFWD_REGEX: u32 = 1;
/// A language: a grammar in llguidance's Lark.
pub const FFWD_LARK: u32 = 2;
/// A language: a grammar in llama.cpp's GBNF.
pub const FFWD_GBNF: u32 = 3;
/// A language: a grammar in XGrammar's EBNF.
pub const FFWD_EBNF: u32 = 4;

/// White space: one layout that `json.dumps` writes, chosen by the text itself.
pub const FFWD_WHITESPACE_CONSISTENT: u32 = 0;
/// White space: any, in runs of at most `max_whitespace`.
pub const FFWD_WHITESPACE_FLEXIBLE: u32 = 1;
/// White space: none.
pub const FFWD_WHITESPACE_COMPACT: u32 = 2;
/// White space: one space after commas and colons.
pub const FFWD_WHITESPACE_SINGLE_SPACE: u32 = 3;

/// Regular expressions in the syntax of Rust's crate `regex`.
pub const FFWD_DIALECT_RUST: u32 = 0;
/// Regular expressions in the syntax of ECMAScript.
pub const FFWD_DIALECT_ECMA: u32 = 1;
/// Regular expressions in the syntax of Python's `re`.
pub const FFWD_DIALECT_PYTHON: u32 = 2;

/// How a text is read, and how JSON is written. `ffwd_options_default` has the defaults.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ffwd_options {
    /// One of `FFWD_WHITESPACE_…`.
    pub whitespace: u32,
    /// The longest run of flexible white space, in characters.
    pub max_whitespace: u32,
    /// Whether properties may come in any order; otherwise in the order of the schema.
    pub any_property_order: bool,
    /// Whether every valid spelling of a number is allowed, such as `21.0` and `1e999`.
    pub any_numbers: bool,
    /// Whether the characters of strings may be written as any escape, such as `\u00e9` and `\/`.
    pub any_escapes: bool,
    /// Whether keywords that cannot be enforced are ignored instead of refused.
    pub lenient: bool,
    /// One of `FFWD_DIALECT_…`.
    pub regex_dialect: u32,
    /// The rule that texts of GBNF and EBNF match; `root` by default.
    pub root: ffwd_bytes,
}

impl ffwd_options {
    fn grammar_options(&self) -> Result<GrammarOptions, ffwd_error> {
        let mode = match self.whitespace {
            FFWD_WHITESPACE_CONSISTENT => WhitespaceMode::Consistent,
            FFWD_WHITESPACE_FLEXIBLE => WhitespaceMode::Flexible { max_run: self.max_whitespace },
            FFWD_WHITESPACE_COMPACT => WhitespaceMode::Compact,
            FFWD_WHITESPACE_SINGLE_SPACE => WhitespaceMode::SingleSpace,
            other => return Err(unknown("whitespace", other)),
        };
        let property_order = match self.any_property_order {
            true => PropertyOrder::Any,
            false => PropertyOrder::Declared,
        };
        let numbers = if self.any_numbers { Numbers::Any } else { Numbers::Plain };
        let escapes = if self.any_escapes { Escapes::Any } else { Escapes::Canonical };
        let policy = if self.lenient { Policy::Lenient } else { Policy::Strict };
        Ok(GrammarOptions {
            writing: Writing { whitespace: Whitespace { mode }, property_order, numbers, escapes },
            parsing: Parsing { policy, ..Parsing::default() },
        })
    }

    fn pattern_options(&self) -> Result<PatternOptions, ffwd_error> {
        let dialect = match self.regex_dialect {
            FFWD_DIALECT_RUST => Dialect::Rust,
            FFWD_DIALECT_ECMA => Dialect::Ecma,
            FFWD_DIALECT_PYTHON => Dialect::Python,
            other => return Err(unknown("regex_dialect", other)),
        };
        Ok(PatternOptions { dialect, ..PatternOptions::default() })
    }
}

fn unknown(name: &str, value: u32) -> ffwd_error {
    ffwd_error::argument(format!("`{name}` has no value {value}"))
}

/// Return the default options: consistent white space, declared order, plain numbers, canonical
/// escapes, strict.
#[no_mangle]
pub extern "C" fn ffwd_options_default() -> ffwd_options {
    ffwd_options {
        whitespace: FFWD_WHITESPACE_CONSISTENT,
        max_whitespace: 64,
        any_property_order: false,
        any_numbers: false,
        any_escapes: false,
        lenient: false,
        regex_dialect: FFWD_DIALECT_RUST,
        root: ffwd_bytes::of(b"root"),
    }
}

/// How much a compilation, and each call of the grammar's matchers, may use.
///
/// The largest value of a type lifts a limit; seconds are lifted by infinity.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ffwd_limits {
    /// Bytes of the text of the grammar.
    pub source_bytes: usize,
    /// Brackets in brackets.
    pub nesting: usize,
    /// Byte expressions of one lexeme.
    pub expression_nodes: usize,
    /// States of the automaton at a time.
    pub states: usize,
    /// Stacks of the automaton at a time.
    pub stacks: usize,
    /// Bytes built lazily; exceeding it evicts them and is no error.
    pub memory_bytes: usize,
    /// Bytes that one call holds at a time.
    pub work_bytes: usize,
    /// Elementary steps of the compilation.
    pub compile_steps: u64,
    /// Elementary steps of one call of a matcher.
    pub call_steps: u64,
    /// Seconds of the compilation.
    pub compile_seconds: f64,
    /// Seconds of one call of a matcher.
    pub call_seconds: f64,
}

/// Return the default limits, which suit a server that takes grammars from strangers.
#[no_mangle]
pub extern "C" fn ffwd_limits_default() -> ffwd_limits {
    let limits = Limits::default();
    ffwd_limits {
        source_bytes: limits.source_bytes,
        nesting: limits.nesting,
        expression_nodes: limits.expression_nodes,
        states: limits.states,
        stacks: limits.stacks,
        memory_bytes: limits.memory_bytes,
        work_bytes: limits.work_bytes,
        compile_steps: limits.compile_steps,
        call_steps: limits.call_steps,
        compile_seconds: limits.compile_time.as_secs_f64(),
        call_seconds: limits.call_time.as_secs_f64(),
    }
}

impl ffwd_limits {
    fn limits(&self) -> Result<Limits, ffwd_error> {
        let time = |seconds: f64, name: &str| match seconds >= 0.0 {
            true => Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
            false => Err(ffwd_error::argument(format!("`{name}` must be 0 or more"))),
        };
        Ok(Limits {
            source_bytes: self.source_bytes,
            nesting: self.nesting,
            expression_nodes: self.expression_nodes,
            states: self.states,
            stacks: self.stacks,
            memory_bytes: self.memory_bytes,
            work_bytes: self.work_bytes,
            compile_steps: self.compile_steps,
            call_steps: self.call_steps,
            compile_time: time(self.compile_seconds, "compile_seconds")?,
            call_time: time(self.call_seconds, "call_seconds")?,
        })
    }
}

/// A grammar, compiled for one vocabulary.
pub struct ffwd_grammar {
    pub(crate) compiled: Arc<Compiled>,
}

/// Compile a grammar.
///
/// Args:
///     language: One of `FFWD_JSON_SCHEMA`, `FFWD_REGEX`, `FFWD_LARK`, `FFWD_GBNF`, `FFWD_EBNF`.
///     text: The schema, pattern or grammar, in UTF-8.
///     options, limits: Null for the defaults.
///     grammar: Receives the grammar.
///
/// # Safety
/// The pointers are null where that is allowed, or valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_compile(
    vocabulary: *const ffwd_vocabulary,
    language: u32,
    text: ffwd_bytes,
    options: *const ffwd_options,
    limits: *const ffwd_limits,
    grammar: *mut *mut ffwd_grammar,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        let (defaults, no_limits) = (ffwd_options_default(), ffwd_limits_default());
        // SAFETY: the caller says that these are valid.
        let (vocabulary, made, text, options, limits) = unsafe {
            (
                borrowed(vocabulary, "vocabulary")?,
                changed(grammar, "grammar")?,
                text.text("text")?,
                options.as_ref().unwrap_or(&defaults),
                limits.as_ref().unwrap_or(&no_limits),
            )
        };
        // SAFETY: likewise.
        let root = unsafe { options.root.text("root") }?;
        let limits = limits.limits()?;
        let mut meter = Meter::compiling(&limits, None);
        meter.read(text.len())?;
        let engine = &vocabulary.engine;
        let work = || compiled(engine, language, text, root, options);
        let compiled = engine.settle_after(meter.run(work))?.within(limits);
        *made = Box::into_raw(Box::new(ffwd_grammar { compiled: Arc::new(compiled) }));
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

fn compiled(
    engine: &Arc<Engine>,
    language: u32,
    text: &str,
    root: &str,
    options: &ffwd_options,
) -> Result<Compiled, ffwd_error> {
    let written = options.grammar_options()?;
    let parsed = match language {
        FFWD_JSON_SCHEMA => return Ok(engine.compile_json_schema(text, written)?),
        FFWD_REGEX => {
            let language = parse(text, &options.pattern_options()?).map_err(|error| {
                let (line, column) = error.line_and_column(text);
                CompileError::Pattern { error, line, column }
            })?;
            return Ok(engine.compile_language(language)?);
        }
        FFWD_LARK => lark::parse(text)?,
        FFWD_GBNF => gbnf::parse(text, root)?,
        FFWD_EBNF => ebnf::parse(text, root)?,
        other => return Err(unknown("language", other)),
    };
    Ok(engine.compile_grammar(&parsed, written)?)
}

/// Free a grammar. Its matchers keep what they need of it.
///
/// # Safety
/// `grammar` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_grammar_free(grammar: *mut ffwd_grammar) {
    // SAFETY: as above.
    unsafe { free(grammar) };
}

/// Return the bytes that everything built for a grammar so far takes, as estimated; 0 of null.
///
/// # Safety
/// `grammar` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_grammar_memory_bytes(grammar: *const ffwd_grammar) -> u64 {
    // SAFETY: as above.
    unsafe { borrowed(grammar, "grammar") }.map_or(0, |grammar| {
        let stats = grammar.compiled.stats();
        stats.iter().find(|(name, _)| *name == "memory_bytes").map_or(0, |&(_, bytes)| bytes)
    })
}
