//! The data of `Matcher.events` and `Matcher.captures`; `ffwd._events` makes classes of it.

use pyo3::prelude::*;

use ffwd_engine::events::{Action, Capture, Event, Kind};
use ffwd_grammar::SpanKind;

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Value => "value",
        Kind::Span(SpanKind::Capture) => "capture",
        Kind::Span(SpanKind::Reasoning) => "reasoning",
        Kind::Span(SpanKind::Content) => "content",
        Kind::Span(SpanKind::ToolCall) => "tool_call",
        Kind::Span(SpanKind::ToolName) => "tool_name",
        Kind::Span(SpanKind::ToolArguments) => "tool_arguments",
        Kind::Span(SpanKind::Json) => "json",
    }
}

pub fn listed<'py>(py: Python<'py>, events: &[Event]) -> PyResult<Bound<'py, PyAny>> {
    let data = events.iter().map(|event| {
        let (action, retracted) = match event.action {
            Action::Begin => ("begin", 0),
            Action::Delta => ("delta", 0),
            Action::End => ("end", 0),
            Action::Retracted(count) => ("retracted", count),
        };
        let kind = event.kind.map(kind_name);
        let text = event.text.as_deref();
        let pointer = event.pointer.as_deref();
        (action, kind, event.span, &*event.name, pointer, event.start, event.end, text, retracted)
    });
    let data: Vec<_> = data.collect();
    py.import("ffwd._events")?.getattr("events")?.call1((data,))
}

pub fn captured(py: Python<'_>, captures: Vec<(Capture, Vec<u8>)>) -> PyResult<Bound<'_, PyAny>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let data = captures.iter().map(|(capture, bytes)| (capture.name.to_string(), text(bytes)));
    let data: Vec<_> = data.collect();
    py.import("ffwd._events")?.getattr("captures")?.call1((data,))
}
