//! Events of a sequence; see [`crate::events`].
//!
//! Accepting tokens does no work for them: a request for events follows the sequence up to its last
//! token.

use std::collections::VecDeque;

use super::preamble::{Close, Stage, Step};
use super::{Matcher, MatcherError};
use crate::engine::Generation;
use crate::events::readings::{self, Readings};
use crate::events::{Capture, Event, Histories, Page, Reporter};
use ffwd_automaton::{EngineError, Result};
use ffwd_bounds::error::LimitExceeded;
use ffwd_tokenizer::vocabulary::TokenId;

/// The number of tokens between stored parses, and the number of calls whose reports are stored.
const KEPT: usize = 64;

/// The parse of a text up to a token.
#[derive(Clone, Debug)]
struct EventPosition {
    tokens: usize,
    /// How many bytes it has.
    length: usize,
    /// The parses of the grammar's text; `None` before its first byte.
    readings: Option<Readings>,
    /// The stage of the free text before it.
    stage: Stage,
    /// How many bytes of the free text are certain, together with those before it.
    free: usize,
}

/// The state of the reports after a call.
#[derive(Clone, Debug)]
struct Call {
    tokens: usize,
    events: usize,
    /// Whether the end of the text was reported there.
    finished: bool,
    reporter: Reporter,
}

/// The spans of a sequence so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracker {
    /// The generation of the grammar that the parses belong to.
    generation: u32,
    histories: Histories,
    /// Including its part in the prompt.
    text: Vec<u8>,
    /// After the last tokens.
    places: VecDeque<EventPosition>,
    calls: VecDeque<Call>,
    captures: Vec<Capture>,
    /// The fewest tokens since the last call, if some were removed.
    left: Option<usize>,
    /// How many events have been reported, and not retracted.
    events: usize,
}

impl Tracker {
    /// Truncates the sequence to its first tokens.
    pub fn shorten(&mut self, length: usize) {
        self.left = Some(self.left.map_or(length, |left| left.min(length)));
        while self.places.back().is_some_and(|place| place.tokens > length) {
            self.places.pop_back();
        }
    }

    pub fn memory_bytes(&self) -> usize {
        let readings = self
            .places
            .iter()
            .map(|place| place.readings.as_ref().map_or(0, |readings| readings.capacity() * 64));
        std::mem::size_of::<Self>()
            + self.histories.memory_bytes()
            + self.text.capacity()
            + readings.sum::<usize>()
            + self.places.capacity() * std::mem::size_of::<EventPosition>()
            + self.calls.capacity() * std::mem::size_of::<Call>()
            + self.captures.capacity() * std::mem::size_of::<Capture>()
    }

    /// Returns the state of the reports after the last call.
    fn reporter(&self) -> Reporter {
        self.calls.back().map_or_else(Reporter::default, |call| call.reporter.clone())
    }

    /// Whether the end of the text was reported.
    fn is_finished(&self) -> bool {
        self.calls.back().is_some_and(|call| call.finished)
    }

    /// Returns to the last call whose tokens are all still accepted, and returns the number of
    /// events to retract. The sequence has this many tokens.
    fn take_back(&mut self, tokens: usize) -> usize {
        let left = self.left.take().unwrap_or(tokens);
        let is_gone = |call: &Call| call.tokens > left || call.finished && call.tokens < tokens;
        while self.calls.back().is_some_and(is_gone) {
            self.calls.pop_back();
        }
        let (events, captures) =
            self.calls.back().map_or((0, 0), |call| (call.events, call.reporter.captures));
        self.captures.truncate(captures);
        std::mem::replace(&mut self.events, events) - events
    }
}

impl Matcher {
    /// Returns the events of spans that became certain since the last call. With `finish` the text
    /// ends here, as after an end token.
    ///
    /// # Errors
    /// The text has too many parses with different spans, or a limit of the grammar is exceeded.
    /// The next call starts again.
    pub fn events(&mut self, finish: bool) -> Result<Vec<Event>, MatcherError> {
        let mut tracker = self.events.take().unwrap_or_default();
        let reported = tracker.events;
        let retracted = tracker.take_back(self.tokens.len());
        let mut reporter = tracker.reporter();
        let finished = finish || self.terminated;
        let mut events = match self.track(&mut tracker, &mut reporter, finished) {
            Ok(events) => events,
            Err(error) => {
                self.begin_anew(reported);
                return Err(error);
            }
        };
        tracker.events += events.len();
        if tracker.calls.len() == KEPT {
            tracker.calls.pop_front();
        }
        let (tokens, count) = (self.tokens.len(), tracker.events);
        let finished = finished || tracker.is_finished();
        tracker.calls.push_back(Call { tokens, events: count, finished, reporter });
        if retracted > 0 {
            events.insert(0, Event::retracted(retracted));
        }
        self.events = Some(tracker);
        Ok(events)
    }

    /// The captures that have ended, with their texts; see [`Self::events`], of which it changes
    /// nothing.
    ///
    /// # Errors
    /// As [`Self::events`].
    pub fn captures(&mut self, finish: bool) -> Result<Vec<(Capture, Vec<u8>)>, MatcherError> {
        let mut tracker = self.events.take().unwrap_or_default();
        // Rolled-back events are yet to be retracted.
        let (calls, left) = (tracker.calls.clone(), tracker.left);
        let (captures, events) = (tracker.captures.clone(), tracker.events);
        tracker.take_back(self.tokens.len());
        let mut reporter = tracker.reporter();
        if let Err(error) = self.track(&mut tracker, &mut reporter, finish || self.terminated) {
            self.begin_anew(events);
            return Err(error);
        }
        let text = &tracker.text;
        let text = |capture: &Capture| text.get(capture.start..capture.end).unwrap_or_default();
        let found = tracker.captures.iter().map(|one| (one.clone(), text(one).to_vec())).collect();
        self.events = Some(Box::new(Tracker { calls, left, captures, events, ..*tracker }));
        Ok(found)
    }

    /// Marks all reported events as retracted, and the text as unread.
    fn begin_anew(&mut self, events: usize) {
        self.events = Some(Box::new(Tracker { events, ..Tracker::default() }));
    }

    fn track(
        &self,
        tracker: &mut Tracker,
        reporter: &mut Reporter,
        finish: bool,
    ) -> Result<Vec<Event>, MatcherError> {
        let generation = self.compiled.generation();
        if let Some(span) = generation.automaton.program().and_then(|program| program.unreported())
        {
            return Err(MatcherError::Unreported { name: span.name.clone() });
        }
        if tracker.generation != generation.number {
            tracker.places.clear();
            tracker.generation = generation.number;
        }
        let mut place = match tracker.places.back() {
            Some(place) => place.clone(),
            None => {
                let place = self.first_place(&generation, tracker)?;
                tracker.places.push_back(place.clone());
                place
            }
        };
        tracker.text.truncate(place.length);
        for position in place.tokens..self.tokens.len() {
            self.follow(&generation, tracker, &mut place, position)?;
            if tracker.places.len() == KEPT {
                tracker.places.pop_front();
            }
            tracker.places.push_back(place.clone());
        }
        let events = self.report(&generation, tracker, reporter, &place, finish)?;
        self.compiled.settle(&generation);
        Ok(events)
    }

    /// Before any token.
    fn first_place(
        &self,
        generation: &Generation,
        tracker: &mut Tracker,
    ) -> Result<EventPosition, MatcherError> {
        let (automaton, histories) = (&generation.automaton, &mut tracker.histories);
        tracker.text = self.prefill.to_vec();
        let readings = match self.prefill.is_empty() {
            true => None,
            false => {
                let start = readings::start(automaton, histories, Default::default(), 0)?;
                let read = readings::read(automaton, histories, &start, &self.prefill, 0)?;
                Some(readings::after_prompt(automaton, read)?)
            }
        };
        let stage = self.preamble.as_ref().map_or(Stage::Grammar, |preamble| preamble.start());
        let length = self.prefill.len();
        Ok(EventPosition { tokens: 0, length, readings, stage, free: length })
    }

    /// Reads one more token.
    fn follow(
        &self,
        generation: &Generation,
        tracker: &mut Tracker,
        place: &mut EventPosition,
        position: usize,
    ) -> Result<(), MatcherError> {
        let vocabulary = self.compiled.engine.vocabulary();
        let token = self.tokens[position];
        let text = vocabulary.text(token);
        place.tokens = position + 1;
        place.length += text.len();
        tracker.text.extend_from_slice(text);
        if let (Stage::Free(_), Some(preamble)) = (place.stage, &self.preamble) {
            let close = self.preamble_close();
            match preamble.step(place.stage, token) {
                Step::Begins(rest) => {
                    place.free = place.length - rest - self.closing_bytes(close, position, None);
                    place.stage = Stage::Grammar;
                    let from = place.length - rest;
                    return self.read_grammar(generation, tracker, place, position, from);
                }
                Step::Stays(stage) => {
                    place.stage = stage;
                    let Stage::Free(matched) = stage else { return Ok(()) };
                    let held = self.closing_bytes(close, position, Some(matched as usize));
                    place.free = place.length - held;
                }
                Step::Refused => {}
            }
            return Ok(());
        }
        let from = place.length - text.len();
        self.read_grammar(generation, tracker, place, position, from)
    }

    fn preamble_close(&self) -> Option<&Close> {
        let opening = self.began.as_ref()?.opening.as_ref()?;
        Some(&opening.close)
    }

    /// Returns how many bytes of the last tokens close the free text: this many of them, or all.
    fn closing_bytes(&self, close: Option<&Close>, last: usize, count: Option<usize>) -> usize {
        match close {
            None => 0,
            Some(Close::Text(text)) => count.unwrap_or(text.len()),
            Some(Close::Tokens(tokens)) => {
                let count = count.unwrap_or(tokens.len());
                let first = (last + 1).saturating_sub(count);
                let vocabulary = self.compiled.engine.vocabulary();
                self.tokens[first..=last].iter().map(|&token| vocabulary.text(token).len()).sum()
            }
        }
    }

    /// Reads the bytes that the token at a position adds to the grammar's text, from an offset of
    /// the text on.
    fn read_grammar(
        &self,
        generation: &Generation,
        tracker: &mut Tracker,
        place: &mut EventPosition,
        position: usize,
        from: usize,
    ) -> Result<(), MatcherError> {
        let token = self.tokens[position];
        let is_end = self.compiled.engine.vocabulary().is_eos(token);
        // The text or the prefix already contains the text that a token repeats.
        let again = self.prefix_part(position, place.length - from);
        tracker.text.drain(from..from + again);
        place.length -= again;
        if from == place.length && (is_end || !self.may_be_whole(generation, position, token)) {
            return Ok(());
        }
        self.begin_grammar(generation, tracker, place, from)?;
        let Some(before) = &place.readings else { return Ok(()) };
        let Tracker { histories, text, .. } = tracker;
        let text = &text[from..place.length];
        let automaton = &generation.automaton;
        let next = match self.may_be_whole(generation, position, token) {
            true => readings::read_token(automaton, histories, before, token.0, text, from)?,
            false => readings::read(automaton, histories, before, text, from)?,
        };
        if next.is_empty() {
            return Err(unread(token, position).into());
        }
        let next = readings::settle_limits(automaton, histories, next, position, place.length)?;
        if next.is_empty() {
            return Err(unread(token, position).into());
        }
        place.readings = Some(next);
        Ok(())
    }

    fn begin_grammar(
        &self,
        generation: &Generation,
        tracker: &mut Tracker,
        place: &mut EventPosition,
        at: usize,
    ) -> Result<()> {
        if place.readings.is_none() {
            let (automaton, histories) = (&generation.automaton, &mut tracker.histories);
            place.readings = Some(readings::start(automaton, histories, Default::default(), at)?);
        }
        Ok(())
    }

    /// Reports what has become certain.
    fn report(
        &self,
        generation: &Generation,
        tracker: &mut Tracker,
        reporter: &mut Reporter,
        place: &EventPosition,
        finish: bool,
    ) -> Result<Vec<Event>, MatcherError> {
        let automaton = &generation.automaton;
        let was_finished = tracker.is_finished();
        let Tracker { histories, text, captures, .. } = tracker;
        let mut page = Page { automaton, text, events: Vec::new(), captures };
        if self.preamble.is_some() {
            let ended = place.stage == Stage::Grammar;
            reporter.free_text(&mut page, self.prefill.len(), place.free, ended);
        }
        let mut certain = if place.stage == Stage::Grammar { place.length } else { place.free };
        let mut history = reporter.history;
        if let Some(all) = &place.readings {
            let ended = match (finish || was_finished) && place.stage == Stage::Grammar {
                true => readings::end(automaton, histories, all, place.length)?,
                false => None,
            };
            history = match (ended, &all[..]) {
                (Some(ended), _) => ended,
                (None, []) => history,
                (None, [first, others @ ..]) => {
                    let common = others.iter().fold(first.history, |common, reading| {
                        histories.common(common, reading.history)
                    });
                    for reading in all {
                        if let Some((_, at)) = histories.first_since(common, reading.history) {
                            certain = certain.min(at);
                        }
                    }
                    common
                }
            };
        }
        for placed in histories.since(reporter.history, history) {
            reporter.mark(&mut page, placed)?;
        }
        reporter.history = history;
        reporter.deltas(&mut page, certain);
        Ok(page.events)
    }
}

/// A text that has been accepted can be read again.
fn unread(token: TokenId, position: usize) -> EngineError {
    debug_assert!(false, "token {token} at {position} was accepted before");
    LimitExceeded::new("reread_tokens", position).into()
}
