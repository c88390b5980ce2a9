//! Events: the starts and ends of a sequence's spans, and their contents (`docs/events.md`).
//!
//! * `readings` follows the text on the automaton, on stacks with marks;
//! * `history` stores the marks of each parse;
//! * `reporter` makes events of the marks that all parses share.

mod event;
mod history;
pub(crate) mod readings;
mod reporter;

pub use event::{Action, Capture, Event, Kind};
pub(crate) use history::Histories;
pub(crate) use reporter::{Page, Reporter};
