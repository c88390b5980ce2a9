//! The bounds on the work of one call: steps, time, memory, a cancellation, and forks of the
//! process.
//!
//! The idea: a limit belongs to a call and not to the data that the call builds. [`meter::Meter`]
//! runs a closure on the current thread. Loops inside of it, in any crate, call [`meter::charge`],
//! which is a decrement of a thread-local counter. Once the meter has run out, every further charge
//! fails with the same [`error::LimitExceeded`]. The call returns that error, and shared data stays
//! usable for other calls.
//!
//! Start with these:
//!
//! * [`limits::Limits`]: the budgets of a grammar and of each call on it
//! * [`meter::Meter`]: what one compilation or one call may use, and has used
//! * [`error::LimitExceeded`]: which limit was passed; [`error::Breach`] says who is at fault
//! * [`meter::Cancellation`]: a flag with which one thread ends calls on another
//! * [`meter::heap::Metered`]: an allocator that counts the memory of the running call
//! * [`section`]: work that a fork of the process waits for
//!
//! This crate does not know what is built or parsed: a step is whatever its callers charge for.
//! It takes no lock and starts no thread. Without a meter on the thread, nothing is limited, and
//! without the allocator, memory is not counted.
//!
//! ```
//! use ffwd_bounds::error::{Breach, LimitExceeded};
//! use ffwd_bounds::limits::Limits;
//! use ffwd_bounds::meter::{charge, Meter};
//!
//! fn sum(numbers: &[u64]) -> Result<u64, LimitExceeded> {
//!     numbers.iter().try_fold(0, |total, number| {
//!         charge(1)?;
//!         Ok(total + number)
//!     })
//! }
//!
//! let limits = Limits { call_steps: 3, ..Limits::NONE };
//! assert_eq!(Meter::calling(&limits, None).run(|| sum(&[1, 2, 3])), Ok(6));
//!
//! let error = Meter::calling(&limits, None).run(|| sum(&[1, 2, 3, 4])).unwrap_err();
//! assert_eq!((error.limit, error.maximum), ("call_steps", 3));
//! assert_eq!(error.breach(), Breach::Budget);
//!
//! // This thread has no meter here.
//! assert_eq!(sum(&[1; 1000]), Ok(1000));
//! ```

#![deny(missing_docs)]

pub mod error;
pub mod limits;
pub mod meter;
pub mod section;
