//! Counts the bytes that the instance has allocated and not freed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Header of each allocation of dlmalloc, which is this target's allocator, in bytes.
const HEADER_BYTES: usize = 4;
/// Sizes of dlmalloc's allocations are multiples of this number of bytes.
const GRAIN_BYTES: usize = 8;

static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

pub fn used_bytes() -> u64 {
    USED_BYTES.load(Relaxed) as u64
}

/// Size of linear memory in bytes, which never shrinks.
pub fn linear_bytes() -> u64 {
    core::arch::wasm32::memory_size::<0>() as u64 * 64 * 1024
}

struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn piece_bytes(bytes: usize) -> usize {
    // Rounded up as dlmalloc does, whose smallest allocation has two grains.
    (bytes + HEADER_BYTES).next_multiple_of(GRAIN_BYTES).max(2 * GRAIN_BYTES)
}

// `GlobalAlloc` is an unsafe trait. Calls are passed to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // `Relaxed` is enough: an instance has one thread.
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
