//! All parses of a text that differ in its spans, byte by byte.

use rustc_hash::FxHashMap;

use super::history::{Histories, HistoryId};
use ffwd_automaton::{Ages, Automaton, OpenPart, Result, Thread, Threads};
use ffwd_automaton::{Mark, Marks};
use ffwd_bounds::error::LimitExceeded;

/// All parses with the same marks, as threads of the automaton.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub history: HistoryId,
    pub threads: Threads,
    /// For each age of a part with a limit the position of the token with which it began.
    ages: Ages,
}

/// The preferred parse, and its alternatives.
pub type Readings = Vec<Reading>;

/// The most parses with different spans of one text.
const MAX_READINGS: usize = 10_000;

/// Parses by their marks. Those with the same marks come from one parse, and have its ages.
#[derive(Default)]
struct Next(FxHashMap<HistoryId, (Threads, Ages)>);

impl Next {
    fn add(
        &mut self,
        histories: &mut Histories,
        from: &Reading,
        (at, length): (usize, usize),
        marks: &Marks,
        thread: Thread,
    ) {
        let mut history = from.history;
        for &mark in &marks.before {
            history = histories.push(history, (mark, at));
        }
        for &mark in &marks.after {
            history = histories.push(history, (mark, at + length));
        }
        let next = self.0.entry(history).or_insert_with(|| (Threads::new(), from.ages.clone()));
        next.0.push(thread);
    }

    /// The parses in order of preference, each thread only in the first that has it.
    fn settle(self, automaton: &Automaton, histories: &Histories) -> Result<Readings> {
        let mut readings = Readings::with_capacity(self.0.len());
        for (history, (mut threads, ages)) in self.0 {
            automaton.settle(&mut threads)?;
            readings.push(Reading { history, threads, ages });
        }
        if readings.len() > MAX_READINGS {
            return Err(LimitExceeded::new("span_parses", MAX_READINGS).into());
        }
        if readings.len() > 1 {
            readings.sort_unstable_by(|a, b| {
                // Equal only where both are the same list.
                histories.compare(a.history, b.history).then(a.history.cmp(&b.history))
            });
            let mut known: FxHashMap<_, Threads> = FxHashMap::default();
            for reading in &mut readings {
                let ages = &reading.ages;
                reading.threads.retain(|thread| {
                    let key = (thread.lexeme, thread.state, ages.clone());
                    let same = known.entry(key).or_default();
                    let is_new = !same.iter().any(|by| automaton.marked().is_covered(thread, by));
                    if is_new {
                        same.push(*thread);
                    }
                    is_new
                });
            }
            readings.retain(|reading| !reading.threads.is_empty());
        }
        Ok(readings)
    }
}

/// Before the first byte of the grammar's text.
pub fn start(
    automaton: &Automaton,
    histories: &mut Histories,
    history: HistoryId,
    at: usize,
) -> Result<Readings> {
    let mut next = Next::default();
    let from = Reading { history, threads: Threads::new(), ages: Ages::new() };
    for beginning in automaton.marked().start()?.iter() {
        let marks = Marks { before: beginning.marks.iter().copied().collect(), ..Marks::default() };
        for &thread in &beginning.threads {
            next.add(histories, &from, (at, 0), &marks, thread);
        }
    }
    next.settle(automaton, histories)
}

/// The parses after some text that begins at a position.
pub fn read(
    automaton: &Automaton,
    histories: &mut Histories,
    readings: &[Reading],
    text: &[u8],
    at: usize,
) -> Result<Readings> {
    let mut readings = readings.to_vec();
    for (place, &byte) in text.iter().enumerate() {
        let mut next = Next::default();
        for reading in &readings {
            for thread in &reading.threads {
                automaton.marked().step(thread, byte, &mut |marks, thread| {
                    next.add(histories, reading, (at + place, 1), marks, thread);
                })?;
            }
        }
        readings = next.settle(automaton, histories)?;
    }
    Ok(readings)
}

/// The parses after a token that may be taken as a whole, or as its text.
pub fn read_token(
    automaton: &Automaton,
    histories: &mut Histories,
    readings: &[Reading],
    token: u32,
    text: &[u8],
    at: usize,
) -> Result<Readings> {
    let mut next = Next::default();
    for reading in readings {
        for thread in &reading.threads {
            automaton.marked().step_token(
                thread,
                token,
                &Marks::default(),
                &mut |marks, thread| {
                    next.add(histories, reading, (at, text.len()), marks, thread);
                },
            )?;
        }
    }
    if !text.is_empty() {
        for Reading { history, threads, ages } in read(automaton, histories, readings, text, at)? {
            next.0.entry(history).or_insert_with(|| (Threads::new(), ages)).0.extend(threads);
        }
    }
    next.settle(automaton, histories)
}

/// The parses after the token at a position, as [`settled`] in `matcher::sections`: parts with
/// limits begin with it, and end if they have used all of their tokens. The text ends at `at`.
pub fn settle_limits(
    automaton: &Automaton,
    histories: &mut Histories,
    readings: Readings,
    position: usize,
    at: usize,
) -> Result<Readings> {
    if !automaton.has_limits() {
        return Ok(readings);
    }
    let mut next = Next::default();
    for reading in readings {
        let reading = aged(automaton, reading, Some(position))?;
        let is_over = |part: &OpenPart| part.left(&reading.ages, position + 1) == 0;
        automaton.marked().close(&reading.threads, &is_over, &mut |marks, thread| {
            next.add(histories, &reading, (at, 0), marks, thread);
        })?;
    }
    let readings = next.settle(automaton, histories)?;
    readings.into_iter().map(|reading| aged(automaton, reading, None)).collect()
}

/// A parse with ages for its parts with limits. Those that begin with the token at a position, or
/// with none, have begun there.
fn aged(automaton: &Automaton, reading: Reading, position: Option<usize>) -> Result<Reading> {
    let aged = automaton.limited().aged(&reading.threads)?;
    let mut ages = aged.remaining(&reading.ages);
    if aged.fresh {
        ages.push(position.unwrap_or(0) as u32);
    }
    Ok(Reading { threads: aged.threads, ages, ..reading })
}

/// The parses after the prompt's share of the text, which counts for no limit.
pub fn after_prompt(automaton: &Automaton, readings: Readings) -> Result<Readings> {
    readings.into_iter().map(|reading| aged(automaton, reading, None)).collect()
}

/// Returns the marks of the first parse that can end here; `None` if none can.
pub fn end(
    automaton: &Automaton,
    histories: &mut Histories,
    readings: &[Reading],
    at: usize,
) -> Result<Option<HistoryId>> {
    let mut ends: Vec<HistoryId> = Vec::new();
    for Reading { history, threads, .. } in readings {
        for thread in threads {
            automaton.marked().ends(thread, &[], &mut |marks: &[Mark]| {
                let push = |id, &mark: &Mark| histories.push(id, (mark, at));
                ends.push(marks.iter().fold(*history, push));
            })?;
        }
    }
    Ok(ends.into_iter().min_by(|&a, &b| histories.compare(a, b)))
}
