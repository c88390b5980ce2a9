//! Errors that any layer may meet: a budget that ran out.

use thiserror::Error;

/// A budget that ran out. Everything built before stays usable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the limit on {limit} ({maximum}) was exceeded")]
pub struct LimitExceeded {
    /// What is limited, as named in the documentation of the limits.
    pub limit: &'static str,
    pub maximum: usize,
}

impl LimitExceeded {
    pub fn new(limit: &'static str, maximum: usize) -> Self {
        Self { limit, maximum }
    }
}
