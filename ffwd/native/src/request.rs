//! `EngineRequest` and `StepRows`: requests of inference engines, and the rows of their steps.

use std::time::Duration;

use numpy::{PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::bitmask::{Bitmask, Lent};
use super::errors::{self, BitmaskError};
use super::grammar::PyCompiledGrammar;
use super::matcher::PyMatcher;
use super::released::Released;
use ffwd_engine::matcher::{ComputedMask, Matcher};
use ffwd_engine::request::{
    fill_step, forced_runs, Bounds, Drafts, GivenToken, Held, Outcome, Request, RequestError,
    RequestRows, RunsWork, StepWork, MAX_RUN,
};
use ffwd_tokenizer::vocabulary::TokenId;

fn failed(py: Python<'_>, error: &RequestError) -> PyErr {
    match error {
        RequestError::Matcher(error) => errors::matcher(py, error),
        RequestError::FastForward(error) => errors::fast_forward(py, error),
    }
}

/// Reads token ids, mostly a list of one.
fn given(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<GivenToken>> {
    match tokens.cast::<PyList>() {
        Ok(list) => list.iter().map(|token| token.extract()).collect(),
        Err(_) => tokens.extract(),
    }
}

/// A request of an inference engine: a matcher that refuses where `Matcher` raises.
///
/// A token outside the vocabulary or after the end is refused without an error. If a limit is
/// exceeded while a step's rows are filled or tokens are accepted, `refused` says which, and every
/// later token is refused.
///
/// Args:
///     grammar: The grammar, compiled. Or another request, which is copied: its grammar, its options
///         and its tokens.
///     stop_token_ids: Tokens that end the output beside the vocabulary's end tokens, where it can
///         end. They are masked until then, unless nothing else is allowed.
///     narrow: For forced text, allow only the token with which the tokenizer encodes it, as
///         `Matcher.fast_forward_tokens` finds it. It has no effect unless the vocabulary has an
///         exact `Bpe`.
///
/// Raises:
///     BudgetError: Parts of the text have limits, and no text keeps to them.
///     TypeError: A request is copied, and there are options.
#[pyclass(name = "EngineRequest", module = "ffwd.engine", subclass)]
pub struct PyEngineRequest {
    pub(super) request: Request,
    grammar: Py<PyCompiledGrammar>,
}

#[pymethods]
impl PyEngineRequest {
    #[new]
    #[pyo3(signature = (grammar, stop_token_ids=None, *, narrow=false))]
    fn new(
        grammar: &Bound<'_, PyAny>,
        stop_token_ids: Option<&Bound<'_, PyAny>>,
        narrow: bool,
    ) -> PyResult<Self> {
        let py = grammar.py();
        if let Ok(other) = grammar.cast::<Self>() {
            if narrow || stop_token_ids.is_some() {
                return Err(PyTypeError::new_err("a copy of a request has the options of that"));
            }
            let other = other.try_borrow()?;
            return Ok(Self {
                request: other.request.clone(),
                grammar: other.grammar.clone_ref(py),
            });
        }
        let grammar = grammar.cast::<PyCompiledGrammar>()?;
        let mut stops: Vec<GivenToken> = Vec::new();
        if let Some(given) = stop_token_ids {
            for token in given.try_iter()? {
                stops.push(token?.extract()?);
            }
        }
        let compiled = grammar.get().compiled.clone();
        let matcher = py.released(|| Matcher::new(compiled));
        let matcher = matcher.map_err(|error| errors::matcher(py, &error))?;
        let request = Request::new(matcher, narrow, stops);
        Ok(Self { request, grammar: grammar.clone().unbind() })
    }

    /// The compiled grammar, which all its requests share.
    #[getter]
    fn grammar(&self, py: Python<'_>) -> Py<PyCompiledGrammar> {
        self.grammar.clone_ref(py)
    }

    /// Return a copy of its matcher, which knows no stop tokens.
    fn matcher(&self, py: Python<'_>) -> PyMatcher {
        PyMatcher::new(self.request.matcher().clone(), self.grammar.clone_ref(py))
    }

    /// How many tokens have been accepted and not rolled back, those after the end included.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.request.num_tokens()
    }

    /// Which limit was exceeded, so that nothing more is accepted; `None` as long as all is well.
    #[getter]
    fn refused(&self) -> Option<&str> {
        self.request.refused()
    }

    /// Accept a token, or return `False` and change nothing if it is refused.
    ///
    /// A token after the end only counts, until it is rolled back.
    fn accept(&mut self, py: Python<'_>, token: GivenToken) -> bool {
        let request = &mut self.request;
        match request.accept_known(token) {
            Some(accepted) => accepted,
            None => py.released(|| request.accept(&[token])),
        }
    }

    /// Accept all the tokens, or return `False` and accept none if one is refused.
    ///
    /// Tokens after the end only count, until they are rolled back.
    fn accept_tokens(
        &mut self,
        py: Python<'_>,
        request_id: &Bound<'_, PyAny>,
        tokens: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let _ = request_id;
        let tokens = given(tokens)?;
        if let &[token] = &*tokens {
            return Ok(self.accept(py, token));
        }
        let request = &mut self.request;
        Ok(py.released(|| request.accept(&tokens)))
    }

    /// Return the longest prefix of the tokens that would be accepted; change nothing.
    fn validate_tokens<'py>(
        &mut self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut tokens = given(tokens)?;
        let request = &mut self.request;
        let count = py.released(|| request.validate(&tokens));
        tokens.truncate(count.map_err(|error| errors::matcher(py, &error))?);
        PyList::new(py, tokens)
    }

    /// Take back the last tokens, the end included. A request that was refused since accepts again.
    ///
    /// Raises:
    ///     IndexError: More tokens than were accepted.
    fn rollback(&mut self, py: Python<'_>, num_tokens: usize) -> PyResult<()> {
        let request = &mut self.request;
        py.released(|| request.rollback(num_tokens)).map_err(|error| errors::matcher(py, &error))
    }

    /// Take back all tokens.
    fn reset(&mut self, py: Python<'_>) -> PyResult<()> {
        let request = &mut self.request;
        py.released(|| request.reset()).map_err(|error| errors::matcher(py, &error))
    }

    /// Return whether an end token or a stop token has been accepted.
    fn is_terminated(&self) -> bool {
        self.request.is_terminated()
    }

    /// Return the next tokens, up to `max_tokens`, as long as only one is allowed.
    ///
    /// An end token is among them where the text can do nothing but end. A sampler that follows
    /// the mask cannot choose otherwise, so as drafts they are always right.
    fn forced(&mut self, py: Python<'_>, max_tokens: usize) -> PyResult<Vec<u32>> {
        let request = &mut self.request;
        let tokens = py.released(|| request.forced(max_tokens));
        let tokens = tokens.map_err(|error| failed(py, &error))?;
        Ok(tokens.into_iter().map(|token| token.0).collect())
    }

    /// Build what the first steps are likely to need; return how many states that were.
    ///
    /// Otherwise the steps wait for the same masks, one at a time. The interpreter lock is
    /// released.
    ///
    /// Args:
    ///     max_states: At most so many states.
    ///     seconds: For at most about so long.
    #[pyo3(signature = (*, max_states=128, seconds=0.01))]
    fn build_ahead(&self, py: Python<'_>, max_states: usize, seconds: f64) -> usize {
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let request = &self.request;
        py.released(|| request.build_ahead(max_states, time))
    }

    /// Write the allowed tokens into a row of a bitmask, as for `Matcher.fill_bitmask`.
    ///
    /// After an end token these are the end tokens.
    fn fill_bitmask(
        &mut self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        batch_index: usize,
    ) -> PyResult<()> {
        let words = self.request.matcher().compiled().engine.vocabulary().mask_words();
        let bitmask = Bitmask::of(bitmask)?;
        // What is wrong with the row is said before anything else.
        bitmask.write(batch_index, words, |_| ())?;
        let mut mask = vec![0; words];
        let request = &mut self.request;
        py.released(|| request.fill(&mut mask, &mut Held::default()))
            .map_err(|error| failed(py, &error))?;
        bitmask.write(batch_index, words, |row| ComputedMask::from(mask).fill(row))
    }

    fn __repr__(&self) -> String {
        let is_terminated = if self.request.is_terminated() { "True" } else { "False" };
        let count = self.request.num_tokens();
        format!("EngineRequest(num_tokens={count}, is_terminated={is_terminated})")
    }
}

/// The rows of an engine's bitmask, filled for all its requests at once.
///
/// It remembers what each row holds and does not write that again. Call `forget` after anything
/// else has written to the array.
///
/// Args:
///     bitmask: A numpy array, int32 `[rows, words]`, C-contiguous.
///
/// Raises:
///     BitmaskError: Another shape or layout.
#[pyclass(name = "StepRows", module = "ffwd.engine")]
pub struct PyStepRows {
    bitmask: Py<PyArrayDyn<i32>>,
    words: usize,
    held: Vec<Held>,
}

/// The number of rows; the indices of refused requests; refused drafts, each with the index of its
/// request.
type Filled = (usize, Vec<usize>, Vec<(usize, GivenToken)>);

/// Where a grammar holds among the drafts, with the index of its request.
type GivenBounds = (usize, usize, usize, Vec<u32>);

fn error(message: impl Into<String>) -> PyErr {
    BitmaskError::new_err(message.into())
}

fn borrowed<'py>(requests: &Bound<'py, PyList>) -> PyResult<Vec<PyRefMut<'py, PyEngineRequest>>> {
    requests
        .iter()
        .map(|request| Ok(request.cast_into::<PyEngineRequest>()?.try_borrow_mut()?))
        .collect()
}

fn given_drafts(
    drafts: Option<&Bound<'_, PyList>>,
    requests: usize,
) -> PyResult<Vec<Vec<GivenToken>>> {
    let Some(drafts) = drafts else { return Ok(vec![Vec::new(); requests]) };
    if drafts.len() != requests {
        return Err(error(format!("{requests} requests have the drafts of {}", drafts.len())));
    }
    let tokens = |tokens: Bound<'_, PyAny>| match tokens.is_none() {
        true => Ok(Vec::new()),
        false => given(&tokens),
    };
    drafts.iter().map(tokens).collect()
}

fn given_bounds(bounds: Vec<GivenBounds>, requests: usize) -> PyResult<Vec<Bounds>> {
    let mut all = vec![Bounds::default(); requests];
    for (at, grammar_start, constraint_start, excluded) in bounds {
        let Some(bounds) = all.get_mut(at) else {
            return Err(error(format!("there is no request {at} to have bounds")));
        };
        let excluded = excluded.into_iter().map(TokenId).collect();
        *bounds = Bounds { grammar_start, constraint_start, excluded };
    }
    Ok(all)
}

/// Return which tokens are forced after each token that may be sampled next.
///
/// Each row of the table has the index of a request, a number of drafts, a token, and the tokens
/// that are forced if that token is sampled after these drafts; -1 pads them. The tokens are found
/// without the interpreter lock, and cached by state. Small masks are enumerated, and after larger
/// ones the common tokens of JSON are tried, so entries can be missing.
///
/// Args:
///     requests: `EngineRequest` objects, all different; their states do not change.
///     max_tokens: How many forced tokens an entry may have; at most 32.
///     drafts: The drafts of each, or None, as for `StepRows.fill`. Drafts after -1 or a refused
///         one are ignored.
///     bounds: As for `StepRows.fill`.
///     held_back: The indices of requests that must not end: no end tokens are forced.
///
/// Returns:
///     int64, one row for each entry, `3 + max_tokens` columns.
///
/// Raises:
///     TypeError: A request is of another class.
///     BitmaskError: Drafts or bounds of requests that are not there, or `max_tokens` above 32.
#[pyfunction]
#[pyo3(signature = (requests, max_tokens, drafts=None, bounds=Vec::new(), held_back=Vec::new()))]
pub fn forced_table<'py>(
    py: Python<'py>,
    requests: &Bound<'py, PyList>,
    max_tokens: usize,
    drafts: Option<&Bound<'py, PyList>>,
    bounds: Vec<GivenBounds>,
    held_back: Vec<usize>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    if max_tokens > MAX_RUN {
        return Err(error(format!("max_tokens is {max_tokens}, and must be at most {MAX_RUN}")));
    }
    let mut requests = borrowed(requests)?;
    let drafts = given_drafts(drafts, requests.len())?;
    let bounds = given_bounds(bounds, requests.len())?;
    let mut work: Vec<RunsWork<'_>> = requests
        .iter_mut()
        .zip(&drafts)
        .zip(&bounds)
        .map(|((request, drafts), bounds)| RunsWork {
            request: &mut request.request,
            drafts,
            grammar_start: bounds.grammar_start,
            constraint_start: bounds.constraint_start,
            may_end: true,
        })
        .collect();
    for at in held_back {
        let Some(work) = work.get_mut(at) else {
            return Err(error(format!("there is no request {at} to be held back")));
        };
        work.may_end = false;
    }
    let found = py.released(|| forced_runs(&mut work, max_tokens));
    let width = 3 + max_tokens;
    let count: usize = found.iter().map(Vec::len).sum();
    let mut table = vec![-1; count * width];
    let entries = found.iter().enumerate().flat_map(|(at, runs)| runs.iter().map(move |r| (at, r)));
    for (row, (at, entry)) in table.chunks_mut(width).zip(entries) {
        row[..3].copy_from_slice(&[at as i64, entry.row as i64, i64::from(entry.token.0)]);
        for (cell, token) in row[3..].iter_mut().zip(&entry.run) {
            *cell = i64::from(token.0);
        }
    }
    PyArray1::from_vec(py, table).reshape([count, width])
}

#[pymethods]
impl PyStepRows {
    #[new]
    fn new(bitmask: &Bound<'_, PyArrayDyn<i32>>) -> PyResult<Self> {
        let &[rows, words] = bitmask.shape() else {
            return Err(error("the rows of a step must have the shape [rows, words]"));
        };
        if !bitmask.is_c_contiguous() {
            return Err(error("a bitmask must be C-contiguous"));
        }
        Ok(Self { bitmask: bitmask.clone().unbind(), words, held: vec![Held::default(); rows] })
    }

    /// Forget what the rows hold: something else has written to them.
    fn forget(&mut self) {
        self.held.fill(Held::default());
    }

    /// Fill the rows of all requests of a step, without the interpreter lock.
    ///
    /// A request has a row for each of its drafts, and one for the token after them. Row `i` is
    /// the mask after `i` drafts; after a draft of -1 every token is allowed, and after a refused
    /// one the rows repeat. All drafts are rolled back. Requests that have ended allow every token.
    ///
    /// If a limit is exceeded, the row allows one token, and the request refuses what comes.
    ///
    /// Args:
    ///     requests: `EngineRequest` objects, all different, or None, whose rows allow every token.
    ///     drafts: The drafts of each, or None.
    ///     bounds: By the index of a request that a grammar does not constrain from the start:
    ///         from which draft on the grammar reads them, from which row on it masks, and which
    ///         tokens the rows before exclude.
    ///     stride: The number of rows from one request to the next; by default each begins where
    ///         the one before ends.
    ///     threads: How many threads may compute masks at once.
    ///
    /// Returns:
    ///     How many rows there are from the first to the last; the indices of refused requests;
    ///     and refused drafts, with the index of their request.
    ///
    /// Raises:
    ///     TypeError: A request is of another class. Nothing has been written.
    ///     BitmaskError: More rows are needed than there are, or longer ones. Nothing has been
    ///         written.
    #[pyo3(signature = (requests, drafts=None, bounds=Vec::new(), *, stride=None, threads=1))]
    fn fill(
        &mut self,
        py: Python<'_>,
        requests: &Bound<'_, PyList>,
        drafts: Option<&Bound<'_, PyList>>,
        bounds: Vec<GivenBounds>,
        stride: Option<usize>,
        threads: usize,
    ) -> PyResult<Filled> {
        let mut requests: Vec<Option<PyRefMut<'_, PyEngineRequest>>> = requests
            .iter()
            .map(|request| match request.is_none() {
                true => Ok(None),
                false => Ok(Some(request.cast_into::<PyEngineRequest>()?.try_borrow_mut()?)),
            })
            .collect::<PyResult<_>>()?;
        let drafts = given_drafts(drafts, requests.len())?;
        let all_bounds = given_bounds(bounds, requests.len())?;
        let _lent = Lent::new();
        let mut array =
            self.bitmask.bind(py).try_readwrite().map_err(|cause| error(cause.to_string()))?;
        let rows = array.as_slice_mut().map_err(|cause| error(cause.to_string()))?;
        let mut rows: &mut [u32] = bytemuck::cast_slice_mut(rows);
        let mut held = &mut self.held[..];
        let mut used = 0;
        let mut work = Vec::with_capacity(requests.len());
        let mut places = Vec::with_capacity(requests.len());
        let mut open = Vec::new();
        for (at, ((request, drafts), bounds)) in
            requests.iter_mut().zip(&drafts).zip(all_bounds).enumerate()
        {
            let count = drafts.len() + 1;
            let taken = stride.unwrap_or(count);
            let needed = request.as_ref().map_or(0, |request| {
                request.request.matcher().compiled().engine.vocabulary().mask_words()
            });
            if taken < count || held.len() < taken || self.words < needed {
                return Err(error(format!(
                    "a request needs {count} rows of {needed} words, and there are {} of {}",
                    held.len().min(taken),
                    self.words
                )));
            }
            let (mine, later) = rows.split_at_mut(taken * self.words);
            let (known, unknown) = held.split_at_mut(taken);
            (rows, held) = (later, unknown);
            used += taken;
            let (mine, known) = (&mut mine[..count * self.words], &mut known[..count]);
            let Some(request) = request else {
                open.extend(mine.chunks_mut(self.words).zip(known));
                continue;
            };
            places.push(at);
            work.push(StepWork {
                request: &mut request.request,
                drafts: Drafts::Chain(drafts, bounds),
                rows: RequestRows::new(mine, known),
            });
        }
        for (row, held) in open {
            held.write_everything(row);
        }
        let outcomes = py.released(|| fill_step(work, threads));
        let (mut refused, mut rejected) = (Vec::new(), Vec::new());
        for (at, outcome) in outcomes {
            match outcome {
                Outcome::Refused => refused.push(places[at]),
                Outcome::RejectedDraft(token) => rejected.push((places[at], token)),
            }
        }
        Ok((used, refused, rejected))
    }

    fn __repr__(&self) -> String {
        format!("StepRows(rows={}, words={})", self.held.len(), self.words)
    }
}
