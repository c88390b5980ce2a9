//! The rows of all requests of an engine's step, drafts included.
//!
//! A request has a row for each of its drafts, and one for the token after them. Row `i` is the mask
//! after the first `i` drafts. First this thread fills the rows whose masks are cached. Then the
//! others are computed, on several threads if that takes long: requests that wait for the same mask
//! stay on one thread, so that it is computed once.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{GivenToken, Held, Request, RequestError};
use crate::matcher::{helping, BatchKey};
use ffwd_tokenizer::vocabulary::TokenId;

/// For how long the caller computes masks alone: to wake a thread takes a third of that.
const ALONE: Duration = Duration::from_micros(if cfg!(test) { 0 } else { 300 });

/// What fills up the drafts of a request that has fewer than others.
const PADDING: GivenToken = -1;

/// Where the grammar holds among the drafts, as a model may still be reasoning before.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// The grammar reads the drafts from this one on.
    pub grammar_start: usize,
    /// The rows from this one on are masked.
    pub constraint_start: usize,
    /// Tokens that the rows before exclude.
    pub excluded: Vec<TokenId>,
}

/// One request of a step, and its rows.
#[derive(Debug)]
pub struct StepWork<'w> {
    /// The request; it is in the same state afterwards.
    pub request: &'w mut Request,
    /// What may come next, verified in one pass of the model.
    pub drafts: &'w [GivenToken],
    /// Where the grammar holds; everywhere by default.
    pub bounds: Bounds,
    /// A row for each draft, and one more, one behind the other.
    pub rows: &'w mut [u32],
    /// What the rows hold.
    pub held: &'w mut [Held],
}

/// What an engine should tell of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A draft was refused, and the rows after it are copies.
    RejectedDraft(GivenToken),
    /// A limit was exceeded: see [`Request::refused`].
    Refused,
}

/// Why a walk over the drafts has ended early.
enum Halt {
    /// A mask has to be computed.
    Unknown,
    /// A limit was exceeded on the way back.
    Failed(RequestError),
}

/// Fills the rows of all requests, on at most `threads` threads. It fails for none of them: what
/// became of them besides is returned by their position.
pub fn fill_step(work: Vec<StepWork<'_>>, threads: usize) -> Vec<(usize, Outcome)> {
    let mut outcomes = Vec::new();
    let mut groups: FxHashMap<Option<BatchKey>, Vec<(usize, StepWork<'_>)>> = FxHashMap::default();
    for (at, mut work) in work.into_iter().enumerate() {
        match work.walk(false) {
            Ok(outcome) => outcomes.extend(outcome.map(|outcome| (at, outcome))),
            Err(Halt::Unknown) => {
                groups.entry(work.request.matcher.unknown_key()).or_default().push((at, work));
            }
            Err(Halt::Failed(error)) => outcomes.push((at, work.give_up(&error))),
        }
    }
    let mut groups: Vec<Vec<(usize, StepWork<'_>)>> = groups.into_values().collect();
    let begun = Instant::now();
    while begun.elapsed() < ALONE {
        let Some(group) = groups.pop() else { break };
        fill_group(group, &mut outcomes);
    }
    if !groups.is_empty() {
        let helpers = groups.len().min(threads).saturating_sub(1);
        let shared = Mutex::new((groups.into_iter(), outcomes));
        helping(helpers, &|| loop {
            let Some(group) = shared.lock().0.next() else { return };
            let mut found = Vec::new();
            fill_group(group, &mut found);
            shared.lock().1.extend(found);
        });
        outcomes = shared.into_inner().1;
    }
    outcomes.sort_unstable_by_key(|&(at, _)| at);
    outcomes
}

fn fill_group(group: Vec<(usize, StepWork<'_>)>, outcomes: &mut Vec<(usize, Outcome)>) {
    for (at, mut work) in group {
        let outcome = match work.walk(true) {
            Ok(outcome) => outcome,
            Err(Halt::Failed(error)) => Some(work.give_up(&error)),
            // Everything was computed on the way.
            Err(Halt::Unknown) => None,
        };
        outcomes.extend(outcome.map(|outcome| (at, outcome)));
    }
}

impl StepWork<'_> {
    /// Fills the rows, and takes the drafts back.
    fn walk(&mut self, computes: bool) -> Result<Option<Outcome>, Halt> {
        let before = self.request.num_tokens();
        let done = self.fill_rows(before, computes);
        let accepted = self.request.num_tokens() - before;
        self.request.rollback(accepted).map_err(|error| Halt::Failed(error.into()))?;
        done
    }

    fn fill_rows(&mut self, before: usize, computes: bool) -> Result<Option<Outcome>, Halt> {
        let count = self.drafts.len();
        let width = self.rows.len() / (count + 1);
        // Behind padding nothing is known of the text.
        let mut is_padded = false;
        for at in 0..=count {
            let is_constrained = !is_padded && at >= self.bounds.constraint_start;
            let row = &mut self.rows[at * width..(at + 1) * width];
            let held = &mut self.held[at];
            let advanced = self.request.num_tokens() > before;
            if is_constrained && !self.request.is_terminated() {
                if let Some(error) = self.request.fill_row(row, held, computes)? {
                    // A draft led here. Without it this row cannot be right, nor can it be asked.
                    if advanced {
                        self.repeat_row(at - 1, width);
                        return Ok(Some(Outcome::RejectedDraft(self.drafts[at - 1])));
                    }
                    self.request.refuse(row, held, &error);
                    self.repeat_row(at, width);
                    return Ok(Some(Outcome::Refused));
                }
            } else if is_padded || is_constrained {
                held.write_everything(row);
            } else {
                held.write_without(row, &self.bounds.excluded);
            }
            let Some(&token) = self.drafts.get(at) else { break };
            if token == PADDING {
                is_padded = true;
            } else if !is_padded && at >= self.bounds.grammar_start {
                let is_accepted = self.request.accept_one(token);
                if !matches!(is_accepted, Ok(true)) {
                    self.repeat_row(at, width);
                    return Ok(Some(Outcome::RejectedDraft(token)));
                }
            }
        }
        Ok(None)
    }

    /// Makes all later rows what this one is.
    fn repeat_row(&mut self, at: usize, width: usize) {
        let (rows, later) = self.rows.split_at_mut((at + 1) * width);
        let row = &rows[at * width..];
        let (known, held) = self.held.split_at_mut(at + 1);
        for (to, held) in later.chunks_mut(width).zip(held) {
            known[at].copy_to(row, held, to);
        }
    }

    /// The drafts could not be taken back, so that the request is in no state that could go on.
    fn give_up(&mut self, error: &RequestError) -> Outcome {
        let width = self.rows.len() / (self.drafts.len() + 1);
        self.request.refuse(&mut self.rows[..width], &mut self.held[0], error);
        self.repeat_row(0, width);
        Outcome::Refused
    }
}

impl Request {
    /// Fills a row; returns what limit was exceeded.
    fn fill_row(
        &mut self,
        row: &mut [u32],
        held: &mut Held,
        computes: bool,
    ) -> Result<Option<RequestError>, Halt> {
        if self.fill_if_known(row, held) {
            return Ok(None);
        }
        if !computes {
            return Err(Halt::Unknown);
        }
        Ok(self.fill(row, held).err())
    }
}
