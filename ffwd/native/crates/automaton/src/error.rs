//! Errors of a growing automaton.

use thiserror::Error;

use ffwd_bounds::error::LimitExceeded;
use ffwd_json_schema::SchemaError;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum EngineError {
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl EngineError {
    /// The budget that ran out, if that is what it is.
    pub fn exceeded(&self) -> Option<LimitExceeded> {
        match self {
            Self::Limit(error) => Some(*error),
            Self::Schema(error) => error.exceeded(),
        }
    }
}
