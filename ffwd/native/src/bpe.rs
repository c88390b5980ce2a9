//! `Bpe`: whole texts to tokens and back.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

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

pub fn token_list<'py>(py: Python<'py>, tokens: &[TokenId]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, tokens.iter().map(|token| token.0))
}

/// What special tokens in a text are: a word, or the names of those that are found.
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

/// Which tokens are canonical, and all tokens to choose from.
pub struct Sequences {
    pub canonicality: Arc<Canonicality>,
    trie: ByteTrie,
}

impl Sequences {
    fn new(tokenizer: &Arc<Tokenizer>) -> Option<Self> {
        let canonicality = Canonicality::new(Arc::clone(tokenizer))?;
        let trie = canonicality.trie();
        Some(Self { canonicality: Arc::new(canonicality), trie })
    }

    fn choice(&self) -> Choice<'_> {
        Choice { trie: &self.trie, has: &|_| true }
    }
}

/// A tokenizer: byte-pair encoding with everything around it.
///
/// Texts are `str` or UTF-8 `bytes`; all offsets and lengths are in bytes of UTF-8. Safe to use
/// from several threads, and long texts are encoded with the interpreter lock released.
///
/// Args:
///     model: The pieces and merges.
///     stages: The pre-tokenizer's stages in order, as tokenizer.json writes them: `Split`,
///         `ByteLevel` (its pattern), `Digits`, `Punctuation`, `Metaspace`. None: texts are not cut.
///     added_tokens: Id, content and flags of each special token: `single_word`, `lstrip`,
///         `rstrip` and `normalized` as in tokenizer.json; `text` for one that is found in every
///         text.
///     dummy_space: Where a space is written: "never", "text" (before the text), "first" (before the
///         text, unless it begins with a special token) or "always" (before every stretch between
///         special tokens).
///     dummy_space_before_space: Also where the text begins with a space.
///     compose: Texts are normalized to NFC.
///     replaced: After that, what is replaced by what: `("▁", " ")`.
///     limits: What is not exactly as in the original, by name.
///     vocab_size: The number of ids; by default up to the largest.
///
/// Raises:
///     VocabularyError: Parts that are not supported or do not fit together.
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

    /// Which tokens are canonical, made when it is first asked for.
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

    /// Whether everything is as in the original tokenizer.
    #[getter]
    fn exact(&self) -> bool {
        self.tokenizer.limits().is_empty()
    }

    /// What is not exactly as in the original tokenizer, by name.
    #[getter]
    fn limits(&self) -> Vec<String> {
        self.tokenizer.limits().to_vec()
    }

    /// Special tokens by name.
    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for token in self.tokenizer.specials().tokens() {
            out.set_item(&token.content, token.id.0)?;
        }
        Ok(out)
    }

    /// The token ids of a text.
    ///
    /// Args:
    ///     text: Bytes that are not UTF-8 are cut where each of them is a character of no class.
    ///     special: What special tokens in the text are: "text", "forbidden", "allowed" (they are
    ///         found), or a set of names to be found while the others are text.
    ///     method: "backtracking", "table" and "heap" are exact and give the same; "greedy" (the
    ///         longest token first) and "minimal" (the fewest tokens) are not how the model sees
    ///         the text.
    ///     pretokenize: Cut the text into pieces first; otherwise merges may cross their ends.
    ///     normalize: Change the text as the tokenizer does.
    ///     prefix_space: Write the space before the text that the tokenizer writes, if it does.
    ///         False is for a stretch in the middle of a longer text.
    ///
    /// Raises:
    ///     TextError: A forbidden special token, an unknown name, a lone surrogate, or bytes that
    ///         are not UTF-8 and would have to be normalized.
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

    /// The ids of tokens that texts are not encoded with: those that no merges lead to (where whole
    /// pieces are looked up, texts may have them even so), and those for which no text was found that
    /// has them, by themselves or between some characters.
    fn unused_tokens<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let unused = py.released(|| self.tokenizer.unused_tokens());
        Ok((token_list(py, &unused.unmerged)?, token_list(py, &unused.unreachable)?))
    }

    /// How many tokens a text has: the length of what `encode` returns.
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

    /// How many tokens a text has, or None if they are more than `limit`. Reads no more of the
    /// text than it takes to know that.
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

    /// Cuts a text in two: the longest beginning that ends at a character boundary and has at most
    /// `num_tokens` tokens when it is encoded on its own, and the rest. Reads little more than
    /// that beginning.
    ///
    /// The first part is never empty, unless the text is: if not even the first character has so
    /// few tokens, it is that character. Special tokens are text.
    ///
    /// Returns:
    ///     Two texts of the type that was given.
    ///
    /// Raises:
    ///     TextError: Not UTF-8, text that the tokenizer normalizes, or a tokenizer that cannot
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

    /// The bytes that tokens stand for, special tokens written by name.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn decode<'py>(&self, py: Python<'py>, token_ids: Vec<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let tokens: Vec<TokenId> = token_ids.into_iter().map(TokenId).collect();
        let bytes = self.tokenizer.decode(&tokens).map_err(|error| errors::text(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// What a token stands for; empty for an id that stands for no text.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn token_bytes<'py>(&self, py: Python<'py>, token_id: u32) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.tokenizer.token_bytes(TokenId(token_id));
        Ok(PyBytes::new(py, bytes.map_err(|error| errors::text(py, &error))?))
    }

    /// An empty text that grows at its end, and whose tokens can be counted at any time.
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

    /// An empty text that grows at its beginning, and whose tokens can be counted at any time.
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

    /// A text, prepared so that the tokens of any stretch of it can be counted.
    ///
    /// Takes time and memory linear in the text's length. With `prefix_space` a stretch is counted
    /// as a text of its own, with the space that the tokenizer writes before a text; without, as a
    /// stretch in the middle of a longer text.
    ///
    /// Raises:
    ///     TextError: Not UTF-8, text that the tokenizer normalizes, or a tokenizer that cannot
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

    /// Whether the tokens are just those that their text is encoded into.
    ///
    /// A special token ends the text before it, and a new one begins after it. Tokens are those of
    /// a stretch in the middle of a text, so there is no space before it.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    ///     VocabularyError: The tokenizer is not exact.
    fn is_canonical(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<bool> {
        let tokens = self.checked(py, token_ids)?;
        let sequences = self.exact_sequences()?;
        Ok(py.released(|| sequences.canonicality.is_canonical(&tokens)))
    }

    /// Where the tokens stop being the beginning of any text's; None if they do not.
    ///
    /// Raises:
    ///     As `is_canonical`.
    fn first_noncanonical(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<Option<usize>> {
        let tokens = self.checked(py, token_ids)?;
        let sequences = self.exact_sequences()?;
        Ok(py.released(|| sequences.canonicality.first_noncanonical(&tokens)))
    }

    /// The longest beginning of the tokens that is the beginning of some text's tokens.
    ///
    /// Raises:
    ///     As `is_canonical`.
    fn canonical_prefix(&self, py: Python<'_>, mut token_ids: Vec<u32>) -> PyResult<Vec<u32>> {
        if let Some(first) = self.first_noncanonical(py, token_ids.clone())? {
            token_ids.truncate(first);
        }
        Ok(token_ids)
    }

    /// The tokens with which a text begins however it goes on, or if it ends here.
    ///
    /// Args:
    ///     data: The beginning of the text, in bytes; it may end within a character.
    ///     recent_tokens: The tokens before it, in the same text.
    ///
    /// Returns:
    ///     The tokens, and the bytes at the end that may yet be cut in several ways.
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

    /// Takes back the tokens at the end of a prompt that would be others once the text goes on.
    ///
    /// Args:
    ///     token_ids: The prompt, or its end from a special token on.
    ///     max_rollback: The most tokens to take back.
    ///
    /// Returns:
    ///     The tokens that stay, and the bytes of the others: `recent_tokens` and `prefix` of
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

    /// About how many bytes of memory the tokenizer holds.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.tokenizer.memory_bytes()
    }

    fn __repr__(&self) -> String {
        let exact = if self.exact() { "True" } else { "False" };
        format!("Bpe(vocab_size={}, exact={exact})", self.vocab_size())
    }
}
