//! The rows of all requests of an engine's step, drafts included.
//!
//! A request has a row for each of its drafts, and one for the token after them. Row `i` is the mask
//! after the first `i` drafts. First the rows are filled whose masks are cached, on several threads if
//! they are many. Then the masks that requests wait for are computed, each once, on several threads if
//! that takes long; and then the remaining rows are filled.

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::{GivenToken, Held, Request, RequestError};
use crate::matcher::{compute_unknown, helping};
use ffwd_tokenizer::vocabulary::TokenId;

/// How many cached rows are worth a thread: they take about as long as to wake it, several times.
const ROWS_OF_A_THREAD: usize = if cfg!(test) { 2 } else { 512 };
/// How many requests a thread takes at a time.
const REQUESTS_AT_ONCE: usize = 8;

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

/// Requests with their positions.
type Placed<'w> = Vec<(usize, StepWork<'w>)>;

/// Fills the rows of all requests, on at most `threads` threads. It fails for none of them: what
/// became of them besides is returned by their position.
pub fn fill_step(work: Vec<StepWork<'_>>, threads: usize) -> Vec<(usize, Outcome)> {
    let rows: usize = work.iter().map(|work| work.held.len()).sum();
    let helpers = (rows / ROWS_OF_A_THREAD).min(threads).saturating_sub(1);
    let unseen = Mutex::new(work.into_iter().enumerate());
    let found = Mutex::new((Vec::new(), Placed::new()));
    helping(helpers, &|| fill_cached(&unseen, &found));
    let (mut outcomes, mut waiting) = found.into_inner();
    // A row of forced text needs no mask.
    let is_open = |work: &mut StepWork<'_>| matches!(work.request.next_forced(), Ok(None));
    let open: Vec<bool> = waiting.iter_mut().map(|(_, work)| is_open(work)).collect();
    let matchers = waiting.iter().zip(&open).filter(|(_, &open)| open);
    let failed = compute_unknown(matchers.map(|((_, work), _)| &work.request.matcher), threads);
    for (at, mut work) in waiting {
        // A computation that exceeded a limit is not repeated for each request.
        let error = work.request.matcher.unknown_key().and_then(|key| failed.get(&key));
        let outcome = match error {
            Some(error) => Some(work.give_up(&error.clone().into())),
            None => match work.walk(true) {
                Ok(outcome) => outcome,
                Err(Halt::Failed(error)) => Some(work.give_up(&error)),
                // Everything was computed on the way.
                Err(Halt::Unknown) => None,
            },
        };
        outcomes.extend(outcome.map(|outcome| (at, outcome)));
    }
    outcomes.sort_unstable_by_key(|&(at, _)| at);
    outcomes
}

/// Takes requests until none is left, and fills their rows if their masks are cached.
fn fill_cached<'w>(
    unseen: &Mutex<std::iter::Enumerate<std::vec::IntoIter<StepWork<'w>>>>,
    found: &Mutex<(Vec<(usize, Outcome)>, Placed<'w>)>,
) {
    loop {
        let taken: SmallVec<[(usize, StepWork<'w>); REQUESTS_AT_ONCE]> =
            unseen.lock().by_ref().take(REQUESTS_AT_ONCE).collect();
        if taken.is_empty() {
            return;
        }
        for (at, mut work) in taken {
            match work.walk(false) {
                Ok(None) => {}
                Ok(Some(outcome)) => found.lock().0.push((at, outcome)),
                Err(Halt::Failed(error)) => found.lock().0.push((at, work.give_up(&error))),
                Err(Halt::Unknown) => found.lock().1.push((at, work)),
            }
        }
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
