//! `Matcher`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::bitmask::Bitmask;
use super::errors;
use super::grammar::PyCompiledGrammar;
use super::limits::{flag, LimitsArgument, PyCancellation};
use super::released::Released;
use super::text_argument::TextArgument;
use super::{events, explain};
use ffwd_bounds::meter::Meter;
use ffwd_engine::fast_forward::{
    default_method, fast_forward_tokens, forced_at_once, forced_by_search, forced_bytes, Backoff,
    FastForward, FastForwardError, Method,
};
use ffwd_engine::matcher::{Fallbacks, Matcher};
use ffwd_engine::saved;
use ffwd_tokenizer::vocabulary::TokenId;

/// The state of one sequence in a compiled grammar.
///
/// It belongs to one request; two threads must not use it at once.
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
    /// The grammar that it matches.
    #[getter]
    fn grammar(&self, py: Python<'_>) -> Py<PyCompiledGrammar> {
        self.grammar.clone_ref(py)
    }

    /// The tokens accepted so far, an end token included.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        ids(self.matcher.tokens())
    }

    /// The number of tokens accepted so far, an end token included.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.matcher.tokens().len()
    }

    /// The number of the automaton state, for pictures and tests.
    ///
    /// If two texts of a compiled grammar have the same number, the same texts may follow, and
    /// their masks are shared. Numbers are of the states in memory: they change when
    /// `CompiledGrammar.stats()["evictions"]` does.
    ///
    /// Raises:
    ///     LimitExceededError: As `fill_bitmask`.
    #[getter]
    fn state_id(&self, py: Python<'_>) -> PyResult<u32> {
        let matcher = &self.matcher;
        let state = py
            .released(|| matcher.bounded(|matcher| matcher.current_state()))
            .map_err(|error| errors::engine(py, &error))?;
        Ok(state.0)
    }

    /// The estimated memory of the matcher in bytes, without what it shares with others.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.matcher.memory_bytes()
    }

    /// Accept a token, or return `False` and change nothing if the grammar rejects it.
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

    /// Accept all the tokens, or return `False` and accept none if the grammar rejects one.
    ///
    /// Raises:
    ///     TokenError: As `accept_token`; no token is accepted then.
    fn accept_tokens(&mut self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<bool> {
        let tokens = tokens(token_ids);
        let matcher = &mut self.matcher;
        let accepted = py.released(|| matcher.bounded_mut(|matcher| matcher.accept_all(&tokens)));
        accepted.map_err(|error| errors::matcher(py, &error))
    }

    /// Return how many of the tokens, counted from the first, the grammar accepts; change nothing.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn validate_tokens(&self, py: Python<'_>, token_ids: Vec<u32>) -> PyResult<usize> {
        let tokens = tokens(token_ids);
        let matcher = &self.matcher;
        let valid = py.released(|| matcher.bounded(|matcher| matcher.validate(&tokens)));
        valid.map_err(|error| errors::matcher(py, &error))
    }

    /// Remove the last tokens, an end token included.
    ///
    /// Raises:
    ///     IndexError: More tokens than were accepted.
    fn rollback(&mut self, py: Python<'_>, num_tokens: usize) -> PyResult<()> {
        let matcher = &mut self.matcher;
        let done = py.released(|| matcher.bounded_mut(|matcher| matcher.rollback(num_tokens)));
        done.map_err(|error| errors::matcher(py, &error))
    }

    /// Return to the start of the sequence.
    fn reset(&mut self, py: Python<'_>) -> PyResult<()> {
        let matcher = &mut self.matcher;
        let done = py.released(|| matcher.bounded_mut(|matcher| matcher.reset()));
        done.map_err(|error| errors::matcher(py, &error))
    }

    /// Return the sequence as bytes for `from_bytes`, in this or another process.
    ///
    /// They hold how the sequence started, and its tokens.
    ///
    /// Raises:
    ///     SerializationError: The grammar cannot be saved.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = saved::save_text(&self.matcher).map_err(|error| errors::saved(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Make a matcher from the bytes that `to_bytes` returned; its tokens are matched again.
    ///
    /// The bytes may be untrusted.
    ///
    /// Args:
    ///     data: The bytes.
    ///     grammar: The grammar of the sequence, compiled for the same vocabulary.
    ///     cancellation: As for `CompiledGrammar.matcher`.
    ///
    /// Raises:
    ///     SerializationError: As `CompiledGrammar.from_bytes`, or, with the `reason` `"grammar"`,
    ///         the sequence belongs to another grammar.
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

    /// Return an independent matcher in the same state.
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

    /// Return whether the output may end here; end tokens are allowed then.
    fn is_accepting(&self) -> bool {
        self.matcher.is_accepting()
    }

    /// Return whether an end token was accepted.
    fn is_terminated(&self) -> bool {
        self.matcher.is_terminated()
    }

    /// Overwrite one row with the allowed tokens.
    ///
    /// After the end these are the end tokens, so a finished row of a batch can be sampled.
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
        let matcher = &self.matcher;
        let words = matcher.compiled().engine.vocabulary().mask_words();
        let bitmask = Bitmask::of(bitmask)?;
        if bitmask.write(row, words, |row| matcher.fill_known(row))? {
            return Ok(());
        }
        // Without the row, so that no other thread waits for it.
        let mask = py
            .released(|| matcher.bounded(Matcher::compute_mask))
            .map_err(|error| errors::engine(py, &error))?;
        bitmask.write(row, words, |row| mask.fill(row))
    }

    /// Return the allowed tokens, sorted; none after the end.
    fn allowed_token_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let matcher = &self.matcher;
        let allowed = py
            .released(|| matcher.bounded(|matcher| matcher.allowed()))
            .map_err(|error| errors::engine(py, &error))?;
        Ok(ids(&allowed))
    }

    /// Return the longest bytes that start every continuation, up to a character boundary.
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

    /// Return the longest token sequence that starts every continuation.
    ///
    /// They are tokenized as the tokenizer itself would tokenize the finished text.
    ///
    /// Args:
    ///     max_tokens: The most tokens to return.
    ///     method: `"exact"` returns the longest token sequence shared by all canonical
    ///         tokenizations of every continuation the grammar allows. `"backoff"` encodes the
    ///         forced bytes and drops the tokens at the end that later text could change. The
    ///         default is exact, unless an option of the backoff is given or the vocabulary has no
    ///         exact `Bpe`.
    ///     look_ahead: Exact only, true by default: ignore tokens that have no canonical
    ///         continuation. This forces slightly more and takes slightly longer.
    ///     backoff_tokens: The number of tokens at the end (4 by default) that are searched for the
    ///         longest suffix to drop: one that starts some longer token with which the grammar can
    ///         continue.
    ///     backoff_bytes: The same as a number of bytes, instead of tokens.
    ///     conservative: Drop the suffix even if the grammar cannot continue with that token.
    ///
    /// Raises:
    ///     VocabularyError: The vocabulary has no encode function, that function failed, or the
    ///         exact method was requested and the vocabulary has no exact `Bpe`.
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
        let counted = |find: fn(&Matcher, &FastForward) -> Result<_, FastForwardError>| {
            py.released(|| matcher.bounded(|matcher| find(matcher, &options)))
                .map_err(|error| errors::fast_forward(py, &error))
        };
        // A budget makes even known tokens be parsed, which is work of a call.
        let tokens = if matcher.is_bounded() {
            counted(fast_forward_tokens)?
        } else {
            let at_once = forced_at_once(matcher, &options);
            match at_once.map_err(|error| errors::engine(py, &error))? {
                Some(tokens) => tokens,
                None => counted(forced_by_search)?,
            }
        };
        Ok(ids(&tokens))
    }

    /// The most tokens of the output, the end token included; `None` without a budget.
    #[getter]
    fn max_tokens(&self) -> Option<usize> {
        self.matcher.max_tokens()
    }

    /// How many tokens are left; `None` without a budget.
    #[getter]
    fn tokens_left(&self) -> Option<usize> {
        self.matcher.tokens_left()
    }

    /// Return tokens that complete the output, the end token included; none after the end.
    ///
    /// They are the fewest that encode a short completion, usually a shortest one. With a budget
    /// they are never more than `tokens_left`.
    ///
    /// Raises:
    ///     LimitExceededError: The search takes too many steps or too long.
    fn shortest_completion(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let matcher = &self.matcher;
        let tokens = py
            .released(|| matcher.bounded(|matcher| matcher.shortest_completion()))
            .map_err(|error| errors::engine(py, &error))?;
        Ok(ids(&tokens))
    }

    /// Return what is allowed next, and why a token or text is not.
    ///
    /// This takes longer than a mask, and changes nothing.
    ///
    /// Args:
    ///     token: Also report whether this token is allowed, and if not, why.
    ///     text: The same for a text, however it is tokenized. Not together with `token`.
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

    /// Return the events of spans that became certain since the last call.
    ///
    /// Args:
    ///     finish: The output ends here, as after an end token: open spans end if the grammar
    ///         accepts the output.
    ///
    /// Raises:
    ///     LimitExceededError: The output has too many parses whose spans differ. The next call
    ///         starts again.
    #[pyo3(signature = (*, finish=false))]
    fn events<'py>(&mut self, py: Python<'py>, finish: bool) -> PyResult<Bound<'py, PyAny>> {
        let matcher = &mut self.matcher;
        let found = py.released(|| matcher.bounded_mut(|matcher| matcher.events(finish)));
        events::listed(py, &found.map_err(|error| errors::matcher(py, &error))?)
    }

    /// Return the texts of finished captures by name; a list if several have one name.
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

    /// How often a mask could not be restricted to canonical tokens, by reason.
    ///
    /// All are 0 unless the matcher was made with `canonical=True`. `nothing_left`: no canonical token
    /// led to an end of the text. `lost`: the tokens so far match no tokenization.
    #[getter]
    fn canonical_fallbacks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Fallbacks { nothing_left, lost } = self.matcher.fallbacks();
        let counts = PyDict::new(py);
        counts.set_item("nothing_left", nothing_left)?;
        counts.set_item("lost", lost)?;
        Ok(counts)
    }

    /// How many tokens so far are part of no text's tokenization at their position.
    ///
    /// `None` if the vocabulary has no exact `Bpe`.
    #[getter]
    fn num_noncanonical_tokens(&self) -> Option<usize> {
        self.matcher.strays()
    }

    fn __repr__(&self) -> String {
        let python = |is| if is { "True" } else { "False" };
        format!(
            "Matcher(num_tokens={}, is_accepting={}, is_terminated={})",
            self.matcher.tokens().len(),
            python(self.matcher.is_accepting()),
            python(self.matcher.is_terminated())
        )
    }
}
