//! `Matcher`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::bitmask::Rows;
use super::errors;
use super::grammar::PyCompiledGrammar;
use super::limits::{flag, LimitsArgument, PyCancellation};
use super::released::Released;
use super::text_argument::TextArgument;
use super::{events, explain};
use crate::fast_forward::{
    default_method, fast_forward_tokens, forced_bytes, nothing_forced, Backoff, FastForward, Method,
};
use crate::matcher::{Fallbacks, Matcher};
use crate::meter::Meter;
use crate::saved;
use crate::vocabulary::TokenId;

/// One text in progress. Belongs to one request; not to be used by two threads at once.
#[pyclass(name = "Matcher", module = "ffwd")]
pub struct PyMatcher {
    pub matcher: Matcher,
    grammar: Py<PyCompiledGrammar>,
}

impl PyMatcher {
    pub fn new(matcher: Matcher, grammar: Py<PyCompiledGrammar>) -> Self {
        Self { matcher, grammar }
    }
}

fn ids(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}

fn tokens(ids: Vec<u32>) -> Vec<TokenId> {
    ids.into_iter().map(TokenId).collect()
}

#[pymethods]
impl PyMatcher {
    #[getter]
    fn grammar(&self, py: Python<'_>) -> Py<PyCompiledGrammar> {
        self.grammar.clone_ref(py)
    }

    /// The tokens accepted so far, an end token included.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        ids(self.matcher.tokens())
    }

    #[getter]
    fn num_tokens(&self) -> usize {
        self.matcher.tokens().len()
    }

    /// About how many bytes of memory the matcher holds, beside what it shares with others.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.matcher.memory_bytes()
    }

    /// Takes a token. `False`, with nothing changed, where the grammar refuses it.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary, or any token after the end.
    fn accept_token(&mut self, py: Python<'_>, token_id: u32) -> PyResult<bool> {
        let token = TokenId(token_id);
        let matcher = &mut self.matcher;
        let accepted = match matcher.accept_known(token) {
            Some(accepted) => accepted,
            None => py.released(|| matcher.bounded_mut(|matcher| matcher.accept(token))),
        };
        accepted.map_err(|error| errors::matcher(py, &error))
    }

    /// Takes all the tokens, or, where the grammar refuses one, none: then `False`.
    ///
    /// Raises:
    ///     TokenError: As `accept_token`; nothing is taken then either.
    fn accept_tokens(&mut self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<bool> {
        let tokens = tokens(token_ids);
        let matcher = &mut self.matcher;
        let accepted = py.released(|| matcher.bounded_mut(|matcher| matcher.accept_all(&tokens)));
        accepted.map_err(|error| errors::matcher(py, &error))
    }

    /// How many of the tokens, from the first on, would be accepted. Changes nothing.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn validate_tokens(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<usize> {
        let tokens = tokens(token_ids);
        let matcher = &self.matcher;
        let valid = py.released(|| matcher.bounded(|matcher| matcher.validate(&tokens)));
        valid.map_err(|error| errors::matcher(py, &error))
    }

    /// Takes back the last tokens, an end token included.
    ///
    /// Raises:
    ///     IndexError: More tokens than have been accepted.
    fn rollback(&mut self, py: Python<'_>, num_tokens: usize) -> PyResult<()> {
        let matcher = &mut self.matcher;
        let done = py.released(|| matcher.bounded_mut(|matcher| matcher.rollback(num_tokens)));
        done.map_err(|error| errors::matcher(py, &error))
    }

    /// Back to the beginning of the text.
    fn reset(&mut self, py: Python<'_>) -> PyResult<()> {
        let matcher = &mut self.matcher;
        let done = py.released(|| matcher.bounded_mut(|matcher| matcher.reset()));
        done.map_err(|error| errors::matcher(py, &error))
    }

    /// Where the text is, as bytes, from which `from_bytes` makes it again: how it began, and its
    /// tokens. They can be given to another process.
    ///
    /// Raises:
    ///     SerializationError: Its grammar cannot be saved.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = saved::save_text(&self.matcher).map_err(|error| errors::saved(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The matcher of bytes from `to_bytes`, which reads its tokens again. The bytes may come from
    /// anybody.
    ///
    /// Args:
    ///     data: The bytes.
    ///     grammar: The grammar of the text, compiled for the same vocabulary.
    ///     cancellation: As for `CompiledGrammar.matcher`.
    ///
    /// Raises:
    ///     SerializationError: As `CompiledGrammar.from_bytes`, or, with the `reason` `"grammar"`,
    ///         the text was in another grammar.
    #[staticmethod]
    #[pyo3(signature = (data, grammar, *, cancellation=None))]
    fn from_bytes(
        py: Python<'_>,
        data: &[u8],
        grammar: &Bound<'_, PyCompiledGrammar>,
        cancellation: Option<&Bound<'_, PyCancellation>>,
    ) -> PyResult<Self> {
        let compiled = grammar.get().compiled.clone();
        let cancellation = flag(cancellation);
        let mut meter = Meter::calling(compiled.limits(), cancellation.clone());
        let loaded = || saved::load_text(data, compiled.clone());
        let matcher = py.released(|| compiled.settle_after(meter.run(loaded)));
        let matcher = matcher.map_err(|error| errors::saved(py, &error))?;
        Ok(Self::new(matcher.cancelled_by(cancellation), grammar.clone().unbind()))
    }

    /// A second matcher at the same place; the two go on independently.
    ///
    /// Args:
    ///     limits: An `ffwd.Limits` for its calls, instead of this one's.
    #[pyo3(signature = (*, limits=None))]
    fn fork(&self, py: Python<'_>, limits: Option<LimitsArgument>) -> Self {
        let mut matcher = self.matcher.clone();
        if let Some(limits) = limits {
            matcher = matcher.limited_by(limits.into());
        }
        Self { matcher, grammar: self.grammar.clone_ref(py) }
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.fork(py, None)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.fork(py, None)
    }

    fn __reduce__(&self) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err(
            "a Matcher is not pickled, as it needs the compiled grammar of the process that loads it: \
             send to_bytes(), and there Matcher.from_bytes(data, grammar)",
        ))
    }

    /// Whether the text may end here: then the end tokens are allowed.
    fn is_accepting(&self) -> bool {
        self.matcher.is_accepting()
    }

    /// Whether an end token has been accepted.
    fn is_terminated(&self) -> bool {
        self.matcher.is_terminated()
    }

    /// Overwrites one row with the tokens that may come next.
    ///
    /// After the end these are the end tokens, so that a finished row of a batch can be sampled.
    ///
    /// Args:
    ///     bitmask: int32 or uint32, numpy or torch on the CPU, `[rows, words]` or `[words]` with
    ///         `words >= ceil(vocab_size / 32)`, C-contiguous. Bit `t % 32` of word `t // 32`
    ///         stands for token `t`.
    ///     row: Which row to write.
    ///
    /// Raises:
    ///     BitmaskError: Another type, shape or layout, or a row out of range.
    #[pyo3(signature = (bitmask, row=0))]
    fn fill_bitmask(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let mut rows = Rows::of(bitmask)?;
        let words = self.matcher.compiled().engine.vocabulary().mask_words();
        let row = rows.row(row, words)?;
        if self.matcher.fill_known(row) {
            return Ok(());
        }
        let matcher = &self.matcher;
        py.released(|| matcher.bounded(|matcher| matcher.fill_bitmask(row)))
            .map_err(|error| errors::engine(py, &error))
    }

    /// The tokens that may come next, sorted; none after the end.
    fn allowed_token_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let matcher = &self.matcher;
        let allowed = py
            .released(|| matcher.bounded(|matcher| matcher.allowed()))
            .map_err(|error| errors::engine(py, &error))?;
        Ok(ids(&allowed))
    }

    /// The bytes that must come next whatever follows, up to a character boundary.
    #[pyo3(signature = (max_bytes=65536))]
    fn forced_bytes<'py>(
        &self,
        py: Python<'py>,
        max_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let matcher = &self.matcher;
        let bytes = py
            .released(|| matcher.bounded(|matcher| forced_bytes(matcher, max_bytes)))
            .map_err(|error| errors::engine(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The tokens that must come next, as the tokenizer itself cuts the finished text.
    ///
    /// Args:
    ///     max_tokens: The most tokens to return.
    ///     method: `"exact"`: what all canonical tokenizations of all texts that the grammar lets
    ///         follow have in common. `"backoff"`: the forced bytes encoded, without those tokens
    ///         at the end that could be cut otherwise once more text follows. By default exact,
    ///         unless an option of the backoff is given or the vocabulary has no exact `Bpe`.
    ///     look_ahead: Exact only, and by default true: leave aside tokens after which nothing
    ///         canonical could follow. Forces a little more, and takes a little longer.
    ///     backoff_tokens: Of how many tokens at the end, 4 by default, the longest suffix is left
    ///         out that some longer token begins with and that the grammar lets go on so.
    ///     backoff_bytes: Instead of tokens: of how many bytes.
    ///     conservative: Whether or not the grammar lets it go on so.
    ///
    /// Raises:
    ///     VocabularyError: The vocabulary has no encode function, or that function failed, or the
    ///         exact method was asked for and the vocabulary has no exact `Bpe`.
    ///     ValueError: Another method, or options of both.
    #[pyo3(signature = (*, max_tokens=None, method=None, look_ahead=None, backoff_tokens=None,
                        backoff_bytes=None, conservative=false))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
    fn fast_forward_tokens(
        &self,
        py: Python<'_>,
        max_tokens: Option<usize>,
        method: Option<&str>,
        look_ahead: Option<bool>,
        backoff_tokens: Option<usize>,
        backoff_bytes: Option<usize>,
        conservative: bool,
    ) -> PyResult<Vec<u32>> {
        let matcher = &self.matcher;
        let backs_off = backoff_tokens.is_some() || backoff_bytes.is_some() || conservative;
        let backoff = || {
            let tokens = backoff_tokens.unwrap_or(Backoff::default().tokens);
            Method::Backoff(Backoff { tokens, bytes: backoff_bytes, conservative })
        };
        let method = match method {
            Some("exact") if backs_off => None,
            Some("exact") => Some(Method::Exact { look_ahead: look_ahead.unwrap_or(true) }),
            Some("backoff") => look_ahead.is_none().then(backoff),
            None => match (look_ahead, backs_off) {
                (Some(_), true) => None,
                (Some(look_ahead), false) => Some(Method::Exact { look_ahead }),
                (None, true) => Some(backoff()),
                (None, false) => Some(default_method(matcher)),
            },
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "method must be 'exact' or 'backoff', not {other:?}"
                )))
            }
        };
        let method = method.ok_or_else(|| {
            PyValueError::new_err(
                "look_ahead belongs to method='exact'; backoff_tokens, backoff_bytes and \
                 conservative belong to method='backoff'",
            )
        })?;
        let options = FastForward { max_tokens, method };
        if nothing_forced(matcher, &options).map_err(|error| errors::engine(py, &error))? {
            return Ok(Vec::new());
        }
        let tokens = py
            .released(|| matcher.bounded(|matcher| fast_forward_tokens(matcher, &options)))
            .map_err(|error| errors::fast_forward(py, &error))?;
        Ok(ids(&tokens))
    }

    /// How many tokens the text may have, the end token included; `None` without a budget.
    #[getter]
    fn max_tokens(&self) -> Option<usize> {
        self.matcher.max_tokens()
    }

    /// How many more tokens may come; `None` without a budget.
    #[getter]
    fn tokens_left(&self) -> Option<usize> {
        self.matcher.tokens_left()
    }

    /// Tokens with which the text can end from here, the end token included; none after the end.
    ///
    /// They are the fewest that spell a short text, which mostly is a shortest one. With a budget they
    /// are never more than are left.
    ///
    /// Raises:
    ///     LimitExceededError: It takes too long to find.
    fn shortest_completion(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let matcher = &self.matcher;
        let tokens = py
            .released(|| matcher.bounded(|matcher| matcher.shortest_completion()))
            .map_err(|error| errors::engine(py, &error))?;
        Ok(ids(&tokens))
    }

    /// What may come next, and why something may not.
    ///
    /// It takes longer than a mask, and changes nothing.
    ///
    /// Args:
    ///     token: Also whether this token is allowed, and if not, why.
    ///     text: Instead of a token: the same of a text, whatever tokens would spell it.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    ///     ValueError: Both a token and a text.
    ///     TextError: A text with a lone surrogate.
    #[pyo3(signature = (token=None, text=None))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        token: Option<u32>,
        text: Option<TextArgument<'py>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        explain::explained(py, &self.matcher, token, text.as_ref())
    }

    /// What has become certain of the spans of the text since the last call.
    ///
    /// Args:
    ///     finish: The text ends here, as after an end token: what is open ends where the grammar
    ///         lets the text end.
    ///
    /// Raises:
    ///     LimitExceededError: The text has too many readings whose spans differ. The next call
    ///         then begins anew.
    #[pyo3(signature = (*, finish=false))]
    fn events<'py>(&mut self, py: Python<'py>, finish: bool) -> PyResult<Bound<'py, PyAny>> {
        let matcher = &mut self.matcher;
        let found = py.released(|| matcher.bounded_mut(|matcher| matcher.events(finish)));
        events::listed(py, &found.map_err(|error| errors::matcher(py, &error))?)
    }

    /// The texts of the captures that have ended, by name; of several of one name a list.
    ///
    /// Args:
    ///     finish: As in `events`.
    ///
    /// Raises:
    ///     LimitExceededError: As in `events`.
    #[pyo3(signature = (*, finish=false))]
    fn captures<'py>(&mut self, py: Python<'py>, finish: bool) -> PyResult<Bound<'py, PyAny>> {
        let matcher = &mut self.matcher;
        let found = py.released(|| matcher.bounded_mut(|matcher| matcher.captures(finish)));
        events::captured(py, found.map_err(|error| errors::matcher(py, &error))?)
    }

    /// How often a mask could not be restricted to canonical tokens, by reason; all 0 unless
    /// the matcher was made with `canonical=True`. `nothing_left`: no token of the grammar was
    /// canonical. `lost`: the tokens so far could not be placed in the text.
    #[getter]
    fn canonical_fallbacks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Fallbacks { nothing_left, lost } = self.matcher.fallbacks();
        let counts = PyDict::new(py);
        counts.set_item("nothing_left", nothing_left)?;
        counts.set_item("lost", lost)?;
        Ok(counts)
    }

    /// How many of the tokens so far no tokenization of any text could have where they are; `None`
    /// where the vocabulary has no exact `Bpe`, which could tell.
    #[getter]
    fn num_noncanonical_tokens(&self) -> Option<usize> {
        self.matcher.strays()
    }

    fn __repr__(&self) -> String {
        format!(
            "Matcher(num_tokens={}, is_accepting={}, is_terminated={})",
            self.matcher.tokens().len(),
            self.matcher.is_accepting(),
            self.matcher.is_terminated()
        )
    }
}
