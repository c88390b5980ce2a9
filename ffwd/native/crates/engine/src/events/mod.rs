//! Events: where spans of a text in progress begin and end, and what comes in them
//! (`docs/events.md`).
//!
//! * `readings` follows the text on the automaton, on stacks with marks;
//! * `history` keeps what each reading has said;
//! * `reporter` makes events of what all readings have said.

mod event;
mod history;
pub(crate) mod readings;
mod reporter;

pub use event::{Action, Capture, Event, Kind};
pub(crate) use history::Histories;
pub(crate) use reporter::{Page, Reporter};
