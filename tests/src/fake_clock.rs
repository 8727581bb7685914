//! A clock for one process that a test sets, by libfaketime between the program and the system.

use crate::clock::OFFSET_VARIABLE;
use crate::preload::{self, LIBRARIES_VARIABLE, Variables};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Paths of the library in Debian's package `faketime`, by machine.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];

/// Names of files that the library leaves after a kill, without the process id at their end:
/// another process with this id would use them.
const LEFTOVERS: [&str; 2] = ["/dev/shm/faketime_shm_", "/dev/shm/sem.faketime_sem_"];

/// A clock that runs on from the time to which it was set.
#[derive(Debug)]
pub struct FakeClock {
    file: PathBuf,
}

impl FakeClock {
    /// Makes a clock that shows a time (milliseconds since the epoch), kept in a file of this
    /// directory.
    pub fn new(directory: &Path, now_ms: i64) -> io::Result<FakeClock> {
        let clock = FakeClock { file: directory.join("clock") };
        clock.set(now_ms)?;
        Ok(clock)
    }

    pub fn set(&self, now_ms: i64) -> io::Result<()> {
        let seconds = now_ms.div_euclid(1000);
        // Replaced by a rename, since the process reads the file at every look at the clock.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("@{}\n", utc(seconds)))?;
        fs::rename(new, &self.file)
    }

    /// Returns a command that starts a program under this clock.
    pub fn starter(&self) -> io::Result<Vec<OsString>> {
        Ok(preload::starter(self.variables()?))
    }

    /// Returns the variables with which a program runs under this clock.
    pub fn variables(&self) -> io::Result<Variables> {
        let library = LIBRARIES.into_iter().find(|path| Path::new(path).exists());
        let missing = "libfaketime is missing: apt-get install faketime";
        let library = library.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, missing))?;
        Ok(Variables::from([
            (LIBRARIES_VARIABLE, library.into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            // Pauses and deadlines use the monotonic clock, which stays real.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("TZ", "UTC".into()),
            (OFFSET_VARIABLE, "0".into()),
        ]))
    }
}

/// Removes the files that remain of a process which ended under such a clock.
pub fn remove_leftovers(process_id: u32) {
    for begin in LEFTOVERS {
        // The files only exist if the process was killed.
        drop(fs::remove_file(format!("{begin}{process_id}")));
    }
}

/// Formats seconds since the epoch as `YYYY-MM-DD hh:mm:ss`.
fn utc(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March, so that the leap day is the last day of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_do() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(utc(1_800_000_000), "2027-01-15 08:00:00");
    }
}
