//! Returns memory to the system that only the start, or a rare large request, has needed.
//!
//! Large allocations: after one was freed, glibc keeps up to as many free bytes for each thread,
//! without a time limit. A few request bodies of the largest size would leave a node with ten times
//! the memory that it needs.
//!
//! Pages of code: the code that reads the command line, the configuration and the log runs once,
//! but counts as memory of the process until the system needs the pages: a quarter of the memory of
//! an idle node. A container's limit counts the pages, too. They stay in the system's cache, so
//! code that runs again is mapped without a read. The same holds for the tables of the component's
//! machine code that only loading reads: two megabytes for each kind of machine code.

#[cfg(target_env = "gnu")]
use libc::{M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, c_int, mallopt};
use rustix::mm::{Advice, madvise};
use std::ffi::c_void;
use std::ops::Range;
use std::time::Duration;

/// Time between two checks whether the start is over. It is short, so that the pages are returned
/// before the first scrapes and the first page of the web interface need memory.
const START_POLL: Duration = Duration::from_millis(100);

/// Size from which on an allocation returns to the system when it is freed. Frequent allocations
/// are smaller, because new memory costs a page fault for each 4 KiB.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: c_int = 2 << 20;

/// Free bytes at the end of a thread's memory are returned to the system beyond this number.
#[cfg(target_env = "gnu")]
const FREE_BYTES_MAX: c_int = 4 << 20;

/// Makes large allocations return to the system as soon as they are freed. Must be called before
/// other threads start.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn give_back_large() {
    for (parameter, bytes) in [(M_MMAP_THRESHOLD, LARGE_BYTES), (M_TRIM_THRESHOLD, FREE_BYTES_MAX)]
    {
        // SAFETY: the call takes two numbers and changes nothing but the allocator's own settings,
        // which it reads again at each allocation. No other thread runs yet that could read them.
        let _is_set = unsafe { mallopt(parameter, bytes) };
    }
}

/// Does nothing: other allocators have no such setting.
#[cfg(not(target_env = "gnu"))]
pub fn give_back_large() {}

/// Waits until the start is over, then returns the pages of the program's code and of `constants`.
pub async fn give_back_start(is_over: impl Fn() -> bool, constants: Vec<&'static [u8]>) {
    loop {
        tokio::time::sleep(START_POLL).await;
        if is_over() {
            break;
        }
    }
    for bytes in constants {
        give_back(whole_pages(bytes, rustix::param::page_size()));
    }
    let code = match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => code(&maps),
        Err(error) => {
            tracing::debug!(%error, "pages that only the start needed are kept");
            return;
        }
    };
    for range in code {
        give_back(range);
    }
}

/// Address ranges of code that is mapped from files. `maps` is in the format of `proc_pid_maps(5)`:
/// each line is `begin-end permissions offset device inode path`.
fn code(maps: &str) -> Vec<Range<usize>> {
    let range = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (range, permissions) = (words.next()?, words.next()?);
        // Pages that cannot be written equal the file's. Code generated at run time has no path.
        let is_code = permissions == "r-xp" && words.nth(3)?.starts_with('/');
        let (begin, end) = range.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        is_code.then_some(address(begin)?..address(end)?)
    };
    maps.lines().filter_map(range).collect()
}

/// The pages that are completely within these bytes.
fn whole_pages(bytes: &'static [u8], page_bytes: usize) -> Range<usize> {
    let begin = bytes.as_ptr().expose_provenance();
    let end = begin + bytes.len();
    let begin = begin.next_multiple_of(page_bytes);
    begin..(end - end % page_bytes).max(begin)
}

#[allow(unsafe_code)]
fn give_back(range: Range<usize>) {
    let begin = std::ptr::with_exposed_provenance_mut::<c_void>(range.start);
    // SAFETY: the range is part of a private mapping that was never written to, so its pages can be
    // dropped at any time: the next access reads the same bytes from the file.
    let given = unsafe { madvise(begin, range.len(), Advice::LinuxDontNeed) };
    if let Err(error) = given {
        tracing::debug!(%error, "pages that only the start needed are kept");
    }
}

#[cfg(test)]
mod tests {
    use super::{code, whole_pages};

    #[test]
    fn pages_that_hold_other_things_are_kept() {
        static BYTES: [u8; 100] = [0; 100];
        let begin = BYTES.as_ptr().addr();
        let pages = whole_pages(&BYTES, 16);
        assert!(pages.start >= begin && pages.end <= begin + BYTES.len());
        assert!(
            pages.start.is_multiple_of(16) && pages.end.is_multiple_of(16) && pages.len() >= 80,
            "{pages:?}"
        );
        assert!(whole_pages(&BYTES[..10], 4096).is_empty());
    }

    #[test]
    fn code_of_files_is_found_and_nothing_else() {
        let maps = "\
55d0a000-55d0c000 r--p 00000000 fe:00 6094850                    /bin/a program
55d0c000-55d0d000 r-xp 00002000 fe:00 6094850                    /bin/a program
55d0d000-55d0e000 rw-p 00003000 fe:00 6094850                    /bin/a program
7f00a000-7f00b000 r-xp 00000000 00:00 0
7f00c000-7f00d000 rwxp 00000000 fe:00 7                          /lib/written.so
7f00d000-7f00f000 r-xp 00001000 fe:00 8                          /lib/libc.so.6
7ffd0000-7ffd1000 r-xp 00000000 00:00 0                          [vdso]
not a line
";
        assert_eq!(code(maps), [0x55d0c000..0x55d0d000, 0x7f00d000..0x7f00f000]);
    }
}
