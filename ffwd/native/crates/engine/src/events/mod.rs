//! Events: the starts and ends of a sequence's spans, and their contents (`docs/events.md`).
//!
//! * [`readings`] follows the text on the automaton, on stacks with marks;
//! * [`history`] stores the marks of each parse;
//! * [`reporter`] makes events of the marks that all parses share.

pub mod event;
pub mod history;
pub mod readings;
pub mod reporter;

pub use event::{Action, Capture, Event, Kind};
pub use history::{Histories, HistoryId};
pub use reporter::{Page, Reporter};
