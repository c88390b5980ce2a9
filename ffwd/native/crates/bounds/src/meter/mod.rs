//! The bounds of one call: steps, the clock, and a flag that another thread may set.
//!
//! Loops that may be long [`charge`] the meter of their thread. That is a decrement; the clock and
//! the flag are checked only every some thousand steps. A charge fails once the meter has run out,
//! and keeps failing until the call has ended, so the work ends by the errors that it propagates.
//! Code that treats an error as an answer, or keeps part of an answer, recognizes interruptions by
//! [`LimitExceeded::is_interruption`].
//!
//! The meter belongs to a thread and not to the objects that are built: two calls that build them
//! together each pay for themselves, and neither fails for the other.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{LimitExceeded, CALL_SECONDS, CALL_STEPS, COMPILE_SECONDS, COMPILE_STEPS};
use crate::limits::Limits;

/// The number of steps between two looks at the clock and the flag.
const QUANTUM: u64 = 4096;

/// A flag with which one thread ends calls on others.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Ends the calls that have this flag with their next look at it, until [`Self::reset`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Lets calls begin again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Whether calls with this flag end.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The bounds of a call, and its use so far. Several calls that belong together may share one, one
/// after the other.
#[derive(Clone, Debug)]
pub struct Meter {
    limits: Limits,
    steps_limit: &'static str,
    max_steps: u64,
    time_limit: &'static str,
    max_time: Duration,
    cancellation: Option<Cancellation>,
    begun: Option<Instant>,
    spent: u64,
    /// How many of the spent steps count no longer; see [`given_back`].
    given_back: u64,
    /// How many bytes of texts were read.
    read: usize,
    /// Why nothing more may be done.
    broken: Option<LimitExceeded>,
}

impl Meter {
    /// For the compilation of a grammar, which begins now.
    pub fn compiling(limits: &Limits, cancellation: Option<Cancellation>) -> Self {
        Self {
            limits: *limits,
            steps_limit: COMPILE_STEPS,
            max_steps: limits.compile_steps,
            time_limit: COMPILE_SECONDS,
            max_time: limits.compile_time,
            cancellation,
            begun: Some(Instant::now()),
            spent: 0,
            given_back: 0,
            read: 0,
            broken: None,
        }
    }

    /// Makes the meter of one call of a matcher. Its time starts with the first check of the clock,
    /// because most calls end before that.
    pub fn calling(limits: &Limits, cancellation: Option<Cancellation>) -> Self {
        Self {
            limits: *limits,
            steps_limit: CALL_STEPS,
            max_steps: limits.call_steps,
            time_limit: CALL_SECONDS,
            max_time: limits.call_time,
            cancellation,
            begun: None,
            spent: 0,
            given_back: 0,
            read: 0,
            broken: None,
        }
    }

    /// How many steps were charged so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// The steps that count for the limit.
    fn counted(&self) -> u64 {
        self.spent.saturating_sub(self.given_back)
    }

    /// Counts bytes of schemas, grammars or patterns before they are read.
    ///
    /// # Errors
    /// All of them together exceed `source_bytes`.
    pub fn read(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.read = self.read.saturating_add(bytes);
        let maximum = self.limits.source_bytes;
        match self.read > maximum {
            false => Ok(()),
            true => Err(LimitExceeded::new("source_bytes", maximum)),
        }
    }

    /// Does some work under this meter, or under that which the thread has already.
    ///
    /// # Errors Those of the work. If the meter ran out, its error, even if the work returned a
    /// value.
    pub fn run<T, E: From<LimitExceeded>>(
        &mut self,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if is_running() {
            return work();
        }
        if self.cancellation.as_ref().is_some_and(Cancellation::is_cancelled) {
            return Err(LimitExceeded::cancelled().into());
        }
        self.install();
        let scope = Scope(self);
        let done = work();
        let broken = scope.0.take_back();
        std::mem::forget(scope);
        match (done, broken) {
            (Ok(_), Some(broken)) => Err(broken.into()),
            (done, _) => done,
        }
    }

    fn install(&mut self) {
        THREAD.with(|thread| {
            let first = match (self.broken, faults::left_of(thread)) {
                (None, None) => QUANTUM.min(self.max_steps.saturating_sub(self.counted())),
                _ => 0,
            };
            thread.grant(first);
            thread.set_limits(&self.limits);
            thread.running.replace(ManuallyDrop::new(Some(self.clone())));
            heap::begin(thread, self.limits.work_bytes);
        });
    }

    /// Ends what [`Self::install`] began. Returns why the meter has run out, if it has.
    fn take_back(&mut self) -> Option<LimitExceeded> {
        let (used, ran) = THREAD.with(|thread| {
            heap::end(thread);
            let used = thread.granted.get().saturating_sub(thread.left.get());
            thread.grant(u64::MAX);
            thread.set_limits(&Limits::NONE);
            (used, thread.take_running())
        });
        if let Some(ran) = ran {
            *self = ran;
        }
        self.spent = self.spent.saturating_add(used);
        self.broken
    }

    /// Returns the number of steps until the next check, after this many.
    fn look(&mut self, thread: &Thread, steps: u64) -> Result<u64, LimitExceeded> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        self.spent = self.spent.saturating_add(steps);
        let broken = if faults::is_due(thread) {
            Some(LimitExceeded::deadline(self.time_limit, self.max_time))
        } else if let Some(breach) = heap::breach(thread) {
            Some(breach)
        } else if self.counted() > self.max_steps {
            let maximum = usize::try_from(self.max_steps).unwrap_or(usize::MAX);
            Some(LimitExceeded::new(self.steps_limit, maximum))
        } else if self.cancellation.as_ref().is_some_and(Cancellation::is_cancelled) {
            Some(LimitExceeded::cancelled())
        } else {
            let now = Instant::now();
            let begun = *self.begun.get_or_insert(now);
            let late = now.saturating_duration_since(begun) > self.max_time;
            late.then(|| LimitExceeded::deadline(self.time_limit, self.max_time))
        };
        self.broken = broken;
        match broken {
            Some(broken) => Err(broken),
            None if faults::left_of(thread).is_some() => Ok(0),
            None => Ok(QUANTUM.min(self.max_steps.saturating_sub(self.counted()))),
        }
    }
}

/// Ends a meter also where the work panics.
struct Scope<'m>(&'m mut Meter);

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.0.take_back();
    }
}

/// The counters of loops and the allocator: in one place, without a destructor, for fast access.
struct Thread {
    /// Steps until the next look.
    left: Cell<u64>,
    /// The number of steps left after the last look; the largest number without a meter.
    granted: Cell<u64>,
    nesting: Cell<usize>,
    expression_nodes: Cell<usize>,
    states: Cell<usize>,
    stacks: Cell<usize>,
    heap: heap::Heap,
    /// After how many charges a fault is due.
    fault: Cell<u64>,
    /// The meter of the call. The caller that begins it also ends it, so it is absent at thread
    /// exit.
    running: RefCell<ManuallyDrop<Option<Meter>>>,
}

impl Thread {
    fn grant(&self, steps: u64) {
        self.left.set(steps);
        self.granted.set(steps);
    }

    fn set_limits(&self, limits: &Limits) {
        self.nesting.set(limits.nesting);
        self.expression_nodes.set(limits.expression_nodes);
        self.states.set(limits.states);
        self.stacks.set(limits.stacks);
    }

    fn is_running(&self) -> bool {
        self.granted.get() != u64::MAX
    }

    fn take_running(&self) -> Option<Meter> {
        ManuallyDrop::into_inner(self.running.replace(ManuallyDrop::new(None)))
    }
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            left: Cell::new(u64::MAX),
            granted: Cell::new(u64::MAX),
            nesting: Cell::new(usize::MAX),
            expression_nodes: Cell::new(usize::MAX),
            states: Cell::new(usize::MAX),
            stacks: Cell::new(usize::MAX),
            heap: heap::Heap::new(),
            fault: Cell::new(u64::MAX),
            running: RefCell::new(ManuallyDrop::new(None)),
        }
    };
}

/// Charges the thread's meter, if it has one, for this many steps: each is about a table look-up or
/// a short loop over a few bytes.
///
/// # Errors
/// The meter has run out; the result of the work is unknown.
#[inline]
pub fn charge(steps: usize) -> Result<(), LimitExceeded> {
    THREAD.with(|thread| match thread.left.get().checked_sub(steps as u64) {
        Some(left) => {
            thread.left.set(left);
            Ok(())
        }
        None => look(thread, steps as u64),
    })
}

#[cold]
#[inline(never)]
fn look(thread: &Thread, steps: u64) -> Result<(), LimitExceeded> {
    let steps = steps.saturating_add(thread.granted.get().saturating_sub(thread.left.get()));
    thread.grant(0);
    let granted = match thread.running.borrow_mut().as_mut() {
        Some(meter) => meter.look(thread, steps)?,
        None => u64::MAX,
    };
    thread.grant(granted);
    Ok(())
}

/// Whether this thread has a meter that bounds what it does.
pub(crate) fn is_running() -> bool {
    THREAD.with(Thread::is_running)
}

/// Makes the next charge look at the call's memory.
fn look_soon(thread: &Thread) {
    if thread.is_running() {
        thread.granted.set(thread.granted.get().saturating_sub(thread.left.get()));
        thread.left.set(0);
    }
}

/// Does work for which an earlier call was charged, such as reading a token again. It may take as
/// many steps as the call has left, and gives them back. The clock and the flag end it like any
/// other work.
///
/// # Errors
/// Those of the work, whose steps are not given back then.
pub fn given_back<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let before = steps_of_call();
    let done = work()?;
    let spent = steps_of_call().saturating_sub(before);
    THREAD.with(|thread| {
        if let Some(meter) = thread.running.borrow_mut().as_mut() {
            meter.given_back = meter.given_back.saturating_add(spent);
        }
    });
    Ok(done)
}

/// How many steps the thread's call has spent so far.
fn steps_of_call() -> u64 {
    THREAD.with(|thread| {
        let since = thread.granted.get().saturating_sub(thread.left.get());
        thread.running.borrow().as_ref().map_or(0, |meter| meter.spent.saturating_add(since))
    })
}

/// Does work that is not the call's own, such as restoring an invariant after an error.
pub fn unmetered<T>(work: impl FnOnce() -> T) -> T {
    struct Suspended(Option<Meter>, [u64; 2], [isize; 2]);
    impl Drop for Suspended {
        fn drop(&mut self) {
            let Some(meter) = self.0.take() else { return };
            THREAD.with(|thread| {
                thread.left.set(self.1[0]);
                thread.granted.set(self.1[1]);
                thread.set_limits(&meter.limits);
                thread.running.replace(ManuallyDrop::new(Some(meter)));
                heap::resume(thread, self.2);
            });
        }
    }
    let _suspended = THREAD.with(|thread| {
        let (meter, steps) = (thread.take_running(), [thread.left.get(), thread.granted.get()]);
        thread.grant(u64::MAX);
        thread.set_limits(&Limits::NONE);
        Suspended(meter, steps, heap::suspend(thread))
    });
    work()
}

/// Checks a count against a limit of the thread's call.
macro_rules! limited {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// It is more than the call may have.
        #[inline]
        pub fn $name(count: usize) -> Result<(), LimitExceeded> {
            let maximum = THREAD.with(|thread| thread.$name.get());
            match count > maximum {
                false => Ok(()),
                true => Err(LimitExceeded::new(stringify!($name), maximum)),
            }
        }
    )*};
}

/// How deep brackets may nest where `most` is a fixed bound.
pub fn nesting_within(most: usize) -> usize {
    THREAD.with(|thread| thread.nesting.get()).min(most)
}

/// Whether counts are within the limits of the thread's call.
pub mod check {
    use super::{LimitExceeded, THREAD};

    limited! {
        /// Expressions of one lexeme.
        expression_nodes
        /// Configurations of one automaton.
        states
        /// Stacks of one automaton.
        stacks
    }
}

/// Breaches on demand, for tests: the same must hold after a breach at any charge.
pub mod faults {
    use super::{Thread, THREAD};

    /// Simulates a deadline at this charge of the next calls on this thread, counted from 1; `None`
    /// for no such fault.
    pub fn inject(charge: Option<u64>) {
        THREAD.with(|thread| thread.fault.set(charge.map_or(u64::MAX, |charge| charge.max(1))));
    }

    /// How many charges are left until then; `None` if nothing was asked for, or it has happened.
    pub fn left() -> Option<u64> {
        THREAD.with(left_of)
    }

    pub(super) fn left_of(thread: &Thread) -> Option<u64> {
        let left = thread.fault.get();
        (left != u64::MAX).then_some(left)
    }

    pub(super) fn is_due(thread: &Thread) -> bool {
        let Some(charges) = left_of(thread) else { return false };
        let due = charges <= 1;
        thread.fault.set(if due { u64::MAX } else { charges - 1 });
        due
    }
}

pub mod heap;

#[cfg(test)]
mod tests;
