//! Floats that wait during replay until several of the same series have been read.
//!
//! ```text
//! pages ─▶ 256 series ─▶ 24 rows each
//! ```
//!
//! Waiting only makes the replay faster. A head that was accepted under a memory limit must be
//! restored under it, so waiting floats use no memory that the head may need: pages are made only
//! while there is memory for caches, are never moved, and are freed once memory is short.

/// Largest number of floats of a series that wait. A full chunk has a multiple of this number.
const ROWS: usize = 24;

const PAGE_SERIES: usize = 256;

/// Series from this slot on have no waiting floats: in a larger head these would need too much
/// memory, and floats of the same series follow each other too rarely.
const SERIES_MAX: usize = 64 * 1024;

/// Time in milliseconds, and value.
pub type Row = (i64, f64);

/// Waiting floats, by the slot number of their series.
#[derive(Default)]
pub struct WaitingFloats {
    pages: Vec<Option<Page>>,
    /// Whether no further page is made.
    is_closed: bool,
}

struct Page {
    rows: Box<[[Row; ROWS]]>,
    counts: [u8; PAGE_SERIES],
}

pub enum Waits {
    Yes,
    /// The row waits, and its series has no room for another row.
    Full,
    /// The row has no place to wait.
    No,
}

impl Page {
    fn new() -> Page {
        let rows = vec![[(0, 0.0); ROWS]; PAGE_SERIES].into_boxed_slice();
        Page { rows, counts: [0; PAGE_SERIES] }
    }
}

impl WaitingFloats {
    /// Makes room for the floats of a series, if its slot is below [`SERIES_MAX`].
    pub fn add_series(&mut self, at: usize) {
        let page = at / PAGE_SERIES;
        if self.is_closed || at >= SERIES_MAX {
            return;
        }
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page].get_or_insert_with(Page::new);
    }

    #[inline(always)]
    pub fn push(&mut self, at: usize, row: Row) -> Waits {
        let Some(Some(page)) = self.pages.get_mut(at / PAGE_SERIES) else { return Waits::No };
        let at = at % PAGE_SERIES;
        let count = &mut page.counts[at];
        if let Some(place) = page.rows[at].get_mut(usize::from(*count)) {
            *place = row;
            *count += 1;
        }
        if usize::from(*count) == ROWS { Waits::Full } else { Waits::Yes }
    }

    /// Takes the waiting rows of a series: an array, and how many of its first rows are valid.
    pub fn take(&mut self, at: usize) -> Option<([Row; ROWS], usize)> {
        let page = self.pages.get_mut(at / PAGE_SERIES)?.as_mut()?;
        let at = at % PAGE_SERIES;
        let count = usize::from(std::mem::take(&mut page.counts[at]));
        (count > 0).then_some((page.rows[at], count))
    }

    /// Upper bound of slot numbers that may have rows, exclusive.
    pub fn end(&self) -> usize {
        self.pages.len() * PAGE_SERIES
    }

    pub fn is_open(&self) -> bool {
        !self.is_closed
    }

    /// Frees all memory for good. Waiting rows are lost.
    pub fn close(&mut self) {
        *self = WaitingFloats { pages: Vec::new(), is_closed: true };
    }
}
