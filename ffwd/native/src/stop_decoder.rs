//! `StopSequenceDecoder`: text that is decoded token by token up to a stop.

use std::sync::Arc;

use parking_lot::MutexGuard;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};
use pyo3::IntoPyObjectExt;

use super::decoder::{detached, TokenArgument, TokensArgument};
use super::errors;
use super::stream_events;
use super::streaming::{stream_after, Exclusive, Source};
use super::text_argument::lone_surrogate;
use ffwd_tokenizer::streaming::{Output, Stop, StopDecoder, StopError, StopOptions, Stops};
use ffwd_tokenizer::tokenizer::TextError;

/// Text that can be shown.
#[pyclass(name = "Text", module = "ffwd.streaming", frozen)]
pub struct PyTextOutput(Py<PyString>);

/// The last text before the stop.
#[pyclass(name = "StoppedWithText", module = "ffwd.streaming", frozen)]
pub struct PyStoppedWithText(Py<PyString>);

/// No text can be shown yet.
#[pyclass(name = "Held", module = "ffwd.streaming", frozen, eq)]
#[derive(PartialEq)]
pub struct PyHeld;

/// The text has stopped, and no more of it is shown.
#[pyclass(name = "Stopped", module = "ffwd.streaming", frozen, eq)]
#[derive(PartialEq)]
pub struct PyStopped;

/// The strings of a list as UTF-8.
fn texts(
    py: Python<'_>,
    list: &'static str,
    strings: &[Bound<'_, PyString>],
) -> PyResult<Vec<String>> {
    let text = |(index, string): (usize, &Bound<'_, PyString>)| {
        string.to_str().map(str::to_owned).map_err(|error| match lone_surrogate(string, &error) {
            Some(TextError::LoneSurrogate { character, .. }) => {
                errors::stop(py, &StopError::LoneSurrogate { list, index, character })
            }
            _ => error,
        })
    };
    strings.iter().enumerate().map(text).collect()
}

macro_rules! with_text {
    ($class:ident, $name:literal, $stopped:literal) => {
        #[pymethods]
        impl $class {
            #[classattr]
            #[pyo3(name = "__match_args__")]
            const MATCH_ARGS: (&'static str,) = ("text",);

            /// Whether the text has stopped.
            #[classattr]
            #[allow(non_upper_case_globals)]
            const stopped: bool = $stopped;

            #[new]
            #[pyo3(signature = (text, /))]
            fn new(text: Py<PyString>) -> Self {
                Self(text)
            }

            /// The text to show; not empty.
            #[getter]
            fn text(&self, py: Python<'_>) -> Py<PyString> {
                self.0.clone_ref(py)
            }

            fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
                match other.cast::<Self>() {
                    Ok(other) => self.0.bind(py).as_any().eq(&other.get().0),
                    Err(_) => Ok(false),
                }
            }

            fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
                self.0.bind(py).hash()
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                Ok(format!("{}({})", $name, self.0.bind(py).repr()?))
            }
        }
    };
}

macro_rules! without_text {
    ($class:ident, $name:literal, $stopped:literal) => {
        #[pymethods]
        impl $class {
            /// The empty text.
            #[classattr]
            #[allow(non_upper_case_globals)]
            const text: &'static str = "";

            /// Whether the text has stopped.
            #[classattr]
            #[allow(non_upper_case_globals)]
            const stopped: bool = $stopped;

            #[new]
            fn new() -> Self {
                Self
            }

            fn __hash__(&self) -> isize {
                isize::from($stopped)
            }

            fn __repr__(&self) -> &'static str {
                concat!($name, "()")
            }
        }
    };
}

with_text!(PyTextOutput, "Text", false);
with_text!(PyStoppedWithText, "StoppedWithText", true);
without_text!(PyHeld, "Held", false);
without_text!(PyStopped, "Stopped", true);

/// The outputs without text, made once.
static HELD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static STOPPED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

fn converted(py: Python<'_>, output: Output<'_>) -> PyResult<Py<PyAny>> {
    match output {
        Output::Text(text) => PyTextOutput(PyString::new(py, text).unbind()).into_py_any(py),
        Output::StoppedWithText(text) => {
            PyStoppedWithText(PyString::new(py, text).unbind()).into_py_any(py)
        }
        Output::Held => Ok(HELD.get_or_try_init(py, || PyHeld.into_py_any(py))?.clone_ref(py)),
        Output::Stopped => {
            Ok(STOPPED.get_or_try_init(py, || PyStopped.into_py_any(py))?.clone_ref(py))
        }
    }
}

/// A decoder of one output, up to the first stop token or stop string.
///
/// It holds back only the longest suffix that starts a stop string. Stop strings are found across
/// tokens and within them. The one that ends first wins, so the result depends on the text alone
/// and not on its tokens; of those that end together, the longest wins. A stop token stops before
/// its own text, which is not searched.
///
/// A decoder belongs to one request, like a `DecodeStream`.
///
/// Args:
///     source: A `Decoder`, or a tokenizer with one as its attribute `decoder`.
///     stop_tokens: Ids that stop the text and are hidden.
///     stop_strings: Strings that stop the text and are hidden. If special tokens are skipped, the
///         name of a special token stops at that token.
///     visible_stop_tokens: Ids that stop the text and end it visibly, even if they are special.
///     visible_stop_strings: Strings that stop the text and end it visibly.
///     prompt_ids: As for `DecodeStream`; the prompt is not searched.
///     skip_special_tokens: Skip special tokens; otherwise they are written by name.
///
/// Raises:
///     StopSequenceError: An empty stop string, or one that is both hidden and visible.
///     LimitExceededError: More than 65,536 bytes of stop strings.
///     TokenError: An id without a token.
#[pyclass(name = "StopSequenceDecoder", module = "ffwd.streaming", frozen)]
pub struct PyStopDecoder {
    source: Py<PyAny>,
    decoder: Exclusive<StopDecoder>,
}

impl PyStopDecoder {
    /// Converts an output, and reports a stop that has just happened.
    fn finished(
        &self,
        py: Python<'_>,
        state: MutexGuard<'_, StopDecoder>,
        output: PyResult<(Py<PyAny>, bool)>,
    ) -> PyResult<Py<PyAny>> {
        let (output, stopped) = output?;
        if stopped {
            let is_string = matches!(state.stopped(), Some(Stop::String(_)));
            drop(state);
            stream_events::stop(py, &self.source, is_string);
        }
        Ok(output)
    }
}

#[pymethods]
impl PyStopDecoder {
    #[new]
    #[pyo3(signature = (
        source,
        /,
        *,
        stop_tokens=TokensArgument(Vec::new()),
        stop_strings=Vec::new(),
        visible_stop_tokens=TokensArgument(Vec::new()),
        visible_stop_strings=Vec::new(),
        prompt_ids=TokensArgument(Vec::new()),
        skip_special_tokens=true,
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        source: Source,
        stop_tokens: TokensArgument,
        stop_strings: Vec<Bound<'_, PyString>>,
        visible_stop_tokens: TokensArgument,
        visible_stop_strings: Vec<Bound<'_, PyString>>,
        prompt_ids: TokensArgument,
        skip_special_tokens: bool,
    ) -> PyResult<Self> {
        let options = StopOptions {
            tokens: stop_tokens.0,
            strings: texts(py, "stop", &stop_strings)?,
            visible_tokens: visible_stop_tokens.0,
            visible_strings: texts(py, "visible stop", &visible_stop_strings)?,
        };
        let stops = Stops::new(&source.decoder, skip_special_tokens, options)
            .map_err(|error| errors::stop(py, &error))?;
        let stream = stream_after(py, source.decoder, &prompt_ids, skip_special_tokens)?;
        let decoder = Exclusive::new(StopDecoder::new(stream, Arc::new(stops)));
        Ok(Self { source: source.given, decoder })
    }

    /// Read a token.
    ///
    /// Returns:
    ///     `Text(text)`: text that can be shown. `Held()`: none yet. `StoppedWithText(text)`: the
    ///     last text. `Stopped()`: the text has stopped, here or before. Each has `text`, which may
    ///     be empty, and `stopped`.
    ///
    /// Raises:
    ///     TokenError: An id without a token. The decoder is unchanged.
    ///     StreamInUseError: Another thread is using the decoder.
    #[pyo3(signature = (token_id, /))]
    fn step(&self, py: Python<'_>, token_id: TokenArgument) -> PyResult<Py<PyAny>> {
        let mut state = self.decoder.get()?;
        let before = state.stopped().is_some();
        let output = match state.step(token_id.0) {
            Ok(output) => {
                let stops = matches!(output, Output::Stopped | Output::StoppedWithText(_));
                converted(py, output).map(|output| (output, stops && !before))
            }
            Err(error) => Err(errors::unknown_token(py, error)),
        };
        self.finished(py, state, output)
    }

    /// Read tokens up to the one that stops the text; the output covers all of them.
    ///
    /// `num_tokens` counts those that were read.
    ///
    /// Raises:
    ///     TokenError: An id without a token. The decoder is unchanged.
    ///     StreamInUseError: Another thread is using the decoder.
    #[pyo3(signature = (token_ids, /))]
    fn step_batch(&self, py: Python<'_>, token_ids: TokensArgument) -> PyResult<Py<PyAny>> {
        let mut state = self.decoder.get()?;
        let before = state.stopped().is_some();
        let (stopping, tokens) = (&mut *state, &token_ids.0);
        let output = match detached(py, tokens, || stopping.step_batch(tokens)) {
            Ok(output) => {
                let stops = matches!(output, Output::Stopped | Output::StoppedWithText(_));
                converted(py, output).map(|output| (output, stops && !before))
            }
            Err(error) => Err(errors::unknown_token(py, error)),
        };
        self.finished(py, state, output)
    }

    /// End the text, and return the text that was held back.
    ///
    /// The decoder restarts at the start of a text; after a stop it stays stopped.
    ///
    /// Returns:
    ///     `Text`, or `Held` if nothing was held back. If an incomplete character ends a stop
    ///     string, it stops.
    fn flush(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut state = self.decoder.get()?;
        let before = state.stopped().is_some();
        let incomplete = !before && !state.unfinished().is_empty();
        let output = state.flush();
        let stops = matches!(output, Output::Stopped | Output::StoppedWithText(_));
        let output = converted(py, output).map(|output| (output, stops && !before));
        let output = self.finished(py, state, output);
        if incomplete {
            stream_events::incomplete(py, &self.source);
        }
        output
    }

    /// Return an independent decoder in the same state, for another answer to the same prompt.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let decoder = Exclusive::new(self.decoder.get()?.clone());
        Ok(Self { source: self.source.clone_ref(py), decoder })
    }

    /// Restart at the start of a text with the same stops, and drop the text held back.
    fn reset(&self) -> PyResult<()> {
        self.decoder.get()?.reset();
        Ok(())
    }

    /// Whether the text has stopped.
    #[getter]
    fn stopped(&self) -> PyResult<bool> {
        Ok(self.decoder.get()?.stopped().is_some())
    }

    /// The reason of the stop: the id of a token, a string, or None.
    #[getter]
    fn matched(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.decoder.get()?.stopped() {
            None => Ok(None),
            Some(Stop::Token(token)) => token.0.into_py_any(py).map(Some),
            Some(Stop::String(text)) => text.into_py_any(py).map(Some),
        }
    }

    /// The text that is held back because it may become a stop string.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        Ok(PyString::new(py, self.decoder.get()?.held()))
    }

    /// The bytes of an incomplete character, which are held back.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.decoder.get()?.unfinished()))
    }

    /// The number of tokens read since the start, including the one that stopped the text.
    #[getter]
    fn num_tokens(&self) -> PyResult<usize> {
        Ok(self.decoder.get()?.num_tokens())
    }

    fn __repr__(&self) -> PyResult<String> {
        let decoder = self.decoder.get()?;
        let stopped = if decoder.stopped().is_some() { "True" } else { "False" };
        Ok(format!("StopSequenceDecoder(num_tokens={}, stopped={stopped})", decoder.num_tokens()))
    }
}
