//! All parses of a text that differ in its spans, byte by byte.

use rustc_hash::FxHashMap;

use super::history::{Histories, HistoryId};
use ffwd_automaton::{Automaton, Result, Thread, Threads};
use ffwd_automaton::{Mark, Marks};
use ffwd_bounds::error::LimitExceeded;

/// All parses with the same marks, as threads of the automaton.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub history: HistoryId,
    pub threads: Threads,
}

/// The preferred parse, and its alternatives.
pub type Readings = Vec<Reading>;

/// The most parses with different spans of one text.
const MAX_READINGS: usize = 10_000;

/// Parses by their marks.
#[derive(Default)]
struct Next(FxHashMap<HistoryId, Threads>);

impl Next {
    fn add(
        &mut self,
        histories: &mut Histories,
        (history, at, length): (HistoryId, usize, usize),
        marks: &Marks,
        thread: Thread,
    ) {
        let mut history = history;
        for &mark in &marks.before {
            history = histories.push(history, (mark, at));
        }
        for &mark in &marks.after {
            history = histories.push(history, (mark, at + length));
        }
        self.0.entry(history).or_default().push(thread);
    }

    /// The parses in order of preference, each thread only in the first that has it.
    fn settle(self, automaton: &Automaton, histories: &Histories) -> Result<Readings> {
        let mut readings = Readings::with_capacity(self.0.len());
        for (history, mut threads) in self.0 {
            automaton.settle(&mut threads)?;
            readings.push(Reading { history, threads });
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
                reading.threads.retain(|thread| {
                    let same = known.entry((thread.lexeme, thread.state)).or_default();
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
    for beginning in automaton.marked().start()?.iter() {
        let marks = Marks { before: beginning.marks.iter().copied().collect(), ..Marks::default() };
        for &thread in &beginning.threads {
            next.add(histories, (history, at, 0), &marks, thread);
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
        for Reading { history, threads } in &readings {
            for thread in threads {
                automaton.marked().step(thread, byte, &mut |marks, thread| {
                    next.add(histories, (*history, at + place, 1), marks, thread);
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
    for Reading { history, threads } in readings {
        for thread in threads {
            automaton.marked().step_token(
                thread,
                token,
                &Marks::default(),
                &mut |marks, thread| {
                    next.add(histories, (*history, at, text.len()), marks, thread);
                },
            )?;
        }
    }
    if !text.is_empty() {
        for Reading { history, threads } in read(automaton, histories, readings, text, at)? {
            next.0.entry(history).or_default().extend(threads);
        }
    }
    next.settle(automaton, histories)
}

/// Returns the marks of the first parse that can end here; `None` if none can.
pub fn end(
    automaton: &Automaton,
    histories: &mut Histories,
    readings: &[Reading],
    at: usize,
) -> Result<Option<HistoryId>> {
    let mut ends: Vec<HistoryId> = Vec::new();
    for Reading { history, threads } in readings {
        for thread in threads {
            automaton.marked().ends(thread, &[], &mut |marks: &[Mark]| {
                let push = |id, &mark: &Mark| histories.push(id, (mark, at));
                ends.push(marks.iter().fold(*history, push));
            })?;
        }
    }
    Ok(ends.into_iter().min_by(|&a, &b| histories.compare(a, b)))
}
