//! The conversion of the core's errors to Python exceptions.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{create_exception, PyTypeInfo};

use ffwd_automaton::EngineError;
use ffwd_bounds::error::{Breach, LimitExceeded};
use ffwd_engine::engine::CompileError;
use ffwd_engine::fast_forward::FastForwardError;
use ffwd_engine::matcher::MatcherError;
use ffwd_engine::saved::SavedError;
use ffwd_grammar::GrammarErrorKind;
use ffwd_json_schema::SchemaErrorKind;
use ffwd_regular::regex::{PatternError, PatternErrorKind};
use ffwd_tokenizer::streaming::{StopError, UnknownToken};
use ffwd_tokenizer::tokenizer::{self, TokenizerError};

create_exception!(ffwd._native, FfwdError, PyValueError, "The base of ffwd's errors.");
create_exception!(
    ffwd._native,
    VocabularyError,
    FfwdError,
    "An unusable vocabulary; the message names the token ids."
);
create_exception!(ffwd._native, GrammarError, FfwdError, "A regular expression or grammar that cannot be parsed or compiled.\n\n`line` and `column` count from 1, in characters.");
create_exception!(
    ffwd._native,
    SchemaError,
    FfwdError,
    "An error in a JSON Schema, at the JSON pointer `pointer`.\n\n\
     `line` and `column` locate the schema in the text of a grammar, from 1, in characters; None \
     outside such a text."
);
create_exception!(
    ffwd._native,
    InvalidSchemaError,
    SchemaError,
    "A schema that is not JSON, or has a keyword with an invalid value."
);
create_exception!(
    ffwd._native,
    UnsupportedSchemaError,
    SchemaError,
    "An unsupported keyword, named by `keyword`."
);
create_exception!(
    ffwd._native,
    UnsatisfiableSchemaError,
    SchemaError,
    "A schema without a valid JSON value."
);
create_exception!(
    ffwd._native,
    LimitExceededError,
    FfwdError,
    "A budget ran out. Everything else works on, and nothing that was asked of has changed.\n\n\
     `limit` names it: a field of `ffwd.Limits` or a fixed bound of docs/limits.md. `maximum` is its \
     value. `pointer` is the place in the schema; `line` and `column` are those in the text of a \
     grammar, from 1, in characters; empty and None where no place is known. `is_temporary`: it says \
     nothing of the input, and the same call may succeed later. `rows` is what `fill_bitmasks` has \
     not written, and empty elsewhere."
);
create_exception!(
    ffwd._native,
    DeadlineExceededError,
    LimitExceededError,
    "A call that took longer than `maximum` seconds. `is_temporary` is True."
);
create_exception!(
    ffwd._native,
    CancellationError,
    LimitExceededError,
    "A call that `ffwd.Cancellation.cancel` cancelled. `is_temporary` is True."
);
create_exception!(
    ffwd._native,
    TokenError,
    FfwdError,
    "A token id outside the vocabulary, or a token after the end; `token` is the id."
);
create_exception!(
    ffwd._native,
    TextError,
    FfwdError,
    "A text that cannot be encoded as requested; `byte` is the offset, if known."
);
create_exception!(
    ffwd._native,
    BudgetError,
    FfwdError,
    "A `max_tokens` that is too small for every output; `needed` tokens suffice."
);
create_exception!(
    ffwd._native,
    BitmaskError,
    FfwdError,
    "A bitmask of the wrong type, shape or layout, or a row out of range."
);

create_exception!(
    ffwd._native,
    StopSequenceError,
    FfwdError,
    "An unusable stop string; `index` is its position in its list."
);
create_exception!(
    ffwd._native,
    SerializationError,
    FfwdError,
    "Bytes that cannot be loaded, or an object that cannot be saved; `reason` is one word."
);
create_exception!(
    ffwd._native,
    StreamInUseError,
    FfwdError,
    "A stream that two threads use at the same time."
);

/// Values of the attributes on exceptions that Python code raises itself.
pub fn set_defaults(py: Python<'_>) -> PyResult<()> {
    let schema = SchemaError::type_object(py);
    schema.setattr("pointer", "")?;
    schema.setattr("line", py.None())?;
    schema.setattr("column", py.None())?;
    UnsupportedSchemaError::type_object(py).setattr("keyword", "")?;
    let grammar = GrammarError::type_object(py);
    grammar.setattr("line", 1)?;
    grammar.setattr("column", 1)?;
    let limit = LimitExceededError::type_object(py);
    limit.setattr("limit", "")?;
    limit.setattr("maximum", 0)?;
    limit.setattr("pointer", "")?;
    limit.setattr("line", py.None())?;
    limit.setattr("column", py.None())?;
    limit.setattr("is_temporary", false)?;
    limit.setattr("rows", PyTuple::empty(py))?;
    DeadlineExceededError::type_object(py).setattr("is_temporary", true)?;
    CancellationError::type_object(py).setattr("is_temporary", true)?;
    let budget = BudgetError::type_object(py);
    budget.setattr("needed", 0)?;
    budget.setattr("max_tokens", 0)?;
    TextError::type_object(py).setattr("byte", py.None())?;
    SerializationError::type_object(py).setattr("reason", "")?;
    StopSequenceError::type_object(py).setattr("index", py.None())?;
    TokenError::type_object(py).setattr("token", -1)
}

fn with<'py, V: IntoPyObject<'py>>(py: Python<'py>, error: PyErr, name: &str, value: V) -> PyErr {
    match error.value(py).setattr(name, value) {
        Ok(()) => error,
        Err(other) => other,
    }
}

pub fn limit(py: Python<'_>, error: &LimitExceeded) -> PyErr {
    limit_saying(py, error, error.to_string())
}

fn limit_saying(py: Python<'_>, error: &LimitExceeded, message: String) -> PyErr {
    let named = |raised| with(py, raised, "limit", error.limit);
    match error.breach() {
        Breach::Budget => {
            with(py, named(LimitExceededError::new_err(message)), "maximum", error.maximum)
        }
        Breach::Deadline => {
            let seconds = error.time().as_secs_f64();
            with(py, named(DeadlineExceededError::new_err(message)), "maximum", seconds)
        }
        Breach::Cancelled => named(CancellationError::new_err(message)),
        Breach::OutOfMemory => {
            let raised = named(LimitExceededError::new_err(message));
            with(py, with(py, raised, "maximum", error.maximum), "is_temporary", true)
        }
    }
}

pub fn schema(py: Python<'_>, error: &ffwd_json_schema::SchemaError) -> PyErr {
    schema_saying(py, error, error.to_string())
}

fn schema_saying(py: Python<'_>, error: &ffwd_json_schema::SchemaError, message: String) -> PyErr {
    let raised = match &error.kind {
        SchemaErrorKind::Invalid { .. } => InvalidSchemaError::new_err(message),
        SchemaErrorKind::Unsupported { keyword } => {
            with(py, UnsupportedSchemaError::new_err(message), "keyword", keyword)
        }
        SchemaErrorKind::Unsatisfiable => UnsatisfiableSchemaError::new_err(message),
        &SchemaErrorKind::Limit { limit, maximum } => {
            limit_saying(py, &LimitExceeded { limit, maximum }, message)
        }
    };
    with(py, raised, "pointer", &error.pointer)
}

pub fn engine(py: Python<'_>, error: &EngineError) -> PyErr {
    match error {
        EngineError::Limit(error) => limit(py, error),
        EngineError::Schema(error) => schema(py, error),
    }
}

/// Converts the error of a batch of masks; these rows were not written.
pub fn rows(py: Python<'_>, error: &EngineError, rows: &[usize]) -> PyErr {
    let raised = engine(py, error);
    match PyTuple::new(py, rows) {
        Ok(rows) => with(py, raised, "rows", rows),
        Err(other) => other,
    }
}

pub fn compile(py: Python<'_>, error: &CompileError) -> PyErr {
    match error {
        CompileError::Pattern { line, column, .. } => {
            at_place(py, GrammarError::new_err(error.to_string()), (*line, *column))
        }
        CompileError::Engine(error) => engine(py, error),
        CompileError::Grammar(error) => grammar(py, error),
        CompileError::Schema { error: inner, excerpt, .. } => {
            let raised = schema_saying(py, inner, error.to_string());
            at_place(py, raised, (excerpt.line, excerpt.column))
        }
        CompileError::Unsatisfiable(_) => GrammarError::new_err(error.to_string()),
    }
}

fn at_place(py: Python<'_>, error: PyErr, (line, column): (usize, usize)) -> PyErr {
    let error = with(py, error, "line", line);
    with(py, error, "column", column)
}

/// Converts the error of a grammar. The message shows the line with a caret if the position is
/// known.
pub fn grammar(py: Python<'_>, error: &ffwd_grammar::GrammarError) -> PyErr {
    match &error.kind {
        GrammarErrorKind::Limit(limit) => {
            let raised = limit_saying(py, limit, error.to_string());
            match &error.place {
                Some(_) => at_place(py, raised, (error.line(), error.column())),
                None => raised,
            }
        }
        _ => {
            let place = (error.line(), error.column());
            at_place(py, GrammarError::new_err(error.to_string()), place)
        }
    }
}

/// Converts the error of a pattern.
pub fn pattern(py: Python<'_>, text: &str, error: &PatternError) -> PyErr {
    let kind = match error.kind {
        PatternErrorKind::TooLarge(passed) => GrammarErrorKind::Limit(passed),
        _ => GrammarErrorKind::Pattern,
    };
    let byte = text.char_indices().nth(error.offset).map_or(text.len(), |(byte, _)| byte);
    let message = &*error.message;
    grammar(py, &ffwd_grammar::GrammarError::at("regular expression", text, byte, kind, message))
}

pub fn matcher(py: Python<'_>, error: &MatcherError) -> PyErr {
    match error {
        MatcherError::OutOfRange { token, .. } | MatcherError::AfterEnd { token, .. } => {
            with(py, TokenError::new_err(error.to_string()), "token", token.0)
        }
        MatcherError::BadClose(token) | MatcherError::BadControl(token) => {
            with(py, TokenError::new_err(error.to_string()), "token", token.0)
        }
        MatcherError::Prefill { byte } => {
            with(py, TextError::new_err(error.to_string()), "byte", *byte)
        }
        MatcherError::EmptyClose => TextError::new_err(error.to_string()),
        MatcherError::Budget { needed, max_tokens } => {
            let raised = with(py, BudgetError::new_err(error.to_string()), "needed", *needed);
            with(py, raised, "max_tokens", *max_tokens)
        }
        MatcherError::Unreported { .. } => GrammarError::new_err(error.to_string()),
        MatcherError::Part { part, needed, max_tokens } => {
            let raised = with(py, BudgetError::new_err(error.to_string()), "needed", *needed);
            let raised = with(py, raised, "max_tokens", *max_tokens);
            match part.line_and_column() {
                Some(place) => at_place(py, raised, place),
                None => raised,
            }
        }
        MatcherError::Ends { part, .. } => {
            let raised = GrammarError::new_err(error.to_string());
            match part.line_and_column() {
                Some(place) => at_place(py, raised, place),
                None => raised,
            }
        }
        MatcherError::RollbackTooFar { .. } => PyIndexError::new_err(error.to_string()),
        MatcherError::Engine(error) => engine(py, error),
    }
}

pub fn fast_forward(py: Python<'_>, error: &FastForwardError) -> PyErr {
    match error {
        FastForwardError::Engine(error) => engine(py, error),
        FastForwardError::Encode(_) | FastForwardError::NoEncoder | FastForwardError::NotExact => {
            VocabularyError::new_err(error.to_string())
        }
    }
}

pub fn tokenizer(error: &TokenizerError) -> PyErr {
    VocabularyError::new_err(error.to_string())
}

pub fn text(py: Python<'_>, error: &tokenizer::TextError) -> PyErr {
    if let tokenizer::TextError::UnknownToken { token, .. } = error {
        return with(py, TokenError::new_err(error.to_string()), "token", token.0);
    }
    with(py, TextError::new_err(error.to_string()), "byte", error.byte())
}

pub fn unknown_token(py: Python<'_>, error: UnknownToken) -> PyErr {
    with(py, TokenError::new_err(error.to_string()), "token", error.token().0)
}

/// The error for an integer that is negative or far too large for a token id.
pub fn not_a_token(py: Python<'_>, id: &Bound<'_, PyAny>) -> PyErr {
    with(py, TokenError::new_err(format!("no token has the id {id}")), "token", id)
}

/// Converts an error of saving or loading.
pub fn saved(py: Python<'_>, error: &SavedError) -> PyErr {
    match error {
        SavedError::Limit(error) => limit(py, error),
        _ => with(py, SerializationError::new_err(error.to_string()), "reason", error.reason()),
    }
}

pub fn stop(py: Python<'_>, error: &StopError) -> PyErr {
    match error {
        StopError::Empty { index, .. }
        | StopError::LoneSurrogate { index, .. }
        | StopError::HiddenAndVisible { index, .. } => {
            with(py, StopSequenceError::new_err(error.to_string()), "index", *index)
        }
        StopError::TokenHiddenAndVisible { .. } => StopSequenceError::new_err(error.to_string()),
        StopError::Token(error) => unknown_token(py, *error),
        StopError::Limit(error) => limit(py, error),
    }
}
