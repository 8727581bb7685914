//! Floats that wait while the log is read, until several of their series are there.
//!
//! ```text
//! pages ─▶ 256 series ─▶ 24 rows each
//! ```
//!
//! They only make the replay faster. A head that was accepted under a limit must come back under
//! it, so they take nothing that the head may need: a page is made while there is memory for
//! caches, never moved, and given back once there is not.

/// Floats of a series that wait, at most. Chunks are full after a multiple of it.
const ROWS: usize = 24;

/// Series of a page.
const PAGE_SERIES: usize = 256;

/// Series whose floats wait: those of a larger head would take too much memory, and come too
/// rarely for several to be there soon.
const SERIES_MAX: usize = 64 * 1024;

/// Time and value.
pub type Row = (i64, f64);

/// The floats that wait, by the number of their slot.
#[derive(Default)]
pub struct WaitingFloats {
    pages: Vec<Option<Page>>,
    /// Whether no page is made any more.
    is_closed: bool,
}

struct Page {
    rows: Box<[[Row; ROWS]]>,
    counts: [u8; PAGE_SERIES],
}

/// What became of a row.
pub enum Waits {
    /// It waits.
    Yes,
    /// It waits, and no other of its series can.
    Full,
    /// There is no place for it.
    No,
}

impl Page {
    fn new() -> Page {
        let rows = vec![[(0, 0.0); ROWS]; PAGE_SERIES].into_boxed_slice();
        Page { rows, counts: [0; PAGE_SERIES] }
    }
}

impl WaitingFloats {
    /// Makes places for a series' floats, unless there are enough.
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

    /// Lets a row wait.
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

    /// Takes what waits of a series: that many of these rows.
    pub fn take(&mut self, at: usize) -> Option<([Row; ROWS], usize)> {
        let page = self.pages.get_mut(at / PAGE_SERIES)?.as_mut()?;
        let at = at % PAGE_SERIES;
        let count = usize::from(std::mem::take(&mut page.counts[at]));
        (count > 0).then_some((page.rows[at], count))
    }

    /// Numbers of the slots that may have rows are below this one.
    pub fn end(&self) -> usize {
        self.pages.len() * PAGE_SERIES
    }

    /// Whether there are places.
    pub fn is_open(&self) -> bool {
        !self.is_closed
    }

    /// Gives all memory back, and makes no places any more. What waits is lost.
    pub fn close(&mut self) {
        *self = WaitingFloats { pages: Vec::new(), is_closed: true };
    }
}
