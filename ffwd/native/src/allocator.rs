//! The allocator of what Python loads.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// mimalloc, asked for an alignment only where its blocks may lack it. Where the next free block
/// has not the requested alignment, it leaves its short way, although any block would do.
#[derive(Debug)]
pub struct Allocator;

/// The layout to request. mimalloc's blocks are multiples of 8 bytes, and of 16 from there on, at
/// multiples of the same.
#[inline]
fn requested(layout: Layout) -> Layout {
    let is_aligned = layout.align() <= 8 || (layout.align() == 16 && layout.size() >= 16);
    match Layout::from_size_align(layout.size(), 1) {
        Ok(plain) if is_aligned => plain,
        _ => layout,
    }
}

// SAFETY: every call is passed on to mimalloc with a layout that no block of it contradicts. It
// frees and moves blocks by their address.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller has promised.
        unsafe { MiMalloc.alloc(requested(layout)) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller has promised.
        unsafe { MiMalloc.alloc_zeroed(requested(layout)) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller has promised.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller has promised. Up to 8 bytes mimalloc ignores the alignment.
        unsafe { MiMalloc.realloc(block, layout, size) }
    }
}
