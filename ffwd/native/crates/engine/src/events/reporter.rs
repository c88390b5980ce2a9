//! From marks to events.

use std::sync::Arc;

use super::event::{Action, Capture, Event, Kind};
use super::history::{HistoryId, PlacedMark};
use ffwd_automaton::Mark;
use ffwd_automaton::{Automaton, Result};
use ffwd_grammar::{NodeId, SpanKind, SpanPart};

/// A span that has begun and not ended.
#[derive(Clone, Debug)]
struct Open {
    what: What,
    start: usize,
    /// The end of its reported text.
    reported: usize,
    /// The number of its events; `None` before the first.
    span: Option<usize>,
    kind: Kind,
    name: Arc<str>,
    pointer: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum What {
    /// Free text before the grammar's.
    Free,
    /// A part of the grammar. If only some of its parses report it, this is known at its end.
    Part(NodeId),
    /// A whole JSON value, which is not reported itself: the values in it are.
    Root,
    Value(Container),
}

#[derive(Clone, Debug)]
enum Container {
    Scalar,
    /// How many items have begun.
    Array(usize),
    /// The start of the last key, and the pointer's last part for its value.
    Object(usize, Arc<str>),
}

/// The reported events of a text.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    /// The marks reported so far.
    pub history: HistoryId,
    /// Whether the free text before it has been reported, up to its end.
    pub free: FreeText,
    open: Vec<Open>,
    spans: usize,
    /// How many captures have ended.
    pub captures: usize,
}

/// The end of the reported free text before the grammar's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FreeText {
    #[default]
    Before,
    Within,
    After,
}

/// The output of a reporter.
pub struct Page<'a> {
    pub automaton: &'a Automaton,
    pub text: &'a [u8],
    pub events: Vec<Event>,
    pub captures: &'a mut Vec<Capture>,
}

impl Reporter {
    /// Reports the free text before the grammar's: where it begins, how far it is certain, and
    /// whether it ends there.
    pub fn free_text(&mut self, page: &mut Page<'_>, start: usize, to: usize, ended: bool) {
        if self.free == FreeText::Before {
            self.begin(What::Free, Kind::Span(SpanKind::Reasoning), "".into(), None, start);
            self.announce(page);
            self.free = FreeText::Within;
        }
        if self.free == FreeText::Within && ended {
            // The part of the grammar's text in the prompt may be open.
            if let Some(place) = self.open.iter().position(|open| matches!(open.what, What::Free)) {
                let mut open = self.open.remove(place);
                delta(page, &mut open, to);
                page.events.push(event(&open, Action::End, (open.start, to), None));
            }
            self.free = FreeText::After;
        }
    }

    fn begin(
        &mut self,
        what: What,
        kind: Kind,
        name: Arc<str>,
        pointer: Option<Arc<str>>,
        at: usize,
    ) {
        let open = Open { what, start: at, reported: at, span: None, kind, name, pointer };
        self.open.push(open);
    }

    /// Reports that the innermost span has begun.
    fn announce(&mut self, page: &mut Page<'_>) {
        let Some(open) = self.open.last_mut() else { return };
        let number = self.spans;
        open.span = Some(number);
        self.spans += 1;
        let event = event(open, Action::Begin, (open.start, open.start), None);
        page.events.push(event);
    }

    /// Reports a mark.
    pub fn mark(&mut self, page: &mut Page<'_>, (mark, at): PlacedMark) -> Result<()> {
        match mark {
            Mark::Open(node) => {
                match page.automaton.program().and_then(|program| program.spans.get(&node)) {
                    Some(span) => {
                        let (kind, name) = (Kind::Span(span.kind), span.name.clone());
                        let is_ending = matches!(span.part, SpanPart::Ending { .. });
                        self.begin(What::Part(node), kind, name, None, at);
                        if !is_ending {
                            self.announce(page);
                        }
                    }
                    None => {
                        self.begin(What::Root, Kind::Value, "".into(), None, at);
                    }
                }
            }
            Mark::Close(node) => self.close(page, node, at)?,
            Mark::ValueBegins => {
                let pointer = self.pointer_of_next();
                let container = match page.text.get(at) {
                    Some(b'{') => Container::Object(at, "".into()),
                    Some(b'[') => Container::Array(0),
                    _ => Container::Scalar,
                };
                let part = self.open.iter().rev().find(|open| matches!(open.what, What::Part(_)));
                let name = part.map_or_else(|| "".into(), |part| part.name.clone());
                self.begin(What::Value(container), Kind::Value, name, Some(pointer), at);
                self.announce(page);
            }
            Mark::ValueEnds => self.end(page, at),
            Mark::KeyBegins => {
                if let Some(Container::Object(start, _)) = self.container() {
                    *start = at;
                }
            }
            Mark::KeyEnds => {
                if let Some(Container::Object(start, key)) = self.container() {
                    let written = page.text.get(*start..at).unwrap_or_default();
                    let read: Result<String, _> = serde_json::from_slice(written);
                    let name = read.unwrap_or_else(|_| String::from_utf8_lossy(written).into());
                    *key = name.replace('~', "~0").replace('/', "~1").into();
                }
            }
        }
        Ok(())
    }

    fn container(&mut self) -> Option<&mut Container> {
        match self.open.last_mut() {
            Some(Open { what: What::Value(container), .. }) => Some(container),
            _ => None,
        }
    }

    fn pointer_of_next(&mut self) -> Arc<str> {
        let outer = match self.open.last() {
            Some(Open { what: What::Value(_), pointer: Some(pointer), .. }) => pointer.clone(),
            _ => return "".into(),
        };
        match self.container() {
            Some(Container::Array(count)) => {
                let pointer = format!("{outer}/{count}");
                *count += 1;
                pointer.into()
            }
            Some(Container::Object(_, key)) => format!("{outer}/{key}").into(),
            _ => outer,
        }
    }

    /// A part of the grammar has ended.
    fn close(&mut self, page: &mut Page<'_>, node: NodeId, at: usize) -> Result<()> {
        let Some(open) = self.open.last() else { return Ok(()) };
        if matches!(open.what, What::Root) {
            self.open.pop();
            return Ok(());
        }
        let Some(span) = page.automaton.program().and_then(|program| program.spans.get(&node))
        else {
            return Ok(());
        };
        let mut end = at;
        match &span.part {
            SpanPart::Whole => {}
            SpanPart::Body { body, ending } => {
                let text = page.text.get(open.start..at).unwrap_or_default();
                if let Some(from) = page.automaton.marked().ending_of(text, body, ending)? {
                    end = open.start + from;
                }
            }
            SpanPart::Ending { body, ending } => {
                let text = page.text.get(open.start..at).unwrap_or_default();
                let from = page.automaton.marked().ending_of(text, body, ending)?.unwrap_or(0);
                if let Some(open) = self.open.last_mut() {
                    open.start += from;
                    open.reported = open.start;
                }
                self.announce(page);
            }
        }
        if let (SpanKind::Capture, Some(open)) = (span.kind, self.open.last()) {
            page.captures.push(Capture { name: span.name.clone(), start: open.start, end });
            self.captures = page.captures.len();
        }
        self.end(page, end);
        Ok(())
    }

    /// The innermost span has ended.
    fn end(&mut self, page: &mut Page<'_>, at: usize) {
        let Some(mut open) = self.open.pop() else { return };
        delta(page, &mut open, at);
        page.events.push(event(&open, Action::End, (open.start, at), None));
    }

    /// Reports the certain text of the open spans, up to a position.
    pub fn deltas(&mut self, page: &mut Page<'_>, to: usize) {
        let to = whole_characters(page.text, to);
        for open in &mut self.open {
            let is_partial = match open.what {
                What::Part(node) => page
                    .automaton
                    .program()
                    .and_then(|program| program.spans.get(&node))
                    .is_some_and(|span| span.part != SpanPart::Whole),
                _ => false,
            };
            if !is_partial {
                delta(page, open, to);
            }
        }
    }
}

/// Whether the text of a span is reported; otherwise the spans in it report theirs.
fn has_text(open: &Open) -> bool {
    match open.what {
        What::Root | What::Value(Container::Array(_) | Container::Object(..)) => false,
        What::Free | What::Part(_) | What::Value(Container::Scalar) => {
            open.kind != Kind::Span(SpanKind::ToolCall)
        }
    }
}

fn event(open: &Open, action: Action, (start, end): (usize, usize), text: Option<String>) -> Event {
    Event {
        action,
        kind: Some(open.kind),
        span: open.span.unwrap_or_default(),
        name: open.name.clone(),
        pointer: open.pointer.clone(),
        start,
        end,
        text,
    }
}

fn delta(page: &mut Page<'_>, open: &mut Open, to: usize) {
    if to <= open.reported || !has_text(open) {
        return;
    }
    let text = page.text.get(open.reported..to).unwrap_or_default();
    let text = String::from_utf8_lossy(text).into_owned();
    page.events.push(event(open, Action::Delta, (open.reported, to), Some(text)));
    open.reported = to;
}

/// The last character boundary up to a position.
fn whole_characters(text: &[u8], to: usize) -> usize {
    let text = &text[..to.min(text.len())];
    let tail = &text[text.len().saturating_sub(4)..];
    // The first byte of the last character, and how many it has.
    let first = tail.iter().rposition(|byte| byte & 0xC0 != 0x80);
    let Some(first) = first else { return text.len() };
    let length = match tail[first] {
        0xF0..=0xF7 => 4,
        0xE0..=0xEF => 3,
        0xC0..=0xDF => 2,
        _ => 1,
    };
    let come = tail.len() - first;
    if come < length {
        text.len() - come
    } else {
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn no_character_is_split() {
        let text = "aé€𝄞z".as_bytes();
        let starts: Vec<usize> = "aé€𝄞z".char_indices().map(|(at, _)| at).chain([11]).collect();
        for to in 0..=text.len() {
            let expected = starts.iter().copied().filter(|&start| start <= to).max();
            assert_eq!(Some(whole_characters(text, to)), expected, "{to}");
        }
        assert_eq!(whole_characters(&[0x80, 0x80, 0x80, 0x80], 4), 4);
    }
}
