//! Marks: the structure of a text besides its bytes.

use ffwd_grammar::NodeId;

/// An event of a parse at one position of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// A part of the grammar begins: a reported part, or a whole JSON value.
    Open(NodeId),
    /// A value within a JSON value that is reported begins.
    ValueBegins,
    /// Before the opening quote.
    KeyBegins,
    /// After the closing quote.
    KeyEnds,
    /// That value ends.
    ValueEnds,
    /// The part of the grammar ends.
    Close(NodeId),
}
