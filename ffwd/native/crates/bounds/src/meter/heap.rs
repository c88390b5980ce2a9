//! The memory of a call, and the behaviour when the system has no more.
//!
//! A failed allocation in Rust ends the process. Allocations are therefore granted, but the meter
//! of the call runs out, and the next charge ends the call with an error ([`super`]), which frees
//! its memory. If the system refuses, a reserve is freed first, and the allocation is repeated. The
//! reserve is for allocations between two charges; if it does not suffice, the process ends.
//!
//! The program's allocator counts if it is a [`Metered`] one. Another one counts nothing.

use std::alloc::{alloc, dealloc, GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::{look_soon, Thread, THREAD};
use crate::error::{LimitExceeded, SYSTEM_MEMORY, WORK_BYTES};

/// The memory of one thread's calls.
pub(super) struct Heap {
    /// Bytes that the call has allocated and not freed. Negative if it freed more.
    taken: Cell<isize>,
    /// Bytes that it may take.
    most: Cell<isize>,
    /// Bytes that the system refused to the call; 0 if it refused none.
    refused: Cell<usize>,
    /// For tests: the number of allocations before a simulated refusal.
    fault: Cell<u64>,
}

impl Heap {
    pub(super) const fn new() -> Self {
        Self {
            taken: Cell::new(0),
            most: Cell::new(isize::MAX),
            refused: Cell::new(0),
            fault: Cell::new(u64::MAX),
        }
    }
}

/// The reserve to free when memory runs out. It is never written to, so on most systems it takes
/// addresses and no memory.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
const RESERVE_LAYOUT: Layout = match Layout::from_size_align(16 << 20, 4096) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u8>(),
};
/// Whether the program's allocator counts.
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

/// An allocator that counts what it allocates.
#[derive(Debug)]
pub struct Metered<A>(pub A);

// SAFETY: every call is passed on to an allocator, with unchanged arguments and result. The
// additional work allocates nothing and does not panic.
#[allow(unsafe_code)]
unsafe impl<A: GlobalAlloc> GlobalAlloc for Metered<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as the caller has promised.
        granted(layout.size(), || unsafe { self.0.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as the caller has promised.
        granted(layout.size(), || unsafe { self.0.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        returned(layout.size());
        // SAFETY: as the caller has promised.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        taken(size);
        returned(layout.size());
        // SAFETY: as the caller has promised; after a refusal the block is what it was.
        granted(size, || unsafe { self.0.realloc(block, layout, size) })
    }
}

#[inline]
fn taken(bytes: usize) {
    THREAD.with(|thread| {
        let heap = &thread.heap;
        let taken = heap.taken.get().wrapping_add_unsigned(bytes);
        heap.taken.set(taken);
        let fault = heap.fault.get();
        if taken > heap.most.get() || fault != u64::MAX {
            look(thread, fault, bytes);
        }
    });
}

#[inline]
fn returned(bytes: usize) {
    THREAD.with(|Thread { heap, .. }| {
        heap.taken.set(heap.taken.get().wrapping_sub_unsigned(bytes));
    });
}

/// Checks the allocated memory with the meter, and triggers a test's fault.
#[cold]
#[inline(never)]
fn look(thread: &Thread, fault: u64, bytes: usize) {
    let heap = &thread.heap;
    if fault != u64::MAX && thread.is_running() {
        heap.fault.set(if fault <= 1 { u64::MAX } else { fault - 1 });
        if fault <= 1 {
            heap.refused.set(bytes.max(1));
        }
    }
    if heap.taken.get() > heap.most.get() || heap.refused.get() > 0 {
        look_soon(thread);
    }
}

/// Asks for memory. If there is none, frees the reserve and asks once more.
#[inline]
fn granted(bytes: usize, mut ask: impl FnMut() -> *mut u8) -> *mut u8 {
    let block = ask();
    if block.is_null() {
        return refused(bytes, ask);
    }
    block
}

#[cold]
#[inline(never)]
fn refused(bytes: usize, mut ask: impl FnMut() -> *mut u8) -> *mut u8 {
    // Freeing the reserve helps only a call that can end with an error.
    if !super::is_running() || !give_back() {
        return null_mut();
    }
    THREAD.with(|thread| {
        thread.heap.refused.set(bytes.max(1));
        look_soon(thread);
    });
    ask()
}

/// Gives the reserve back to the system, if it is still there.
fn give_back() -> bool {
    let reserve = NonNull::new(RESERVE.swap(null_mut(), Ordering::AcqRel));
    if let Some(reserve) = reserve {
        // SAFETY: it came from this allocator with this layout, and has no other owner.
        #[allow(unsafe_code)]
        unsafe {
            dealloc(reserve.as_ptr(), RESERVE_LAYOUT);
        }
        // The reserve does not count as the call's memory.
        taken(RESERVE_LAYOUT.size());
    }
    reserve.is_some()
}

/// Allocates the reserve if it is missing and the system has the memory.
fn set_aside(thread: &Thread) -> bool {
    if !RESERVE.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let before = thread.heap.taken.get();
    // SAFETY: the layout has a size.
    #[allow(unsafe_code)]
    let reserve = unsafe { alloc(RESERVE_LAYOUT) };
    if reserve.is_null() {
        return false;
    }
    if thread.heap.taken.get() != before {
        IS_COUNTED.store(true, Ordering::Relaxed);
    }
    let before = RESERVE.compare_exchange(null_mut(), reserve, Ordering::AcqRel, Ordering::Relaxed);
    if before.is_err() {
        // SAFETY: it has just come from there, and has no other owner.
        #[allow(unsafe_code)]
        unsafe {
            dealloc(reserve, RESERVE_LAYOUT);
        }
    }
    true
}

/// Begins a call that may take this many bytes. Without a reserve it ends with its first charge,
/// because its first allocation could be refused.
pub(super) fn begin(thread: &Thread, most: usize) {
    let refused = if set_aside(thread) { 0 } else { RESERVE_LAYOUT.size() };
    let heap = &thread.heap;
    heap.taken.set(0);
    heap.refused.set(refused);
    heap.most.set(isize::try_from(most).unwrap_or(isize::MAX));
    if refused > 0 {
        look_soon(thread);
    }
}

/// How much the call of this thread, or its last one, has taken and not given back; `None` where
/// nothing is counted.
pub fn taken_by_call() -> Option<usize> {
    let taken = || THREAD.with(|thread| usize::try_from(thread.heap.taken.get()).unwrap_or(0));
    IS_COUNTED.load(Ordering::Relaxed).then(taken)
}

/// Whether the system refused memory to the last call of this thread.
pub fn was_refused() -> bool {
    THREAD.with(|thread| thread.heap.refused.get() > 0)
}

/// Ends it.
pub(super) fn end(thread: &Thread) {
    thread.heap.most.set(isize::MAX);
}

/// Returns how much more the call may take than it has taken, for [`resume`].
pub(super) fn suspend(thread: &Thread) -> [isize; 2] {
    [thread.heap.taken.get(), thread.heap.most.replace(isize::MAX)]
}

/// Resumes a call.
pub(super) fn resume(thread: &Thread, [taken, most]: [isize; 2]) {
    thread.heap.taken.set(taken);
    thread.heap.most.set(most);
}

/// Whether the call has taken too much, or was refused something.
pub(super) fn breach(thread: &Thread) -> Option<LimitExceeded> {
    let heap = &thread.heap;
    let (refused, most) = (heap.refused.get(), heap.most.get());
    if refused > 0 {
        return Some(LimitExceeded::new(SYSTEM_MEMORY, refused));
    }
    let is_much = heap.taken.get() > most;
    is_much.then(|| LimitExceeded::new(WORK_BYTES, usize::try_from(most).unwrap_or(usize::MAX)))
}

/// Refusals on demand, for tests.
pub mod faults {
    use super::THREAD;

    /// Simulates a refusal of the allocation with this number; `None` for no such fault. The count
    /// starts at 1 and covers all calls on this thread that have a meter.
    pub fn inject(allocation: Option<u64>) {
        let fault = allocation.map_or(u64::MAX, |number| number.max(1));
        THREAD.with(|thread| thread.heap.fault.set(fault));
    }

    /// How many allocations are left until then; `None` if nothing was asked for, or it has happened.
    pub fn left() -> Option<u64> {
        let left = THREAD.with(|thread| thread.heap.fault.get());
        (left != u64::MAX).then_some(left)
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::alloc::System;
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;

    use parking_lot::Mutex;

    use super::*;
    use crate::limits::Limits;
    use crate::meter::{charge, Meter};

    /// Held by tests that take the reserve.
    static RESERVE_IS_OURS: Mutex<()> = Mutex::new(());

    /// The system's allocator, which first refuses this many allocations.
    struct Refusing(Cell<usize>);

    // SAFETY: all is passed on to the system's, or refused.
    unsafe impl GlobalAlloc for Refusing {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            match self.0.get().checked_sub(1) {
                Some(left) => {
                    self.0.set(left);
                    null_mut()
                }
                // SAFETY: as the caller has promised.
                None => unsafe { System.alloc(layout) },
            }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as the caller has promised.
            unsafe { System.dealloc(block, layout) }
        }
    }

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap_or(Layout::new::<u64>())
    }

    fn taken_now() -> isize {
        THREAD.with(|thread| thread.heap.taken.get())
    }

    #[test]
    fn what_is_taken_and_given_back_is_counted_and_passed_on() {
        let heap = Metered(System);
        let before = taken_now();
        // SAFETY: layouts have sizes, and each block is given back once with its own.
        unsafe {
            let block = heap.alloc_zeroed(layout(64));
            assert_eq!(std::slice::from_raw_parts(block, 64), [0; 64]);
            block.write_bytes(7, 64);
            assert_eq!(taken_now() - before, 64);
            let block = heap.realloc(block, layout(64), 256);
            assert_eq!(std::slice::from_raw_parts(block, 64), [7; 64]);
            assert_eq!(taken_now() - before, 256);
            let other = heap.alloc(layout(8));
            assert_eq!(taken_now() - before, 264);
            heap.dealloc(block, layout(256));
            heap.dealloc(other, layout(8));
        }
        assert_eq!(taken_now(), before);
    }

    #[test]
    fn a_refusal_is_passed_on_where_no_call_can_end() {
        let heap = Metered(Refusing(Cell::new(1)));
        // SAFETY: the layout has a size.
        assert!(unsafe { heap.alloc(layout(64)) }.is_null());
    }

    #[test]
    fn a_refusal_ends_the_call_and_is_made_good_by_the_reserve() {
        let _ours = RESERVE_IS_OURS.lock();
        let heap = Metered(Refusing(Cell::new(1)));
        let limits = Limits { call_steps: 1000, ..Limits::NONE };
        for _ in 0..3 {
            let mut meter = Meter::calling(&limits, None);
            let done: Result<(), LimitExceeded> = meter.run(|| {
                assert_eq!(charge(1), Ok(()));
                heap.0 .0.set(1);
                // SAFETY: the layout has a size, and the block is given back once with it.
                unsafe {
                    let block = heap.alloc(layout(64));
                    assert!(!block.is_null());
                    heap.dealloc(block, layout(64));
                }
                assert_eq!(charge(1), Err(LimitExceeded::new(SYSTEM_MEMORY, 64)));
                Ok(())
            });
            assert_eq!(done, Err(LimitExceeded::new(SYSTEM_MEMORY, 64)));
            assert!(was_refused());
            assert_eq!(meter.spent(), 2);
        }
        assert_eq!(Meter::calling(&limits, None).run(|| charge(1)), Ok(()));
        assert!(!was_refused());
    }

    /// There is one reserve: a refusal while it is in use finds none.
    #[test]
    fn threads_that_are_refused_memory_share_the_reserve() {
        let _ours = RESERVE_IS_OURS.lock();
        let granted = AtomicUsize::new(0);
        let refused = || {
            let heap = Metered(Refusing(Cell::new(0)));
            let limits = Limits { call_steps: 1000, ..Limits::NONE };
            for _ in 0..10 {
                let mut block = null_mut();
                let done = Meter::calling(&limits, None).run(|| {
                    heap.0 .0.set(1);
                    // SAFETY: the layout has a size.
                    block = unsafe { heap.alloc(layout(64)) };
                    charge(1)
                });
                if block.is_null() {
                    assert_eq!(done, Ok(()));
                    continue;
                }
                assert_eq!(done, Err(LimitExceeded::new(SYSTEM_MEMORY, 64)));
                granted.fetch_add(1, Ordering::Relaxed);
                // SAFETY: it has come from there with this layout, and is given back once.
                unsafe {
                    block.write_bytes(7, 64);
                    heap.dealloc(block, layout(64));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(refused);
            }
        });
        assert!(granted.into_inner() > 0);
    }

    #[test]
    fn a_call_that_takes_too_much_ends_and_may_give_back_in_time() {
        let heap = Metered(System);
        let limits = Limits { work_bytes: 4096, ..Limits::NONE };
        let take = |bytes: usize, keep: bool| {
            // SAFETY: the layout has a size, and the block is given back once with it.
            unsafe {
                let block = heap.alloc(layout(bytes));
                if !keep {
                    heap.dealloc(block, layout(bytes));
                }
                let done = charge(1);
                if keep {
                    heap.dealloc(block, layout(bytes));
                }
                done
            }
        };
        let run = |bytes, keep| Meter::calling(&limits, None).run(|| take(bytes, keep));
        assert_eq!(run(4096, true), Ok(()));
        assert_eq!(run(1 << 20, false), Ok(()));
        assert_eq!(run(1 << 20, true), Err(LimitExceeded::new(WORK_BYTES, 4096)));
        assert_eq!(run(4096, true), Ok(()));
    }
}
