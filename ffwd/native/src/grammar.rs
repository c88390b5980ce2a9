//! `CompiledGrammar`, and the functions that compile.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::builder::PyGrammarBuilder;
use super::errors::{self, VocabularyError};
use super::limits::{flag, LimitsArgument, PyCancellation, PyCompileMeter};
use super::matcher::PyMatcher;
use super::pattern;
use super::released::Released;
use super::vocabulary::PyVocabulary;
use super::writing::WritingArgument;
use ffwd_bounds::limits::Limits;
use ffwd_bounds::meter::Meter;
use ffwd_engine::engine::{CompileError, Compiled};
use ffwd_engine::matcher::{Beginning, Close, Matcher, MatcherError, Opening};
use ffwd_engine::saved;
use ffwd_json_schema::SchemaOptions;
use ffwd_tokenizer::vocabulary::TokenId;

/// The end of free text: a token id, several, or bytes.
struct CloseArgument(Close);

impl<'py> FromPyObject<'_, 'py> for CloseArgument {
    type Error = PyErr;

    fn extract(close: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = close.cast::<PyBytes>() {
            return Ok(Self(Close::Text(text.as_bytes().into())));
        }
        let ids = close.extract::<u32>().map(|id| vec![id]).or_else(|_| close.extract());
        let ids: Vec<u32> = ids.map_err(|_| {
            PyTypeError::new_err(format!(
                "free_until must be a token id, a list of them, or bytes, not {}",
                close.get_type()
            ))
        })?;
        Ok(Self(Close::Tokens(ids.into_iter().map(TokenId).collect())))
    }
}

/// A grammar compiled for one vocabulary.
///
/// Threads may share it. Its matchers share the states and masks that any of them has built.
#[pyclass(name = "CompiledGrammar", module = "ffwd", frozen)]
pub struct PyCompiledGrammar {
    pub compiled: Arc<Compiled>,
    vocabulary: Py<PyVocabulary>,
}

#[pymethods]
impl PyCompiledGrammar {
    /// The vocabulary of its compilation.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<PyVocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// Return the grammar as bytes for `from_bytes`.
    ///
    /// They hold the source and the fingerprint of the vocabulary, and no states or masks.
    ///
    /// Raises:
    ///     SerializationError: The grammar cannot be saved.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.released(|| saved::save_grammar(&self.compiled));
        Ok(PyBytes::new(py, &bytes.map_err(|error| errors::saved(py, &error))?))
    }

    /// Compile a grammar from the bytes that `to_bytes` returned.
    ///
    /// The bytes may be untrusted: they are checked, and their source is compiled within all
    /// limits.
    ///
    /// Args:
    ///     data: The bytes.
    ///     vocabulary: The vocabulary that the grammar was compiled for: the same token texts, end
    ///         tokens and token names.
    ///     limits: An `ffwd.Limits`, as for `ffwd.compile`.
    ///     cancellation: An `ffwd.Cancellation`, as for `ffwd.compile`.
    ///
    /// Raises:
    ///     SerializationError: The bytes are something else, were changed, have another version's
    ///         format, or belong to another vocabulary. `reason` is one of `"kind"`, `"length"`,
    ///         `"version"`, `"checksum"`, `"vocabulary"`, `"malformed"` and `"refused"`.
    #[staticmethod]
    #[pyo3(signature = (data, vocabulary, *, limits=None, cancellation=None))]
    fn from_bytes(
        py: Python<'_>,
        data: &[u8],
        vocabulary: &Bound<'_, PyVocabulary>,
        limits: Option<LimitsArgument>,
        cancellation: Option<&Bound<'_, PyCancellation>>,
    ) -> PyResult<Self> {
        let engine = &vocabulary.get().engine;
        let limits = limits.map_or_else(Limits::default, Limits::from);
        let meter = PyCompileMeter::of(limits, flag(cancellation));
        meter.read(py, data.len())?;
        let compiled = py.released(|| meter.run_for(engine, || saved::load_grammar(data, engine)));
        let compiled = compiled.map_err(|error| errors::saved(py, &error))?;
        wrap(py, vocabulary, Ok(compiled), &limits)
    }

    /// Return the object itself, because it is immutable.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__(&self) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err(
            "a CompiledGrammar is not pickled, as it needs the vocabulary of the process that loads \
             it: send to_bytes(), and there CompiledGrammar.from_bytes(data, vocabulary); or pickle \
             the grammar that it was compiled from, and compile it there",
        ))
    }

    /// Return a matcher at the start of a sequence.
    ///
    /// Args:
    ///     canonical: Allow only tokens that keep the output a tokenization of the tokenizer
    ///         itself, unless none is left; `canonical_fallbacks` counts those masks.
    ///     recent_tokens: Tokens before the first, such as the last ones of the prompt. They decide
    ///         which tokens are canonical; the grammar does not see them.
    ///     prefix: Bytes before the grammar's text that the first tokens must encode: those that
    ///         were removed from the end of a prompt, see `Bpe.heal`.
    ///     prefill: The beginning of the grammar's text that the prompt already contains. The
    ///         matcher starts after it.
    ///     free_until: Start with free text, such as a model's reasoning, that ends with this token
    ///         (one without text, such as `</think>` in most vocabularies), these tokens (the first
    ///         of which has no text), or this text. End tokens are not allowed in it.
    ///     free_controls: Tokens without text that the free text may contain, besides those of
    ///         `free_until`.
    ///     max_tokens: The most tokens of the output, free text and the end token included. Masks
    ///         exclude tokens that would leave too few for a completion.
    ///     cancellation: An `ffwd.Cancellation`: another thread ends calls of this matcher and its
    ///         forks with it.
    ///
    /// Raises:
    ///     VocabularyError: `canonical` is set, and the vocabulary has no exact `Bpe`.
    ///     TextError: The grammar rejects the prefill, at `byte`; or `free_until` is empty.
    ///     TokenError: A token of `free_until` or `free_controls` ends the output, is outside the
    ///         vocabulary, or has text.
    ///     BudgetError: No output ends within `max_tokens`, or within the limits of its parts.
    ///     ValueError: `free_controls` is given without `free_until`.
    ///     LimitExceededError: The start needs more than the limits allow.
    #[pyo3(signature = (*, canonical=false, recent_tokens=Vec::new(), prefix=None, prefill=None,
                        free_until=None, free_controls=Vec::new(), max_tokens=None, cancellation=None,
                        limits=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
    fn matcher(
        slf: &Bound<'_, Self>,
        canonical: bool,
        recent_tokens: Vec<u32>,
        prefix: Option<&[u8]>,
        prefill: Option<&[u8]>,
        free_until: Option<CloseArgument>,
        free_controls: Vec<u32>,
        max_tokens: Option<usize>,
        cancellation: Option<&Bound<'_, PyCancellation>>,
        limits: Option<LimitsArgument>,
    ) -> PyResult<PyMatcher> {
        let compiled = slf.get().compiled.clone();
        if canonical && compiled.engine.canonicality().is_none() {
            return Err(VocabularyError::new_err(
                "canonical masks need a vocabulary with an exact Bpe, as from_huggingface makes it \
                 for tokenizers that ffwd compiles",
            ));
        }
        let ids = |ids: Vec<u32>| ids.into_iter().map(TokenId).collect();
        let opening = match free_until {
            Some(CloseArgument(close)) => Some(Opening { close, controls: ids(free_controls) }),
            None if free_controls.is_empty() => None,
            None => return Err(PyValueError::new_err("free_controls needs free_until")),
        };
        let beginning = Beginning {
            canonical,
            recent: ids(recent_tokens),
            prefix: prefix.unwrap_or_default().to_vec(),
            prefill: prefill.unwrap_or_default().to_vec(),
            opening,
            max_tokens,
        };
        let py = slf.py();
        let cancellation = flag(cancellation);
        let limits = limits.map(Limits::from);
        let bounds = limits.as_ref().unwrap_or_else(|| compiled.limits());
        let mut meter = Meter::calling(bounds, cancellation.clone());
        let begun = || Matcher::beginning(compiled.clone(), &beginning);
        let matcher = py
            .released(|| compiled.settle_after(meter.run(begun)))
            .map_err(|error| errors::matcher(py, &error))?;
        let mut matcher = matcher.cancelled_by(cancellation);
        if let Some(limits) = limits {
            matcher = matcher.limited_by(limits);
        }
        Ok(PyMatcher::new(matcher, slf.clone().unbind()))
    }

    /// Return the tokens of a short accepted text, the end token included.
    ///
    /// `Matcher.shortest_completion` describes them.
    ///
    /// Raises:
    ///     BudgetError: Parts of the text have limits, and no text keeps to them.
    ///     LimitExceededError: The search takes too many steps or too long.
    fn shortest_completion(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let compiled = self.compiled.clone();
        let mut meter = Meter::calling(compiled.limits(), None);
        let found = || Ok(Matcher::new(compiled.clone())?.shortest_completion()?);
        let tokens: Result<Vec<TokenId>, MatcherError> =
            py.released(|| compiled.settle_after(meter.run(found)));
        let tokens = tokens.map_err(|error| errors::matcher(py, &error))?;
        Ok(tokens.iter().map(|token| token.0).collect())
    }

    /// Return counters since compilation, and current sizes.
    ///
    /// Entries in memory: `states`, `stacks`, `lexemes`, `key_nodes`. `memory_bytes` is the sum of
    /// these estimates, without the memory of matchers:
    ///
    /// - `state_bytes`, `stack_bytes`, and `frame_bytes` of containers and values
    /// - `key_bytes` of positions in keys, and of texts that are compared
    /// - `schema_bytes` of normal forms
    /// - `lexeme_bytes` of lexemes in use, which other grammars may share
    /// - `mask_bytes`, `transition_bytes` of the results of tokens, and `forced_bytes`
    ///
    /// Masks: `mask_hits` were cached, `masks_computed` were not. Computing them visited
    /// `mask_nodes_walked` trie nodes, in `exit_tries_walked` tries of continuations after a
    /// lexeme. `key_masks` of them had object keys, and `doubts_resolved` tokens were matched byte
    /// by byte because earlier output decides about them. `forced_hits` counts cached forced
    /// tokens.
    ///
    /// Eviction: all masks were cleared `masks_cleared` times, and everything `evictions` times,
    /// after which `matcher_moves` matchers parsed their sequences again.
    ///
    /// Shared by all grammars of the vocabulary: `shared_lexemes` and their state masks.
    /// `shared_lexeme_mask_hits` of these were cached and `shared_lexeme_masks_made` were not, with
    /// `shared_lexeme_walks` walks over the whole vocabulary; the others were derived from cached
    /// masks or from the continuations of a few tokens. `shared_lexeme_mask_bytes` is their size.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = PyDict::new(py);
        for (name, value) in self.compiled.stats() {
            stats.set_item(name, value)?;
        }
        Ok(stats)
    }

    fn __repr__(&self) -> String {
        let width = self.compiled.engine.vocabulary().width();
        format!("CompiledGrammar({}, vocab_size={width})", self.compiled.kind())
    }
}

fn wrap(
    py: Python<'_>,
    vocabulary: &Bound<'_, PyVocabulary>,
    compiled: Result<Compiled, CompileError>,
    limits: &Limits,
) -> PyResult<PyCompiledGrammar> {
    let compiled = compiled.map_err(|error| errors::compile(py, &error))?.within(*limits);
    Ok(PyCompiledGrammar { compiled: Arc::new(compiled), vocabulary: vocabulary.clone().unbind() })
}

/// Return the given meter, or one with the default limits.
fn given(py: Python<'_>, meter: Option<Py<PyCompileMeter>>) -> PyResult<Py<PyCompileMeter>> {
    meter.map_or_else(|| Py::new(py, PyCompileMeter::default()), Ok)
}

/// Compile a JSON Schema, given as JSON text.
///
/// `writing` has the options of `ffwd.json_schema`. `registry` maps the URIs of referenced documents
/// to JSON text. `meter` has the limits.
#[pyfunction]
#[pyo3(signature = (schema, vocabulary, *, writing, registry=Vec::new(), meter=None))]
pub fn compile_json_schema(
    py: Python<'_>,
    schema: &str,
    vocabulary: &Bound<'_, PyVocabulary>,
    writing: WritingArgument,
    registry: Vec<(String, String)>,
    meter: Option<Py<PyCompileMeter>>,
) -> PyResult<PyCompiledGrammar> {
    let engine = &vocabulary.get().engine;
    let meter = given(py, meter)?;
    let meter = meter.get();
    let documents = registry.iter().map(|(_, document)| document.len());
    meter.read(py, schema.len() + documents.sum::<usize>())?;
    let compiled = py.released(|| {
        let options = writing.with(registry);
        meter.run_for(engine, || engine.compile_json_schema(schema, options))
    });
    wrap(py, vocabulary, compiled, &meter.limits)
}

/// Compile a builder's grammar, with one of its nodes as the start.
///
/// `writing` has the options of `ffwd.json_schema`, for all schemas of the grammar; its white space
/// holds for those without their own.
#[pyfunction]
#[pyo3(signature = (builder, node, vocabulary, *, writing, registry=Vec::new(), meter=None))]
pub fn compile_grammar(
    py: Python<'_>,
    builder: &Bound<'_, PyGrammarBuilder>,
    node: u32,
    vocabulary: &Bound<'_, PyVocabulary>,
    writing: WritingArgument,
    registry: Vec<(String, String)>,
    meter: Option<Py<PyCompileMeter>>,
) -> PyResult<PyCompiledGrammar> {
    let grammar = builder.borrow().starting(node)?;
    let engine = &vocabulary.get().engine;
    let meter = given(py, meter)?;
    let meter = meter.get();
    meter.read(py, registry.iter().map(|(_, document)| document.len()).sum())?;
    let compiled = py.released(|| {
        let options = writing.with(registry);
        meter.run_for(engine, || engine.compile_grammar(&grammar, options))
    });
    wrap(py, vocabulary, compiled, &meter.limits)
}

/// Return the fate of each keyword of a schema.
///
/// Each has its JSON pointer, its name, `"enforced"`, `"ignored"`, `"widened"` or `"refused"`, and
/// the reason.
#[pyfunction]
#[pyo3(signature = (schema, *, writing, registry=Vec::new()))]
pub fn json_schema_fidelity(
    py: Python<'_>,
    schema: &str,
    writing: WritingArgument,
    registry: Vec<(String, String)>,
) -> PyResult<Vec<(String, String, &'static str, String)>> {
    let report = py.released(|| {
        let options = SchemaOptions {
            parsing: writing.with(registry).parsing,
            // Nothing is compiled, so no language is examined.
            ..SchemaOptions::new(|_| Ok((false, 0)))
        };
        ffwd_json_schema::fidelity_report(schema, &options)
    });
    let report = report.map_err(|error| errors::schema(py, &error))?;
    Ok(report
        .into_iter()
        .map(|line| (line.pointer, line.keyword, line.fidelity.name(), line.reason))
        .collect())
}

/// Compile a regular expression; see [`pattern::read`].
#[pyfunction]
#[pyo3(signature = (pattern, vocabulary, *, dialect="rust", flags="", search=false,
                    characters=Vec::new(), meter=None))]
#[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
pub fn compile_regex(
    py: Python<'_>,
    pattern: &str,
    vocabulary: &Bound<'_, PyVocabulary>,
    dialect: &str,
    flags: &str,
    search: bool,
    characters: Vec<(String, char)>,
    meter: Option<Py<PyCompileMeter>>,
) -> PyResult<PyCompiledGrammar> {
    let meter = given(py, meter)?;
    let meter = meter.get();
    meter.read(py, pattern.len())?;
    let language = pattern::read(py, pattern, dialect, flags, search, characters)?;
    let engine = &vocabulary.get().engine;
    let compiled = py.released(|| meter.run_for(engine, || engine.compile_language(language)));
    wrap(py, vocabulary, compiled, &meter.limits)
}

/// Compile a builder's node that is a regular language.
#[pyfunction]
#[pyo3(signature = (builder, node, vocabulary, *, meter=None))]
pub fn compile_language(
    py: Python<'_>,
    builder: &Bound<'_, PyGrammarBuilder>,
    node: u32,
    vocabulary: &Bound<'_, PyVocabulary>,
    meter: Option<Py<PyCompileMeter>>,
) -> PyResult<PyCompiledGrammar> {
    let language = builder.borrow().language(py, node)?;
    let engine = &vocabulary.get().engine;
    let meter = given(py, meter)?;
    let meter = meter.get();
    let compiled = py.released(|| meter.run_for(engine, || engine.compile_language(language)));
    wrap(py, vocabulary, compiled, &meter.limits)
}

/// Compile a choice between texts.
#[pyfunction]
#[pyo3(signature = (options, vocabulary, *, meter=None))]
pub fn compile_choice(
    py: Python<'_>,
    options: Vec<String>,
    vocabulary: &Bound<'_, PyVocabulary>,
    meter: Option<Py<PyCompileMeter>>,
) -> PyResult<PyCompiledGrammar> {
    let engine = &vocabulary.get().engine;
    let meter = given(py, meter)?;
    let meter = meter.get();
    meter.read(py, options.iter().map(String::len).sum())?;
    let compiled = py.released(|| meter.run_for(engine, || engine.compile_choice(&options)));
    wrap(py, vocabulary, compiled, &meter.limits)
}
