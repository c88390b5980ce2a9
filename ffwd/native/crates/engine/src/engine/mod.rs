//! A vocabulary with everything that is shared by the grammars compiled for it, and compilation.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::mask::{LexemeMaskStore, MaskCounters, Masker, Sharded};
use ffwd_automaton::Program;
use ffwd_automaton::{
    Automaton, EngineError, Grammar, RuleSchemas, Whitespace, WhitespaceMode, Writing,
};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::{self, heap, Meter};
use ffwd_bounds::section;
use ffwd_grammar::{Excerpt, GrammarError, GrammarErrorKind};
use ffwd_json_schema::{SchemaError, SchemaId, SchemaOptions, SchemaSet};
use ffwd_regular::expr::lexeme::after_value;
use ffwd_regular::expr::texts::{texts, TextCounter};
use ffwd_regular::expr::{LexemeSpec, LexemeStore, Spelling};
use ffwd_regular::regex::{rust_dialect, Ast, PatternError, PatternErrorKind};
use ffwd_tokenizer::canonical::{CanonicalMasks, Canonicality, KnownContexts};
use ffwd_tokenizer::tokenizer::{EncodeOptions, PartOptions, TextError, Tokenizer};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

mod culprit;
pub(crate) mod generation;
mod recipe;
mod rules;
pub(crate) mod transitions;
pub(crate) use generation::{Generation, Kept};
pub(crate) use recipe::Recipe;
pub use rules::GrammarOptions;

/// Byte budgets of the caches.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Shared automata of lexemes.
    pub lexeme_bytes: usize,
    /// Shared masks of lexeme states.
    pub lexeme_mask_bytes: usize,
    /// All that is built lazily for one compiled grammar.
    pub grammar_bytes: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { lexeme_bytes: 160 << 20, lexeme_mask_bytes: 80 << 20, grammar_bytes: 256 << 20 }
    }
}

/// How the tokenizer would encode text: with no special tokens, as in the middle of a text.
pub trait Encoder: Send + Sync {
    /// The tokens of `text`, in order.
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError>;
}

/// The tokenizer failed.
#[derive(Clone, Debug, Error)]
#[error("the tokenizer could not encode {text:?}: {message}")]
pub struct EncodeError {
    /// The text that was to be encoded.
    pub text: String,
    /// The tokenizer's own words.
    pub message: String,
}

/// How many bytes of texts and their encodings an engine remembers.
const MAX_ENCODED_BYTES: usize = 16 << 20;

/// Texts that have been encoded.
#[derive(Default)]
struct Encoded {
    tokens: FxHashMap<Box<str>, Arc<[TokenId]>>,
    bytes: usize,
}

/// The longest run of white space in a grammar that does not say it.
const DEFAULT_MAX_RUN: u32 = 64;

/// A vocabulary, its tokenizer, and what all grammars for it share.
pub struct Engine {
    vocabulary: Arc<Vocabulary>,
    encoder: Option<Box<dyn Encoder>>,
    encoded: Mutex<Encoded>,
    exact: Option<Exact>,
    lexemes: Arc<LexemeStore>,
    lexeme_masks: Arc<LexemeMaskStore>,
    config: EngineConfig,
}

/// The compiled tokenizer, which decides which tokens are canonical.
struct Exact {
    canonicality: Arc<Canonicality>,
    masks: CanonicalMasks,
    contexts: KnownContexts,
}

/// A compiled tokenizer in the middle of a text.
struct NativeEncoder(Arc<Tokenizer>);

impl Encoder for NativeEncoder {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        // No space before it and no normalization: the tokens have the given text.
        let part = PartOptions { normalize: false, dummy_space: false, ..PartOptions::default() };
        let options = EncodeOptions { part, ..EncodeOptions::default() };
        let failed =
            |error: TextError| EncodeError { text: text.to_owned(), message: error.to_string() };
        self.0.encode(text.as_bytes(), &options).map_err(failed)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A grammar compiled for one vocabulary; its matchers share all that is built.
///
/// Built objects belong to a `Generation`. When a generation exceeds the grammar's memory,
/// another one replaces it. Matchers move there with their next step: they parse their tokens
/// again, and keep only what they need. Calls in between are unaffected, because a step uses its
/// generation to its end.
#[derive(Debug)]
pub struct Compiled {
    /// The vocabulary, and what all grammars compiled for it share.
    pub engine: Arc<Engine>,
    recipe: Recipe,
    source: Source,
    current: ArcSwap<Generation>,
    max_bytes: AtomicUsize,
    limits: Limits,
    /// About how many bytes calls have allocated since the last measurement.
    unsettled: AtomicUsize,
    renewing: Mutex<()>,
    pub(crate) counters: Counters,
}

/// The source of a new generation, besides the document of the previous one.
#[derive(Debug)]
enum Source {
    Text(Ast),
    Json(Writing),
    Rules { program: Arc<Program>, json: Option<RuleValues> },
}

/// The schemas of the values of a grammar of rules with their white space, and how values are
/// written.
type RuleValues = (Vec<(SchemaId, Whitespace)>, Writing);

/// Counters of one compiled grammar, over all generations.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub masks: Arc<MaskCounters>,
    pub forced_hits: Sharded,
    pub moves: AtomicU64,
    pub evictions: AtomicU64,
}

/// The size in bytes from which on a separate thread drops a generation.
const MANY_BYTES: usize = 1 << 20;
/// How many bytes calls may allocate before the memory is measured, which may be much more.
const UNSETTLED_BYTES: usize = 64 << 10;
/// Whether such a thread is running. There is one at a time, so that none holds memory while it
/// waits for a processor: meanwhile callers drop their generations themselves. So do all in a
/// process that was forked while one ran.
static TAKEN_APART: AtomicBool = AtomicBool::new(false);

/// Clears the flag when a generation was dropped, or could not be.
struct TakenApart;

impl Drop for TakenApart {
    fn drop(&mut self) {
        TAKEN_APART.store(false, Ordering::Release);
    }
}

impl Compiled {
    /// Returns the name of the kind of grammar, such as `json_schema`.
    pub fn kind(&self) -> &'static str {
        self.recipe.kind()
    }

    /// Returns the source of the compilation.
    pub(crate) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the current generation. It stays valid while the guard is held, which takes no lock
    /// and blocks no thread; guards must be short-lived.
    #[inline]
    pub(crate) fn generation(&self) -> Guard<Arc<Generation>> {
        self.current.load()
    }

    /// Whether the grammar has tokens that are taken as a whole, so that bytes alone do not
    /// determine the mask.
    pub fn has_tokens(&self) -> bool {
        self.generation().automaton.has_tokens()
    }

    /// Limits the memory of lazily built objects, besides what matchers need. Half of it is for
    /// masks.
    pub fn limited_to(self, max_bytes: usize) -> Self {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.generation().masker.set_max_bytes(max_bytes as u64 / 2);
        self
    }

    /// Sets the limits of further building, and of the calls of its matchers.
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self.limited_to(limits.memory_bytes)
    }

    /// Returns the limits of calls of its matchers.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Starts a new generation if the current one has grown too large.
    pub(crate) fn settle(&self, generation: &Generation) {
        if self.is_due() {
            self.settle_now(generation);
        }
    }

    /// Returns whether the memory should be measured, which is slower than most calls: when calls
    /// have allocated enough, as far as that is counted.
    fn is_due(&self) -> bool {
        let Some(taken) = heap::taken_by_call() else { return true };
        let unsettled = self.unsettled.fetch_add(taken, Ordering::Relaxed).saturating_add(taken);
        let budget = self.max_bytes.load(Ordering::Relaxed);
        let is_due = unsettled >= UNSETTLED_BYTES.min(budget / 16);
        if is_due {
            self.unsettled.store(0, Ordering::Relaxed);
        }
        is_due
    }

    fn settle_now(&self, generation: &Generation) {
        let budget = self.max_bytes.load(Ordering::Relaxed);
        if generation.is_full(budget, &self.limits) {
            self.renew(generation);
        }
    }

    /// To be called after a call that may have built something, successful or not. A call that
    /// failed because of the number of states or stacks would fail again while they are held.
    pub fn settle_after<T, E>(&self, done: Result<T, E>) -> Result<T, E> {
        if done.is_ok() && !self.is_due() {
            return done;
        }
        let generation = self.generation();
        let Limits { states, stacks, .. } = self.limits;
        let is_crowded = || generation.automaton.is_crowded(states, stacks);
        if done.is_err() && (heap::was_refused() || is_crowded()) {
            self.renew(&generation);
        } else {
            self.settle_now(&generation);
        }
        self.engine.settle_after(done)
    }

    #[cold]
    fn renew(&self, old: &Generation) {
        let Some(_only) = self.renewing.try_lock() else { return };
        if self.generation().number != old.number {
            return;
        }
        // It was built once, so it can be rebuilt; otherwise the old one stays. The caller that
        // triggers this should not pay for it.
        let mut meter = Meter::compiling(&self.limits, None);
        let Ok(fresh) = meter::unmetered(|| meter.run(|| self.fresh(old))) else { return };
        let old = self.current.swap(Arc::new(fresh));
        self.counters.evictions.fetch_add(1, Ordering::Relaxed);
        if old.memory_bytes().total() >= MANY_BYTES && !TAKEN_APART.swap(true, Ordering::AcqRel) {
            // Dropping many small objects takes long, and the triggering call should not wait.
            let (share, done) = (section::share(), TakenApart);
            let _ = std::thread::Builder::new().spawn(move || {
                let _section = share.begin();
                drop(old);
                drop(done);
            });
        }
    }

    /// Evicts everything that is built.
    #[cfg(test)]
    pub(crate) fn begin_anew(&self) {
        self.renew(&self.generation());
    }

    fn fresh(&self, old: &Generation) -> Result<Generation, CompileError> {
        let grammar = match (&self.source, old.automaton.json()) {
            (Source::Json(writing), Some(json)) => {
                Grammar::Json { schema: Box::new(json.schema.renewed()?), writing: writing.clone() }
            }
            (Source::Text(ast), _) => Grammar::Text(ast.clone()),
            (Source::Rules { program, json }, parts) => {
                let json = match (json, parts) {
                    (Some((roots, writing)), Some(parts)) => Some(RuleSchemas {
                        schema: Box::new(parts.schema.renewed()?),
                        roots: roots.clone(),
                        writing: writing.clone(),
                    }),
                    _ => None,
                };
                Grammar::Rules { program: program.clone(), json }
            }
            (Source::Json(_), None) => return Err(CompileError::Unsatisfiable("the schema")),
        };
        let automaton = Automaton::new(grammar, self.engine.lexemes.clone())?;
        let budget = self.max_bytes.load(Ordering::Relaxed);
        let masker = self.engine.masker(budget, self.counters.masks.clone());
        Ok(Generation::new(old.number.wrapping_add(1), automaton, masker))
    }

    /// Returns counters by name: what was built, and the sources of masks.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let generation = self.generation();
        let (automaton, masks) = (&generation.automaton, &self.counters.masks);
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = generation.memory_bytes();
        let (stacks, lexemes) = automaton.num_stacks_and_lexemes();
        vec![
            ("states", automaton.num_states() as u64),
            ("stacks", stacks as u64),
            ("lexemes", lexemes as u64),
            ("key_nodes", automaton.json().map_or(0, |json| json.keys.num_nodes()) as u64),
            ("mask_hits", masks.hits.get()),
            ("masks_computed", read(&masks.computed)),
            ("mask_nodes_walked", read(&masks.nodes_walked)),
            ("exit_tries_walked", read(&masks.exit_tries)),
            ("key_masks", read(&masks.key_masks)),
            ("doubts_resolved", read(&masks.doubts)),
            ("masks_cleared", read(&masks.cleared)),
            ("forced_hits", self.counters.forced_hits.get()),
            ("evictions", read(&self.counters.evictions)),
            ("matcher_moves", read(&self.counters.moves)),
            ("memory_bytes", bytes.total() as u64),
            ("state_bytes", bytes.automaton.states as u64),
            ("stack_bytes", bytes.automaton.stacks as u64),
            ("frame_bytes", bytes.automaton.frames as u64),
            ("key_bytes", bytes.automaton.keys as u64),
            ("schema_bytes", bytes.automaton.schema as u64),
            ("lexeme_bytes", bytes.automaton.lexemes as u64),
            ("mask_bytes", bytes.masks as u64),
            ("transition_bytes", bytes.transitions as u64),
            ("forced_bytes", bytes.forced as u64),
            ("shared_lexemes", self.engine.lexemes.len() as u64),
            ("shared_lexeme_mask_hits", self.engine.lexeme_masks.hits()),
            ("shared_lexeme_masks_made", self.engine.lexeme_masks.made()),
            ("shared_lexeme_walks", self.engine.lexeme_masks.walks()),
            ("shared_lexeme_mask_bytes", self.engine.lexeme_masks.memory_bytes() as u64),
        ]
    }
}

/// Why a grammar cannot be compiled.
#[derive(Clone, Debug, Error)]
pub enum CompileError {
    /// A regular expression breaks its syntax, or uses an unsupported feature.
    #[error("{error} (line {line}, column {column})")]
    Pattern {
        /// What is wrong with it.
        error: PatternError,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// A schema is at fault, or a limit is passed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A grammar of rules is at fault, or passes a limit.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// A schema within a grammar that was read from a text.
    #[error(
        "{error} ({source_kind}, line {line}, column {column})\n{caret}",
        line = excerpt.line, column = excerpt.column, caret = excerpt.with_caret()
    )]
    Schema {
        /// What is wrong with the schema.
        error: Box<SchemaError>,
        /// The language of the grammar around the schema, such as `Lark`.
        source_kind: &'static str,
        /// Where the schema begins in that grammar.
        excerpt: Excerpt,
    },
    /// The grammar, which these words name, has no text.
    #[error("no text matches {0}")]
    Unsatisfiable(&'static str),
}

impl CompileError {
    /// The budget that ran out, if that is what it is.
    pub fn exceeded(&self) -> Option<LimitExceeded> {
        match self {
            Self::Engine(error) => error.exceeded(),
            Self::Grammar(error) => match error.kind {
                GrammarErrorKind::Limit(limit) => Some(limit),
                _ => None,
            },
            Self::Schema { error, .. } => error.exceeded(),
            Self::Pattern { .. } | Self::Unsatisfiable(_) => None,
        }
    }
}

impl From<LimitExceeded> for CompileError {
    fn from(error: LimitExceeded) -> Self {
        Self::Engine(error.into())
    }
}

impl From<SchemaError> for CompileError {
    fn from(error: SchemaError) -> Self {
        Self::Engine(error.into())
    }
}

impl Engine {
    /// An engine without a compiled tokenizer; `encoder` serves the backoff method of forced
    /// tokens.
    pub fn new(
        vocabulary: Vocabulary,
        encoder: Option<Box<dyn Encoder>>,
        config: EngineConfig,
    ) -> Self {
        Self {
            vocabulary: Arc::new(vocabulary),
            encoder,
            encoded: Mutex::default(),
            exact: None,
            lexemes: Arc::new(LexemeStore::new(config.lexeme_bytes)),
            lexeme_masks: Arc::new(LexemeMaskStore::new(config.lexeme_mask_bytes)),
            config,
        }
    }

    /// An engine with the vocabulary's compiled tokenizer, which encodes. If it can tell which
    /// tokens are canonical, forced tokens are exact. The ids of both must mean the same.
    pub fn with_tokenizer(
        mut self,
        tokenizer: Arc<Tokenizer>,
        canonicality: Option<Arc<Canonicality>>,
    ) -> Self {
        if let Some(canonicality) = canonicality {
            let masks = CanonicalMasks::new(canonicality.clone(), self.vocabulary.clone());
            let contexts = KnownContexts::default();
            self.exact = Some(Exact { canonicality, masks, contexts });
        }
        self.encoder = Some(Box::new(NativeEncoder(tokenizer)));
        self
    }

    /// The canonical tokens, if they are known exactly.
    pub fn canonicality(&self) -> Option<&Arc<Canonicality>> {
        self.exact.as_ref().map(|exact| &exact.canonicality)
    }

    /// Masks of canonical tokens, if these are known exactly.
    pub(crate) fn canonical_masks(&self) -> Option<&CanonicalMasks> {
        self.exact.as_ref().map(|exact| &exact.masks)
    }

    /// The contexts of canonical tokens by number, where they can be told exactly.
    pub(crate) fn contexts(&self) -> Option<(&Canonicality, &KnownContexts)> {
        self.exact.as_ref().map(|exact| (&*exact.canonicality, &exact.contexts))
    }

    /// Computes in advance, and keeps permanently, what depends on the vocabulary alone and nearly
    /// every grammar needs: the masks of JSON's punctuation, literals, and unconstrained strings
    /// and numbers.
    pub fn prepare(self: &Arc<Self>) -> Result<(), CompileError> {
        const ANYTHING: &str = r#"{"a":[1,-2.5e+3,true,null,"x",[]],"b":{}}"#;
        const OF_TYPES: [(&str, &str); 9] = [
            (r#"{"type": "object"}"#, ANYTHING),
            (r#"{"type": "array"}"#, r#"[["x"],{"a":[]}]"#),
            (r#"{"type": "string"}"#, "\"x\""),
            (r#"{"type": "integer"}"#, "-12"),
            (r#"{"type": "number"}"#, "-1.2e+3"),
            (r#"{"type": "boolean"}"#, "true"),
            (r#"{"type": "null"}"#, "null"),
            (r#"{"additionalProperties": {"type": "integer"}}"#, r#"{"a":10,"b":2}"#),
            (r#"{"items": {"type": ["string", "null"]}}"#, r#"["x",null]"#),
        ];
        let flexible = WhitespaceMode::Flexible { max_run: DEFAULT_MAX_RUN };
        for mode in [WhitespaceMode::Consistent, flexible, WhitespaceMode::Compact] {
            for (schema, text) in [("true", ANYTHING)].into_iter().chain(OF_TYPES) {
                let compiled =
                    self.compile_json_schema(schema, Whitespace { mode: mode.clone() })?;
                let generation = compiled.generation();
                let automaton = &generation.automaton;
                let mut state = automaton.start();
                generation.masker.compute(automaton, state)?;
                for &byte in text.as_bytes() {
                    let Some(next) = automaton.walk(automaton.threads(state), &[byte])? else {
                        break;
                    };
                    state = automaton.intern(next)?;
                    generation.masker.compute(automaton, state)?;
                }
            }
        }
        self.lexemes.keep_all();
        self.lexeme_masks.keep_all();
        Ok(())
    }

    /// The ids that masks have bits for, and the bytes of each.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Whether text can be turned into tokens.
    pub(crate) fn has_encoder(&self) -> bool {
        self.encoder.is_some()
    }

    /// The tokenizer's own tokens of a text; `None` without a tokenizer.
    pub fn encode(&self, text: &str) -> Result<Option<Arc<[TokenId]>>, EncodeError> {
        let Some(encoder) = &self.encoder else { return Ok(None) };
        if let Some(known) = self.encoded.lock().tokens.get(text) {
            return Ok(Some(known.clone()));
        }
        let tokens: Arc<[TokenId]> = encoder.encode(text)?.into();
        let mut encoded = self.encoded.lock();
        if encoded.bytes > MAX_ENCODED_BYTES {
            *encoded = Encoded::default();
        }
        encoded.bytes += 96 + text.len() + std::mem::size_of_val(&*tokens);
        encoded.tokens.insert(text.into(), tokens.clone());
        Ok(Some(tokens))
    }

    /// Evicts what was built for all grammars, except what [`Self::prepare`] made. Grammars in use
    /// keep what they hold.
    pub fn clear_memos(&self) {
        self.lexemes.clear();
        self.lexeme_masks.clear();
        *self.encoded.lock() = Encoded::default();
    }

    /// If the system refused memory to a call, evicts everything that can be rebuilt, to leave
    /// memory for the next call.
    pub fn settle_after<T, E>(&self, done: Result<T, E>) -> Result<T, E> {
        if done.is_err() && heap::was_refused() {
            self.clear_memos();
        }
        done
    }

    /// Sets the budgets of the objects that all grammars share, and evicts what exceeds them.
    pub fn limit_memory(&self, lexeme_bytes: Option<usize>, lexeme_mask_bytes: Option<usize>) {
        if let Some(bytes) = lexeme_bytes {
            self.lexemes.set_max_bytes(bytes);
        }
        if let Some(bytes) = lexeme_mask_bytes {
            self.lexeme_masks.set_max_bytes(bytes);
        }
    }

    /// The estimated memory in bytes of the vocabulary and of what all grammars share.
    pub fn memory_bytes(&self) -> usize {
        self.vocabulary.memory_bytes()
            + self.lexemes.memory_bytes()
            + self.lexeme_masks.memory_bytes()
    }

    /// The JSON texts that are valid against a schema.
    pub fn compile_json_schema(
        self: &Arc<Self>,
        schema: &str,
        options: impl Into<GrammarOptions>,
    ) -> Result<Compiled, CompileError> {
        let options: GrammarOptions = options.into();
        let writing = options.writing.clone();
        let parsed = SchemaSet::parse(schema, self.schema_options(&options))?;
        let recipe = Recipe::Json { schema: schema.into(), options };
        self.compile(Grammar::Json { schema: Box::new(parsed), writing }, recipe, "the schema")
    }

    fn schema_options(&self, given: &GrammarOptions) -> SchemaOptions {
        let lexemes = self.lexemes.clone();
        let options = SchemaOptions::new(move |ast: &Ast| {
            // As the automaton has it where it is a number.
            let spec = LexemeSpec::new(Spelling::Utf8, [ast.clone()]);
            let spec = LexemeSpec { follow: Some(after_value()), ..spec };
            lexemes.get(&spec).map(|lexeme| (!lexeme.is_alive(), lexeme.effort() as u64))
        });
        let lexemes = self.lexemes.clone();
        let options = options.listing(move |ast: &Ast, most: u64| {
            let lexeme = lexemes.get(&LexemeSpec::new(Spelling::Utf8, [ast.clone()]))?;
            let listed = texts(&mut TextCounter::default(), &lexeme, lexeme.start(), most)?;
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            Ok(listed.map(|texts| texts.into_iter().map(text).collect()))
        });
        let numbers = given.writing.numbers;
        SchemaOptions { parsing: given.parsing.clone(), numbers, ..options }
    }

    /// A whole text that a regular expression matches, in the dialect of the `regex` crate.
    pub fn compile_regex(self: &Arc<Self>, pattern: &str) -> Result<Compiled, CompileError> {
        let ast = rust_dialect::anchored(pattern).map_err(|error| match error.kind {
            PatternErrorKind::TooLarge(passed) => EngineError::Limit(passed).into(),
            _ => {
                let (line, column) = error.line_and_column(pattern);
                CompileError::Pattern { error, line, column }
            }
        })?;
        self.compile_language(ast)
    }

    /// A whole text of a regular language.
    pub fn compile_language(self: &Arc<Self>, language: Ast) -> Result<Compiled, CompileError> {
        let recipe = Recipe::Language(language.clone());
        self.compile(Grammar::Text(language), recipe, "the regular expression")
    }

    /// One of the texts.
    pub fn compile_choice(self: &Arc<Self>, options: &[String]) -> Result<Compiled, CompileError> {
        let ast = Ast::alternation(options.iter().map(|option| Ast::literal(option)));
        let recipe = Recipe::Language(ast.clone());
        self.compile(Grammar::Text(ast), recipe, "an empty list of options")
    }

    fn compile(
        self: &Arc<Self>,
        grammar: Grammar,
        recipe: Recipe,
        what: &'static str,
    ) -> Result<Compiled, CompileError> {
        let source = match &grammar {
            Grammar::Text(ast) => Source::Text(ast.clone()),
            Grammar::Json { writing, .. } => Source::Json(writing.clone()),
            Grammar::Rules { program, json } => Source::Rules {
                program: program.clone(),
                json: json.as_ref().map(|json| (json.roots.clone(), json.writing.clone())),
            },
        };
        let automaton = Automaton::new(grammar, self.lexemes.clone())?;
        if !automaton.is_satisfiable() {
            if let (Recipe::Rules { grammar, .. }, Some(node)) =
                (&recipe, automaton.taking_lexeme()?)
            {
                return Err(culprit::error(grammar, node).into());
            }
            return Err(CompileError::Unsatisfiable(what));
        }
        let counters = Counters::default();
        let masker = self.masker(self.config.grammar_bytes, counters.masks.clone());
        Ok(Compiled {
            engine: self.clone(),
            recipe,
            source,
            current: ArcSwap::from_pointee(Generation::new(0, automaton, masker)),
            max_bytes: AtomicUsize::new(self.config.grammar_bytes),
            limits: Limits::NONE,
            unsettled: AtomicUsize::new(0),
            renewing: Mutex::default(),
            counters,
        })
    }

    fn masker(&self, grammar_bytes: usize, counters: Arc<MaskCounters>) -> Box<Masker> {
        let (vocabulary, lexeme_masks) = (self.vocabulary.clone(), self.lexeme_masks.clone());
        Box::new(Masker::new(vocabulary, lexeme_masks, grammar_bytes as u64 / 2, counters))
    }
}

#[cfg(test)]
mod test_ambiguous;
#[cfg(test)]
mod test_arrays;
#[cfg(test)]
mod test_distinct;
#[cfg(test)]
mod test_enums;
#[cfg(test)]
mod test_implications;
#[cfg(test)]
mod test_layouts;
#[cfg(test)]
mod test_objects;
#[cfg(test)]
mod test_parameters;
#[cfg(test)]
mod test_rules;
#[cfg(test)]
mod test_separate_implications;
#[cfg(test)]
mod tests;
