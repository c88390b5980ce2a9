//! The rows of all requests of an engine's step, drafts included.
//!
//! A request has a row for each of its drafts, and one for the token after them. Row `i` is the mask
//! after the first `i` drafts. If its drafts are a tree, each node has a row.
//!
//! First the rows are filled whose masks are cached, on several threads if they are many. Then the masks
//! that requests wait for are computed, each once, on several threads if that takes long; and then the
//! remaining rows are filled.

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::{GivenToken, Held, Request, RequestError, Tree};
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

/// What may come next, verified in one pass of the model.
#[derive(Clone, Debug)]
pub enum Drafts<'w> {
    /// One token after the other, and where the grammar holds among them. There is a row for each,
    /// and one more.
    Chain(&'w [GivenToken], Bounds),
    /// Several ways to go on. There is a row for each node.
    Tree(Tree<'w>),
}

/// One request of a step, and its rows.
#[derive(Debug)]
pub struct StepWork<'w> {
    /// The request; it is in the same state afterwards.
    pub request: &'w mut Request,
    /// What may come next.
    pub drafts: Drafts<'w>,
    /// As many rows as the drafts need.
    pub rows: RequestRows<'w>,
}

/// The rows of one request, one behind the other.
#[derive(Debug)]
pub struct RequestRows<'w> {
    words: &'w mut [u32],
    held: &'w mut [Held],
}

impl<'w> RequestRows<'w> {
    /// * `words`: The words of the rows.
    /// * `held`: What each row holds.
    pub fn new(words: &'w mut [u32], held: &'w mut [Held]) -> Self {
        Self { words, held }
    }

    fn width(&self) -> usize {
        self.words.len() / self.held.len()
    }

    pub(super) fn at(&mut self, row: usize) -> (&mut [u32], &mut Held) {
        let width = self.width();
        (&mut self.words[row * width..(row + 1) * width], &mut self.held[row])
    }

    /// Makes all later rows what this one is.
    pub(super) fn repeat(&mut self, row: usize) {
        let width = self.width();
        let (words, later) = self.words.split_at_mut((row + 1) * width);
        let (known, held) = self.held.split_at_mut(row + 1);
        for (to, held) in later.chunks_mut(width).zip(held) {
            known[row].copy_to(&words[row * width..], held, to);
        }
    }
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
pub(super) enum Halt {
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
    let rows: usize = work.iter().map(|work| work.rows.held.len()).sum();
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
                Err(Halt::Failed(error)) => Some(work.give_up_for_good(&error)),
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
                Err(Halt::Failed(error)) => {
                    found.lock().0.push((at, work.give_up_for_good(&error)));
                }
                Err(Halt::Unknown) => found.lock().1.push((at, work)),
            }
        }
    }
}

impl StepWork<'_> {
    /// Fills the rows, and takes the drafts back.
    fn walk(&mut self, computes: bool) -> Result<Option<Outcome>, Halt> {
        let Self { request, drafts, rows } = self;
        let before = request.num_tokens();
        let done = match drafts {
            Drafts::Chain(drafts, bounds) => fill_chain(request, drafts, bounds, rows, computes),
            Drafts::Tree(tree) => tree.fill(request, rows, computes),
        };
        let accepted = request.num_tokens() - before;
        request.take_back(accepted).map_err(|error| Halt::Failed(error.into()))?;
        done
    }

    /// Refuses the request, and lets each row allow one token.
    fn give_up(&mut self, error: &RequestError) -> Outcome {
        let (row, held) = self.rows.at(0);
        self.request.refuse(row, held, error);
        self.rows.repeat(0);
        Outcome::Refused
    }

    /// The drafts could not be taken back, so that the request is in no state that could go on.
    fn give_up_for_good(&mut self, error: &RequestError) -> Outcome {
        self.request.is_lost = true;
        self.give_up(error)
    }
}

fn fill_chain(
    request: &mut Request,
    drafts: &[GivenToken],
    bounds: &Bounds,
    rows: &mut RequestRows<'_>,
    computes: bool,
) -> Result<Option<Outcome>, Halt> {
    let before = request.num_tokens();
    // Behind padding nothing is known of the text.
    let mut is_padded = false;
    for at in 0..=drafts.len() {
        let is_constrained = !is_padded && at >= bounds.constraint_start;
        let (row, held) = rows.at(at);
        if is_constrained && !request.is_terminated() {
            let advanced = request.num_tokens() > before;
            if let Some(error) = request.fill_row(row, held, computes)? {
                // A draft led here. Without it this row cannot be right, nor can it be asked.
                if advanced {
                    rows.repeat(at - 1);
                    return Ok(Some(Outcome::RejectedDraft(drafts[at - 1])));
                }
                request.refuse(row, held, &error);
                rows.repeat(at);
                return Ok(Some(Outcome::Refused));
            }
        } else if is_padded || is_constrained {
            held.write_everything(row);
        } else {
            held.write_without(row, &bounds.excluded);
        }
        let Some(&token) = drafts.get(at) else { break };
        if token == PADDING {
            is_padded = true;
        } else if !is_padded && at >= bounds.grammar_start {
            let is_accepted = request.accept_one(token);
            if !matches!(is_accepted, Ok(true)) {
                rows.repeat(at);
                return Ok(Some(Outcome::RejectedDraft(token)));
            }
        }
    }
    Ok(None)
}

impl Request {
    /// Fills a row; returns what limit was exceeded.
    pub(super) fn fill_row(
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
