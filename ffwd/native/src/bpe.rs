//! `Bpe`: whole texts to tokens and back.

use std::sync::{Arc, Mutex, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use super::bpe_incremental::{PyAppendEncoder, PyIntervalCounter, PyPrependEncoder};
use super::bpe_model::PyBpeModel;
use super::bpe_parts::{self, AddedTokenArgument};
use super::errors::{self, VocabularyError};
use super::released::Released;
use super::text_argument::{detached, lone_surrogate, utf8, TextArgument};
use ffwd_tokenizer::bpe::Method;
use ffwd_tokenizer::canonical::{Canonicality, Choice};
use ffwd_tokenizer::tokenizer::{
    AppendEncoder, DummySpace, EncodeOptions, IntervalCounter, Normalizer, PartOptions,
    PrependEncoder, Scope, SpecialPolicy, TextError, Tokenizer, TokenizerParts,
};
use ffwd_tokenizer::vocabulary::{ByteTrie, TokenId};

/// Ids up to this one have one `int` object each.
const MAX_SHARED: usize = 1 << 18;

/// The `int` objects of ids that were listed, by id. Most texts have few different tokens.
static SHARED_IDS: Mutex<Vec<Option<Py<PyInt>>>> = Mutex::new(Vec::new());

/// The ids as a list of Python.
pub fn token_list<'py>(py: Python<'py>, tokens: &[TokenId]) -> PyResult<Bound<'py, PyList>> {
    // It is locked if another thread makes a list, without a GIL, or a finalizer does meanwhile.
    let Ok(mut shared) = SHARED_IDS.try_lock() else {
        return PyList::new(py, tokens.iter().map(|token| token.0));
    };
    let new = |id: u32| id.into_pyobject(py).unwrap_or_else(|never| match never {});
    PyList::new(
        py,
        tokens.iter().map(|&TokenId(id)| {
            let at = id as usize;
            match shared.get(at) {
                Some(Some(known)) => known.bind(py).clone(),
                _ if at > MAX_SHARED => new(id),
                _ => {
                    if at >= shared.len() {
                        shared.resize_with(at + 1, || None);
                    }
                    shared[at].get_or_insert_with(|| new(id).unbind()).bind(py).clone()
                }
            }
        }),
    )
}

/// The treatment of special tokens in a text: a policy, or the names of those to find.
pub struct SpecialArgument(pub SpecialPolicy);

impl<'py> FromPyObject<'_, 'py> for SpecialArgument {
    type Error = PyErr;

    fn extract(special: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(name) = special.cast::<PyString>() {
            return match &*name.to_string_lossy() {
                "text" => Ok(Self(SpecialPolicy::Text)),
                "forbidden" => Ok(Self(SpecialPolicy::Forbidden)),
                "allowed" => Ok(Self(SpecialPolicy::Allowed)),
                other => Err(PyValueError::new_err(format!(
                    "special must be \"text\", \"forbidden\", \"allowed\" or a set of names, not \
                     {other:?}"
                ))),
            };
        }
        let names =
            special.try_iter()?.map(|name| special_name(&name?)).collect::<PyResult<_>>()?;
        Ok(Self(SpecialPolicy::Only(names)))
    }
}

/// The name of a special token. No token's name has a lone surrogate.
fn special_name(name: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = name.cast::<PyString>()?;
    match name.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(error) if lone_surrogate(name, &error).is_some() => {
            let unknown = TextError::UnknownSpecial(name.to_string_lossy().into_owned());
            Err(errors::text(name.py(), &unknown))
        }
        Err(error) => Err(error),
    }
}

fn method_named(name: &str) -> PyResult<Method> {
    match name {
        "backtracking" => Ok(Method::Backtracking),
        "table" => Ok(Method::Table),
        "heap" => Ok(Method::Heap),
        "greedy" => Ok(Method::Greedy),
        "minimal" => Ok(Method::Minimal),
        other => Err(PyValueError::new_err(format!(
            "method must be \"backtracking\", \"table\", \"heap\", \"greedy\" or \"minimal\", not \
             {other:?}"
        ))),
    }
}

pub fn part_options(pretokenize: bool, normalize: bool, prefix_space: bool) -> PartOptions {
    PartOptions { pretokenize, normalize, dummy_space: prefix_space }
}

/// The canonical token sequences, and their tokens.
pub struct Sequences {
    pub canonicality: Arc<Canonicality>,
    /// Made when a text is first continued.
    trie: OnceLock<ByteTrie>,
}

impl Sequences {
    fn new(tokenizer: &Arc<Tokenizer>) -> Option<Self> {
        let canonicality = Canonicality::new(Arc::clone(tokenizer))?;
        Some(Self { canonicality: Arc::new(canonicality), trie: OnceLock::new() })
    }

    fn choice(&self) -> Choice<'_> {
        let trie = self.trie.get_or_init(|| self.canonicality.trie());
        Choice { trie, has: &|_| true }
    }
}

/// A byte-pair tokenizer with its pre-tokenizer, normalizer and special tokens.
///
/// Texts are `str` or UTF-8 `bytes`; all offsets and lengths are in bytes of UTF-8. Threads may
/// share it, and long texts are encoded without the interpreter lock.
///
/// Args:
///     model: The pieces and merges.
///     stages: The pre-tokenizer's stages in order, as tokenizer.json writes them: `Split`,
///         `ByteLevel` (its pattern), `Digits`, `Punctuation`, `Metaspace`. Without any, texts are
///         not split.
///     added_tokens: Id, content and flags of each special token: `single_word`, `lstrip`, `rstrip`
///         and `normalized` as in tokenizer.json; `text` for one that is found in every text.
///     dummy_space: The position of an added space: "never", "text" (before the text), "first"
///         (before the text, unless it starts with a special token) or "always" (before each part
///         between special tokens).
///     dummy_space_before_space: Add it also if the text starts with a space.
///     compose: Normalize texts to NFC.
///     replaced: Replacements after that, in pairs: `("▁", " ")`.
///     limits: Names of the differences from the original tokenizer.
///     vocab_size: The number of ids; by default the largest id plus one.
///
/// Raises:
///     VocabularyError: The parts are unsupported or do not fit together.
#[pyclass(name = "Bpe", module = "ffwd", frozen, subclass)]
pub struct PyBpe {
    pub tokenizer: Arc<Tokenizer>,
    sequences: OnceLock<Option<Sequences>>,
}

impl PyBpe {
    fn checked(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<Vec<TokenId>> {
        let size = self.tokenizer.vocab_size();
        let tokens: Vec<TokenId> = token_ids.into_iter().map(TokenId).collect();
        match tokens.iter().find(|token| token.index() >= size) {
            Some(&token) => Err(errors::text(py, &TextError::UnknownToken { token, size })),
            None => Ok(tokens),
        }
    }

    /// Returns the canonical sequences, which the first call makes.
    pub fn sequences(&self) -> Option<&Sequences> {
        self.sequences.get_or_init(|| Sequences::new(&self.tokenizer)).as_ref()
    }

    fn exact_sequences(&self) -> PyResult<&Sequences> {
        self.sequences().ok_or_else(|| {
            VocabularyError::new_err(format!(
                "which tokens are canonical can be told of exact tokenizers only{}",
                self.tokenizer
                    .limits()
                    .iter()
                    .map(|limit| format!("; {limit}"))
                    .collect::<String>()
            ))
        })
    }
}

#[pymethods]
impl PyBpe {
    #[new]
    #[pyo3(signature = (
        model,
        *,
        stages=Vec::new(),
        added_tokens=Vec::new(),
        dummy_space="never",
        dummy_space_before_space=true,
        compose=false,
        replaced=Vec::new(),
        limits=Vec::new(),
        vocab_size=None,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        model: &PyBpeModel,
        stages: Vec<Bound<'_, PyAny>>,
        added_tokens: Vec<AddedTokenArgument<'_>>,
        dummy_space: &str,
        dummy_space_before_space: bool,
        compose: bool,
        replaced: Vec<(String, String)>,
        limits: Vec<String>,
        vocab_size: Option<usize>,
    ) -> PyResult<Self> {
        let stages = stages.iter().map(bpe_parts::stage).collect::<PyResult<Vec<_>>>()?;
        let specials =
            added_tokens.iter().map(bpe_parts::special_token).collect::<PyResult<Vec<_>>>()?;
        let scope = match dummy_space {
            "never" => None,
            "text" => Some(Scope::Text),
            "first" => Some(Scope::First),
            "always" => Some(Scope::Every),
            other => {
                return Err(PyValueError::new_err(format!(
                "dummy_space must be \"never\", \"text\", \"first\" or \"always\", not {other:?}"
            )))
            }
        };
        let table = Arc::clone(&model.table);
        let tokenizer = py.released(move || {
            Tokenizer::new(TokenizerParts {
                table,
                stages,
                specials,
                normalizer: Normalizer { compose, replaced },
                dummy_space: scope
                    .map(|scope| DummySpace { scope, before_space: dummy_space_before_space }),
                limits,
                vocab_size,
            })
        });
        let tokenizer = tokenizer.map_err(|error| errors::tokenizer(&error))?;
        Ok(Self { tokenizer: Arc::new(tokenizer), sequences: OnceLock::new() })
    }

    /// The number of ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    /// Whether every result equals that of the original tokenizer.
    #[getter]
    fn exact(&self) -> bool {
        self.tokenizer.limits().is_empty()
    }

    /// The differences from the original tokenizer, by name.
    #[getter]
    fn limits(&self) -> Vec<String> {
        self.tokenizer.limits().to_vec()
    }

    /// The ids of special tokens by name.
    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for token in self.tokenizer.specials().tokens() {
            out.set_item(&token.content, token.id.0)?;
        }
        Ok(out)
    }

    /// Return the token ids of a text.
    ///
    /// Args:
    ///     text: The text. Each byte that is not UTF-8 counts as a character without a class.
    ///     special: The treatment of special tokens in the text: "text", "forbidden", "allowed"
    ///         (they are found), or a set of names to find while the others are text.
    ///     method: "backtracking", "table" and "heap" are exact and return the same ids. "greedy"
    ///         (the longest token first) and "minimal" (the fewest tokens) differ from the
    ///         tokenizer.
    ///     pretokenize: Split the text into pieces first; otherwise merges may cross their
    ///         boundaries.
    ///     normalize: Normalize the text as the tokenizer does.
    ///     prefix_space: Add the tokenizer's space before the text, if it has one. False is for a
    ///         part in the middle of a longer text.
    ///
    /// Raises:
    ///     TextError: A forbidden special token, an unknown name, a lone surrogate, or bytes that
    ///         are not UTF-8 with a tokenizer that normalizes.
    #[pyo3(signature = (
        text,
        *,
        special=SpecialArgument(SpecialPolicy::Text),
        method="backtracking",
        pretokenize=true,
        normalize=true,
        prefix_space=true,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: TextArgument<'py>,
        special: SpecialArgument,
        method: &str,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = EncodeOptions {
            special: special.0,
            method: method_named(method)?,
            part: part_options(pretokenize, normalize, prefix_space),
        };
        let text = text.bytes()?;
        let tokens = detached(py, text, || self.tokenizer.encode(text, &options))
            .map_err(|error| errors::text(py, &error))?;
        token_list(py, &tokens)
    }

    /// Return the ids of tokens that the tokenizer never produces, in two lists.
    ///
    /// The first has those that no merges produce (a tokenizer that looks up whole pieces may
    /// produce them nevertheless). The second has those for which no text was found that contains
    /// them, alone or between some characters.
    fn unused_tokens<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let unused = py.released(|| self.tokenizer.unused_tokens());
        Ok((token_list(py, &unused.unmerged)?, token_list(py, &unused.unreachable)?))
    }

    /// Return the number of tokens of a text: the length of what `encode` returns.
    #[pyo3(signature = (
        text, *, special=SpecialArgument(SpecialPolicy::Text), pretokenize=true, normalize=true, prefix_space=true
    ))]
    fn count<'py>(
        &self,
        py: Python<'py>,
        text: TextArgument<'py>,
        special: SpecialArgument,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<usize> {
        let options = EncodeOptions {
            special: special.0,
            part: part_options(pretokenize, normalize, prefix_space),
            ..EncodeOptions::default()
        };
        let text = text.bytes()?;
        detached(py, text, || self.tokenizer.count(text, &options))
            .map_err(|error| errors::text(py, &error))
    }

    /// Return the number of tokens of a text, or None if it exceeds `limit`.
    ///
    /// Reads no more of the text than this needs.
    #[pyo3(signature = (
        text, limit, *, special=SpecialArgument(SpecialPolicy::Text), pretokenize=true, normalize=true, prefix_space=true
    ))]
    #[allow(clippy::too_many_arguments)]
    fn count_up_to<'py>(
        &self,
        py: Python<'py>,
        text: TextArgument<'py>,
        limit: usize,
        special: SpecialArgument,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<Option<usize>> {
        let options = EncodeOptions {
            special: special.0,
            part: part_options(pretokenize, normalize, prefix_space),
            ..EncodeOptions::default()
        };
        let text = text.bytes()?;
        detached(py, text, || self.tokenizer.count_up_to(text, limit, &options))
            .map_err(|error| errors::text(py, &error))
    }

    /// Split a text after as many whole characters as `num_tokens` tokens can encode.
    ///
    /// The first part is the longest one that ends at a character boundary and has at most
    /// `num_tokens` tokens when it is encoded alone. It is never empty unless the text is: it has
    /// at least one character, even if that has more tokens. Special tokens are text. Reads little
    /// more than the first part.
    ///
    /// Returns:
    ///     The two parts, of the type of `text`.
    ///
    /// Raises:
    ///     TextError: The text is not UTF-8, the tokenizer normalizes it, or the tokenizer cannot
    ///         encode parts of a text exactly.
    #[pyo3(signature = (text, num_tokens, *, pretokenize=true, normalize=true, prefix_space=true))]
    fn split_at<'py>(
        &self,
        py: Python<'py>,
        text: TextArgument<'py>,
        num_tokens: usize,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let options = part_options(pretokenize, normalize, prefix_space);
        let bytes = text.bytes()?;
        let at = detached(py, bytes, || self.tokenizer.split_at(bytes, num_tokens, &options))
            .map_err(|error| errors::text(py, &error))?;
        let (head, rest) = bytes.split_at(at);
        match &text {
            TextArgument::Text(text) => utf8(text)?.split_at(at).into_pyobject(py),
            TextArgument::Bytes(_) => {
                (PyBytes::new(py, head), PyBytes::new(py, rest)).into_pyobject(py)
            }
        }
    }

    /// Return the bytes of tokens; special tokens are written by name.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn decode<'py>(&self, py: Python<'py>, token_ids: Vec<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let tokens: Vec<TokenId> = token_ids.into_iter().map(TokenId).collect();
        let bytes = self.tokenizer.decode(&tokens).map_err(|error| errors::text(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Return the bytes of a token; empty for an id without text.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn token_bytes<'py>(&self, py: Python<'py>, token_id: u32) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.tokenizer.token_bytes(TokenId(token_id));
        Ok(PyBytes::new(py, bytes.map_err(|error| errors::text(py, &error))?))
    }

    /// Return the ids of the tokens that have other bytes than these.
    ///
    /// None stands for any bytes, and a token without bytes differs from none.
    fn differing(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let mut differing = Vec::new();
        for (id, token) in (0u32..).zip(tokens.try_iter()?) {
            let Some(expected) = token?.extract::<Option<Bound<'_, PyBytes>>>()? else { continue };
            let bytes = self.tokenizer.token_bytes(TokenId(id));
            let bytes = bytes.map_err(|error| errors::text(py, &error))?;
            if !bytes.is_empty() && bytes != expected.as_bytes() {
                differing.push(id);
            }
        }
        Ok(differing)
    }

    /// Return an encoder for a text that grows at its end, with a token count at any time.
    ///
    /// Raises:
    ///     TextError: A tokenizer that cannot encode parts of a text exactly.
    #[pyo3(signature = (*, pretokenize=true, normalize=true, prefix_space=true))]
    fn append_encoder(
        &self,
        py: Python<'_>,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<PyAppendEncoder> {
        let options = part_options(pretokenize, normalize, prefix_space);
        let encoder = AppendEncoder::new(Arc::clone(&self.tokenizer), options);
        Ok(PyAppendEncoder { encoder: encoder.map_err(|error| errors::text(py, &error))? })
    }

    /// Return an encoder for a text that grows at its start, with a token count at any time.
    ///
    /// Raises:
    ///     TextError: A tokenizer that cannot encode parts of a text exactly.
    #[pyo3(signature = (*, pretokenize=true, normalize=true, prefix_space=true))]
    fn prepend_encoder(
        &self,
        py: Python<'_>,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<PyPrependEncoder> {
        let options = part_options(pretokenize, normalize, prefix_space);
        let encoder = PrependEncoder::new(Arc::clone(&self.tokenizer), options);
        Ok(PyPrependEncoder { encoder: encoder.map_err(|error| errors::text(py, &error))? })
    }

    /// Return a counter for the tokens of any part of a text.
    ///
    /// It takes time and memory linear in the text's length. With `prefix_space` a part is counted
    /// as a text of its own, after the tokenizer's space; without, as a part in the middle of a
    /// longer text.
    ///
    /// Raises:
    ///     TextError: The text is not UTF-8, the tokenizer normalizes it, or the tokenizer cannot
    ///         encode parts of a text exactly.
    #[pyo3(signature = (text, *, pretokenize=true, normalize=true, prefix_space=true))]
    fn interval_counter<'py>(
        &self,
        py: Python<'py>,
        text: TextArgument<'py>,
        pretokenize: bool,
        normalize: bool,
        prefix_space: bool,
    ) -> PyResult<PyIntervalCounter> {
        let options = part_options(pretokenize, normalize, prefix_space);
        let text = text.bytes()?;
        let tokenizer = Arc::clone(&self.tokenizer);
        let counter = detached(py, text, || IntervalCounter::new(tokenizer, text, options));
        Ok(PyIntervalCounter { counter: counter.map_err(|error| errors::text(py, &error))? })
    }

    /// Return whether the tokens equal the tokenization of their text.
    ///
    /// A special token ends the text before it, and another text starts after it. The text counts
    /// as a part in the middle of a longer one, without a space before it.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    ///     VocabularyError: The tokenizer is not exact.
    fn is_canonical(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<bool> {
        let tokens = self.checked(py, token_ids)?;
        let sequences = self.exact_sequences()?;
        Ok(py.released(|| sequences.canonicality.is_canonical(&tokens)))
    }

    /// Return the index at which the tokens stop being a prefix of some text's tokens, or None.
    ///
    /// Raises:
    ///     As `is_canonical`.
    fn first_noncanonical(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<Option<usize>> {
        let tokens = self.checked(py, token_ids)?;
        let sequences = self.exact_sequences()?;
        Ok(py.released(|| sequences.canonicality.first_noncanonical(&tokens)))
    }

    /// Return the longest prefix of the tokens that starts some text's tokens.
    ///
    /// Raises:
    ///     As `is_canonical`.
    fn canonical_prefix(&self, py: Python<'_>, mut token_ids: Vec<u32>) -> PyResult<Vec<u32>> {
        if let Some(first) = self.first_noncanonical(py, token_ids.clone())? {
            token_ids.truncate(first);
        }
        Ok(token_ids)
    }

    /// Return the longest token sequence that starts every continuation of `data`.
    ///
    /// Args:
    ///     data: The start of the text, in bytes; it may end within a character.
    ///     recent_tokens: The tokens before it, in the same text.
    ///
    /// Returns:
    ///     The tokens, and the remaining bytes, whose tokens depend on the text after them.
    ///
    /// Raises:
    ///     As `is_canonical`.
    #[pyo3(signature = (data, recent_tokens=Vec::new()))]
    fn tokenize_partial<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        recent_tokens: Vec<u32>,
    ) -> PyResult<(Vec<u32>, Bound<'py, PyBytes>)> {
        let recent = self.checked(py, recent_tokens)?;
        let sequences = self.exact_sequences()?;
        let partial = py.released(|| {
            sequences.canonicality.tokenize_partial(sequences.choice(), &recent, data)
        });
        let tokens = partial.tokens.iter().map(|token| token.0).collect();
        Ok((tokens, PyBytes::new(py, data.get(partial.bytes..).unwrap_or_default())))
    }

    /// Remove the tokens at the end of a prompt that its continuation could change.
    ///
    /// Args:
    ///     token_ids: The prompt, or its part after the last special token.
    ///     max_rollback: The most tokens to remove.
    ///
    /// Returns:
    ///     The remaining tokens, and the bytes of the others: `recent_tokens` and `prefix` of
    ///     `CompiledGrammar.matcher`.
    ///
    /// Raises:
    ///     As `is_canonical`.
    #[pyo3(signature = (token_ids, *, max_rollback=2))]
    fn heal<'py>(
        &self,
        py: Python<'py>,
        mut token_ids: Vec<u32>,
        max_rollback: usize,
    ) -> PyResult<(Vec<u32>, Bound<'py, PyBytes>)> {
        let tokens = self.checked(py, token_ids.clone())?;
        let sequences = self.exact_sequences()?;
        let healed =
            py.released(|| sequences.canonicality.heal(sequences.choice(), &tokens, max_rollback));
        token_ids.truncate(healed.kept);
        Ok((token_ids, PyBytes::new(py, &healed.cut)))
    }

    /// The estimated memory of the tokenizer, in bytes.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.tokenizer.memory_bytes()
    }

    fn __repr__(&self) -> String {
        let exact = if self.exact() { "True" } else { "False" };
        format!("Bpe(vocab_size={}, exact={exact})", self.vocab_size())
    }
}
