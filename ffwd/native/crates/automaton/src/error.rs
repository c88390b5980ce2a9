//! Errors of a growing automaton.

use thiserror::Error;

use ffwd_bounds::error::LimitExceeded;
use ffwd_json_schema::SchemaError;

/// Why an automaton cannot be built, or cannot grow further.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EngineError {
    /// A limit is passed, a deadline among them.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A schema is at fault. Some are read only when a text reaches them.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// What a growing automaton returns.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

impl EngineError {
    /// The budget that ran out, if the error is a limit.
    pub fn exceeded(&self) -> Option<LimitExceeded> {
        match self {
            Self::Limit(error) => Some(*error),
            Self::Schema(error) => error.exceeded(),
        }
    }
}
