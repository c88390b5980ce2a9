//! Events: where spans of a text in progress begin and end, and what comes in them
//! (`docs/events.md`).
//!
//! * [`readings`] follows the text on the automaton, on stacks with marks;
//! * [`history`] keeps what each reading has said;
//! * [`reporter`] makes events of what all readings have said.

pub mod event;
pub mod history;
pub mod readings;
pub mod reporter;

pub use event::{Action, Capture, Event, Kind};
pub use history::{Histories, HistoryId};
pub use reporter::{Page, Reporter};
