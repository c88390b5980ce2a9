//! The events of a sequence.

use std::sync::Arc;

use ffwd_grammar::SpanKind;

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A part of the grammar, or the free text before its text, which is reasoning.
    Span(SpanKind),
    /// A JSON value, with its pointer.
    Value,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A span begins.
    Begin,
    /// A span continues.
    Delta,
    /// A span has ended.
    End,
    /// The last events, this many, concerned text that was rolled back.
    Retracted(usize),
}

/// An event that has become certain.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Whether the span begins, continues or ends; or how many events are void.
    pub action: Action,
    /// The kind of the span; `None` for [`Action::Retracted`], which has no span.
    pub kind: Option<Kind>,
    /// The number of the span among all spans of the text.
    pub span: usize,
    /// The name of a capture, or of a tool where it is known beforehand.
    pub name: Arc<str>,
    /// The pointer of a JSON value.
    pub pointer: Option<Arc<str>>,
    /// The start in bytes of the text, of a delta or of the whole span. Where a span begins, start
    /// and end are equal.
    pub start: usize,
    /// In bytes of the text, exclusive.
    pub end: usize,
    /// The text of a delta: whole characters.
    pub text: Option<String>,
}

impl Event {
    pub(crate) fn retracted(count: usize) -> Self {
        Self {
            action: Action::Retracted(count),
            kind: None,
            span: 0,
            name: "".into(),
            pointer: None,
            start: 0,
            end: 0,
            text: None,
        }
    }
}

/// A capture that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// As the grammar names the capture; several captures may share a name.
    pub name: Arc<str>,
    /// In bytes of the text.
    pub start: usize,
    /// In bytes of the text, exclusive.
    pub end: usize,
}
