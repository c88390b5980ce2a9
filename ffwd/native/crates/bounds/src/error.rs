//! Errors that any layer may meet: a budget that ran out.

use std::fmt;
use std::time::Duration;

/// Names of the limits that are no fault of the input.
pub(crate) const COMPILE_SECONDS: &str = "compile_seconds";
pub(crate) const CALL_SECONDS: &str = "call_seconds";
pub(crate) const CANCELLATION: &str = "cancellation";
/// Names of the limits that count steps.
pub const COMPILE_STEPS: &str = "compile_steps";
pub(crate) const CALL_STEPS: &str = "call_steps";
/// The limit on the memory of a call.
pub(crate) const WORK_BYTES: &str = "work_bytes";
/// The memory of the system, which is no limit of ours.
pub(crate) const SYSTEM_MEMORY: &str = "system_memory";

/// A budget that ran out. Everything built before stays usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitExceeded {
    /// The limit, as an identifier: a field of `Limits` or a fixed bound of docs/limits.md.
    pub limit: &'static str,
    /// The limit's value: microseconds for a deadline, 0 for a cancellation, the refused bytes for
    /// the system's memory.
    pub maximum: u64,
}

/// Why a call ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// The input needs more than it may have.
    Budget,
    /// Time has run out.
    Deadline,
    /// A cancellation.
    Cancelled,
    /// The system has no more memory to give.
    OutOfMemory,
}

impl LimitExceeded {
    /// A budget or fixed bound of `maximum`, named as in [`LimitExceeded::limit`].
    pub fn new(limit: &'static str, maximum: usize) -> Self {
        debug_assert!(is_identifier(limit), "{limit}");
        Self { limit, maximum: maximum as u64 }
    }

    pub(crate) fn deadline(limit: &'static str, time: Duration) -> Self {
        Self { limit, maximum: u64::try_from(time.as_micros()).unwrap_or(u64::MAX) }
    }

    pub(crate) fn cancelled() -> Self {
        Self { limit: CANCELLATION, maximum: 0 }
    }

    /// The party at fault: the input, the clock, the canceller or the system.
    pub fn breach(&self) -> Breach {
        match self.limit {
            COMPILE_SECONDS | CALL_SECONDS => Breach::Deadline,
            CANCELLATION => Breach::Cancelled,
            SYSTEM_MEMORY => Breach::OutOfMemory,
            _ => Breach::Budget,
        }
    }

    /// The time of a deadline.
    pub fn time(&self) -> Duration {
        Duration::from_micros(self.maximum)
    }

    /// Returns whether the work was stopped for a reason other than the input. Code that treats a
    /// limit as an answer must not treat this as one.
    pub fn is_interruption(&self) -> bool {
        matches!(
            self.limit,
            COMPILE_SECONDS
                | CALL_SECONDS
                | CANCELLATION
                | COMPILE_STEPS
                | CALL_STEPS
                | WORK_BYTES
                | SYSTEM_MEMORY
        )
    }

    /// Returns advice, to be read after the name of the limit.
    fn help(&self) -> &'static str {
        match self.limit {
            "source_bytes" | "nesting" => "make it shorter, or raise this one of ffwd.Limits",
            "expression_nodes" => {
                "use smaller counts, or fewer lookarounds and intersections, or raise this one of \
                 ffwd.Limits"
            }
            "states" | "stacks" => {
                "make the grammar less ambiguous, or raise this one of ffwd.Limits"
            }
            "compile_steps" | "call_steps" => {
                "simplify what takes long, or raise this one of ffwd.Limits"
            }
            WORK_BYTES => {
                "simplify the part that takes this memory, or raise this one of ffwd.Limits"
            }
            _ => "simplify the part that exceeds it",
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase())
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, maximum } = self;
        match self.breach() {
            Breach::Budget => {
                write!(f, "the limit on {limit} ({maximum}) was exceeded: {}", self.help())
            }
            Breach::Deadline => {
                let seconds = self.time().as_secs_f64();
                write!(
                    f,
                    "the deadline {limit} of {seconds} s has passed; the same call may have the \
                     time later, or with more of it in ffwd.Limits"
                )
            }
            Breach::Cancelled => f.write_str("the call was cancelled from outside"),
            Breach::OutOfMemory => write!(
                f,
                "the system had no memory for {maximum} bytes; the same call may have it later"
            ),
        }
    }
}

impl std::error::Error for LimitExceeded {}
