//! A vocabulary with everything that is shared by the grammars compiled for it, and compilation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::automaton::{punctuation, Automaton, EngineError, Grammar, StateId, Writing};
use crate::canonical::{CanonicalMasks, Canonicality, Context};
use crate::error::LimitExceeded;
use crate::expr::{LexemeSpec, LexemeStore, Spelling};
use crate::json_schema::{self, Policy, Registry, SchemaError, SchemaOptions, SchemaSet};
use crate::mask::{LexemeMaskStore, Masker};
use crate::regex::{rust_dialect, Ast, PatternError, PatternErrorKind};
use crate::tokenizer::{EncodeOptions, PartOptions, TextError, Tokenizer};
use crate::vocabulary::{TokenId, Vocabulary};

pub mod transitions;
use transitions::Transitions;

/// Byte budgets of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Shared automata of lexemes.
    pub lexeme_bytes: usize,
    /// Shared masks of lexeme states.
    pub lexeme_mask_bytes: usize,
    /// Masks of one compiled grammar.
    pub mask_bytes: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { lexeme_bytes: 256 << 20, lexeme_mask_bytes: 128 << 20, mask_bytes: 256 << 20 }
    }
}

/// How the tokenizer would encode text: with no special tokens, as in the middle of a text.
pub trait Encoder: Send + Sync {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError>;
}

/// The tokenizer failed.
#[derive(Clone, Debug, Error)]
#[error("the tokenizer could not encode {text:?}: {message}")]
pub struct EncodeError {
    pub text: String,
    pub message: String,
}

/// How many texts an engine remembers the encoding of.
const MAX_ENCODED: usize = 65_536;

/// A vocabulary, its tokenizer, and what all grammars for it share.
pub struct Engine {
    vocabulary: Arc<Vocabulary>,
    encoder: Option<Box<dyn Encoder>>,
    encoded: Mutex<FxHashMap<Box<str>, Arc<[TokenId]>>>,
    exact: Option<Exact>,
    lexemes: Arc<LexemeStore>,
    lexeme_masks: Arc<LexemeMaskStore>,
    config: EngineConfig,
}

/// The tokenizer compiled, so that it can be told which tokens are canonical.
struct Exact {
    canonicality: Arc<Canonicality>,
    masks: CanonicalMasks,
}

/// A compiled tokenizer in the middle of a text.
struct NativeEncoder(Arc<Tokenizer>);

impl Encoder for NativeEncoder {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        // Neither a space before it nor another normal form: the tokens spell what was given.
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

/// A state, what is known of the tokens before it, and whether to look ahead.
type ForcedKey = (StateId, Context, bool);

/// A grammar compiled for one vocabulary; matchers on it share all that is built.
#[derive(Debug)]
pub struct Compiled {
    pub engine: Arc<Engine>,
    pub automaton: Automaton,
    pub masker: Masker,
    /// Where tokens lead from states.
    pub transitions: Transitions,
    /// Forced tokens that have been asked for.
    pub(crate) forced: Mutex<FxHashMap<ForcedKey, Arc<[TokenId]>>>,
}

impl Compiled {
    /// Counters by name: what has been built, and where masks came from.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        let counters = &self.masker.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        vec![
            ("states", self.automaton.num_states() as u64),
            ("stacks", self.automaton.num_stacks() as u64),
            ("lexemes", self.automaton.num_lexemes() as u64),
            ("key_nodes", self.automaton.num_key_nodes() as u64),
            ("mask_hits", counters.hits.get()),
            ("masks_computed", read(&counters.computed)),
            ("mask_nodes_walked", read(&counters.nodes_walked)),
            ("mask_bytes", read(&counters.bytes)),
            ("shared_lexemes", self.engine.lexemes.len() as u64),
            ("shared_lexeme_walks", self.engine.lexeme_masks.walks()),
            ("shared_lexeme_mask_bytes", self.engine.lexeme_masks.memory_bytes() as u64),
        ]
    }
}

#[derive(Clone, Debug, Error)]
pub enum CompileError {
    #[error("{error} (line {line}, column {column})")]
    Pattern { error: PatternError, line: usize, column: usize },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("no text matches {0}")]
    Unsatisfiable(&'static str),
}

impl From<SchemaError> for CompileError {
    fn from(error: SchemaError) -> Self {
        Self::Engine(error.into())
    }
}

impl Engine {
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

    /// With the vocabulary's tokenizer compiled: encoding is its own, and where it can be told which
    /// tokens are canonical, forced tokens are exact. The ids of both must mean the same.
    pub fn with_tokenizer(
        mut self,
        tokenizer: Arc<Tokenizer>,
        canonicality: Option<Arc<Canonicality>>,
    ) -> Self {
        if let Some(canonicality) = canonicality {
            let masks = CanonicalMasks::new(canonicality.clone(), self.vocabulary.clone());
            self.exact = Some(Exact { canonicality, masks });
        }
        self.encoder = Some(Box::new(NativeEncoder(tokenizer)));
        self
    }

    /// Which tokens are canonical, where that can be told exactly.
    pub fn canonicality(&self) -> Option<&Arc<Canonicality>> {
        self.exact.as_ref().map(|exact| &exact.canonicality)
    }

    /// Masks of canonical tokens, where they can be told exactly.
    pub fn canonical_masks(&self) -> Option<&CanonicalMasks> {
        self.exact.as_ref().map(|exact| &exact.masks)
    }

    /// Computes ahead what nearly every grammar needs: the masks inside a JSON string.
    pub fn prepare(&self) -> Result<(), LimitExceeded> {
        let any_string = self.lexemes.get(&punctuation::any_string())?;
        self.lexeme_masks.get(&self.vocabulary, &any_string, any_string.inside())?;
        Ok(())
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Whether text can be turned into tokens.
    pub fn has_encoder(&self) -> bool {
        self.encoder.is_some()
    }

    /// The tokenizer's own tokens of a text; `None` without a tokenizer.
    pub fn encode(&self, text: &str) -> Result<Option<Arc<[TokenId]>>, EncodeError> {
        let Some(encoder) = &self.encoder else { return Ok(None) };
        if let Some(known) = self.encoded.lock().get(text) {
            return Ok(Some(known.clone()));
        }
        let tokens: Arc<[TokenId]> = encoder.encode(text)?.into();
        let mut encoded = self.encoded.lock();
        if encoded.len() >= MAX_ENCODED {
            encoded.clear();
        }
        encoded.insert(text.into(), tokens.clone());
        Ok(Some(tokens))
    }

    pub fn lexemes(&self) -> &LexemeStore {
        &self.lexemes
    }

    pub fn lexeme_masks(&self) -> &LexemeMaskStore {
        &self.lexeme_masks
    }

    /// Forgets what has been built for all grammars; those in use keep what they hold.
    pub fn clear_memos(&self) {
        self.lexemes.clear();
        self.lexeme_masks.clear();
        self.encoded.lock().clear();
    }

    pub fn memory_bytes(&self) -> usize {
        self.vocabulary.memory_bytes()
            + self.lexemes.memory_bytes()
            + self.lexeme_masks.memory_bytes()
    }

    pub fn compile_json_schema(
        self: &Arc<Self>,
        schema: &str,
        writing: impl Into<Writing>,
    ) -> Result<Compiled, CompileError> {
        self.compile_json_schema_with(schema, writing, Arc::default(), Policy::default())
    }

    /// With a registry of documents for references, and a policy for what is not supported.
    pub fn compile_json_schema_with(
        self: &Arc<Self>,
        schema: &str,
        writing: impl Into<Writing>,
        registry: Arc<Registry>,
        policy: Policy,
    ) -> Result<Compiled, CompileError> {
        let lexemes = self.lexemes.clone();
        let options = SchemaOptions::new(move |ast: &Ast| {
            let spec = LexemeSpec::new(Spelling::Utf8, [ast.clone()]);
            let answer =
                lexemes.get(&spec).map(|lexeme| (!lexeme.is_alive(), lexeme.effort() as u64));
            answer.map_err(|limit| json_schema::LimitExceeded {
                limit: limit.limit,
                maximum: limit.maximum as u64,
            })
        });
        let options = SchemaOptions { registry, policy, ..options };
        let schema = Box::new(SchemaSet::parse(schema, options)?);
        self.compile(Grammar::Json { schema, writing: writing.into() }, "the schema")
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
        self.compile(Grammar::Text(ast), "the regular expression")
    }

    /// One of the texts.
    pub fn compile_choice(self: &Arc<Self>, options: &[String]) -> Result<Compiled, CompileError> {
        let ast = Ast::alternation(options.iter().map(|option| Ast::literal(option)));
        self.compile(Grammar::Text(ast), "an empty list of options")
    }

    fn compile(
        self: &Arc<Self>,
        grammar: Grammar,
        what: &'static str,
    ) -> Result<Compiled, CompileError> {
        let automaton = Automaton::new(grammar, self.lexemes.clone())?;
        if !automaton.is_satisfiable() {
            return Err(CompileError::Unsatisfiable(what));
        }
        let masker =
            Masker::new(self.vocabulary.clone(), self.lexeme_masks.clone(), self.config.mask_bytes);
        Ok(Compiled {
            engine: self.clone(),
            automaton,
            masker,
            transitions: Transitions::default(),
            forced: Mutex::default(),
        })
    }
}

#[cfg(test)]
mod array_tests;
#[cfg(test)]
mod test_objects;
#[cfg(test)]
mod tests;
