//! The memory that the instance has in use: what its allocator gave out and did not get back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes before each piece, and the grain in which pieces are cut: those of the standard library's
/// allocator for this target (dlmalloc).
const HEADER_BYTES: usize = 4;
const GRAIN_BYTES: usize = 8;

static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes in use now.
pub fn used_bytes() -> u64 {
    USED_BYTES.load(Relaxed) as u64
}

/// Linear memory, which never shrinks.
pub fn linear_bytes() -> u64 {
    core::arch::wasm32::memory_size::<0>() as u64 * 64 * 1024
}

/// The standard library's allocator, counted.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn piece_bytes(bytes: usize) -> usize {
    (bytes + HEADER_BYTES).next_multiple_of(GRAIN_BYTES).max(2 * GRAIN_BYTES)
}

// An allocator is unsafe by nature. Every call goes to the system's with its arguments unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED_BYTES.fetch_add(piece_bytes(layout.size()), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        USED_BYTES.fetch_sub(piece_bytes(layout.size()), Relaxed);
        unsafe { System.dealloc(piece, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        USED_BYTES.fetch_add(piece_bytes(layout.size()), Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        USED_BYTES.fetch_add(piece_bytes(bytes), Relaxed);
        USED_BYTES.fetch_sub(piece_bytes(layout.size()), Relaxed);
        unsafe { System.realloc(piece, layout, bytes) }
    }
}
