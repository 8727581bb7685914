//! Floats that wait during replay until several of their series are there.
//!
//! ```text
//! pages ─▶ 256 series ─▶ 24 rows each
//! ```
//!
//! They only make the replay faster. A head that was accepted under a limit must come back under
//! it, so waiting floats take no memory that the head may need: a page is made while there is
//! memory for caches, is never moved, and is freed once there is not.

/// Most floats of a series that wait. A full chunk has a multiple of them.
const ROWS: usize = 24;

const PAGE_SERIES: usize = 256;

/// Series whose floats may wait: those of a larger head would take too much memory, and come too
/// rarely for several to be there soon.
const SERIES_MAX: usize = 64 * 1024;

/// Time in milliseconds, and value.
pub type Row = (i64, f64);

/// Waiting floats, by the number of their slot.
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
    /// The row waits, and its series has no room for another.
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
    /// Makes room for a series' floats, if the series is one of the first.
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

    /// Takes the waiting rows of a series: as many of the array as the number says.
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
