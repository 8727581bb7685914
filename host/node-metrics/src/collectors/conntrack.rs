//! `conntrack`: the table of tracked connections. Upstream: `collector/conntrack_linux.go`; the
//! kernel's `Documentation/networking/nf_conntrack-sysctl.rst`. `net/stat/nf_conntrack` has a line
//! with names, and then for each processor a line with hexadecimal counts.

use super::{Collector, Round};
use crate::error::{CollectError, Malformed, Result};
use crate::sink::{Kind, Output};

const NO_MODULE: CollectError = CollectError::NoData("connections are not tracked");

/// Column of each count, and name and help of its family.
const COUNTS: [(usize, &str, &str); 8] = [
    (2, "node_nf_conntrack_stat_found", "Number of searched entries which were successful."),
    (4, "node_nf_conntrack_stat_invalid", "Number of packets seen which can not be tracked."),
    (
        5,
        "node_nf_conntrack_stat_ignore",
        "Number of packets seen which are already connected to a conntrack entry.",
    ),
    (8, "node_nf_conntrack_stat_insert", "Number of entries inserted into the list."),
    (
        9,
        "node_nf_conntrack_stat_insert_failed",
        "Number of entries for which list insertion was attempted but failed.",
    ),
    (10, "node_nf_conntrack_stat_drop", "Number of packets dropped due to conntrack failure."),
    (
        11,
        "node_nf_conntrack_stat_early_drop",
        "Number of dropped conntrack entries to make room for new ones, if maximum table size was \
         reached.",
    ),
    (
        16,
        "node_nf_conntrack_stat_search_restart",
        "Number of conntrack table lookups which had to be restarted due to hashtable resizes.",
    ),
];
/// Number of columns. Linux before 2.6.35 has no column for restarts.
const COLUMNS: std::ops::RangeInclusive<usize> = 16..=17;

pub(crate) struct Conntrack;

impl Collector for Conntrack {
    fn name(&self) -> &'static str {
        "conntrack"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let mut number = |file: &str| -> Result<u64> {
            let path = round.paths.procfs(file);
            match round.reader.number(&path) {
                Ok(number) => Ok(number),
                // The file exists only while the kernel's module is loaded.
                Err(rustix::io::Errno::NOENT) => Err(NO_MODULE),
                Err(error) => Err(CollectError::read(&path, error)),
            }
        };
        let entries = number("sys/net/netfilter/nf_conntrack_count")?;
        let name = "node_nf_conntrack_entries";
        let help = "Number of currently allocated flow entries for connection tracking.";
        output.single(name, help, Kind::Gauge, entries as f64);
        let limit = number("sys/net/netfilter/nf_conntrack_max")?;
        let name = "node_nf_conntrack_entries_limit";
        let help = "Maximum size of connection tracking table.";
        output.single(name, help, Kind::Gauge, limit as f64);

        let path = round.paths.procfs("net/stat/nf_conntrack");
        let text = match round.reader.text(&path) {
            Ok(text) => text,
            Err(error) if error.is_not_found() => return Err(NO_MODULE),
            Err(error) => return Err(error),
        };
        let sums = parse(text).map_err(|error| error.of(&path))?;
        for ((_, name, help), sum) in COUNTS.into_iter().zip(sums) {
            output.single(name, help, Kind::Gauge, sum as f64);
        }
        Ok(())
    }
}

/// Sums the counts over all processors.
fn parse(text: &str) -> std::result::Result<[u64; COUNTS.len()], Malformed> {
    let mut sums = [0u64; COUNTS.len()];
    for (number, line) in text.lines().enumerate().skip(1) {
        let malformed = || Malformed::new(number, "16 or 17 hexadecimal counts", line);
        let columns = line.split_ascii_whitespace().map(|field| u64::from_str_radix(field, 16));
        let columns: Vec<u64> =
            columns.collect::<std::result::Result<_, _>>().map_err(|_| malformed())?;
        if !COLUMNS.contains(&columns.len()) {
            return Err(malformed());
        }
        for (sum, (column, ..)) in sums.iter_mut().zip(COUNTS) {
            // Sums wrap, so that invalid counts cause no panic; old kernels lack the last column.
            *sum = sum.wrapping_add(columns.get(column).copied().unwrap_or_default());
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    const NAMES: &str = "entries searched found new invalid ignore delete delete_list insert \
        insert_failed drop early_drop icmp_error expect_new expect_create expect_delete \
        search_restart\n";

    #[test]
    fn sums_over_processors() {
        let tree = Tree::new();
        let error = tree.collect(&mut Conntrack).expect_err("no file");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        tree.write("proc/sys/net/netfilter/nf_conntrack_count", "123\n");
        tree.write("proc/sys/net/netfilter/nf_conntrack_max", "65536\n");
        let mut recorder = Recorder::default();
        let error = tree.collect_into(&mut Conntrack, &mut recorder).expect_err("no counts");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        assert_eq!(recorder.samples.len(), 2);
        let lines = "21 0 a 0 3 4bd8 0 0 1 2 5 6 0 0 0 0 7\n21 0 1 0 0 10 0 0 0 0 0 0 0 0 0 0\n";
        tree.write("proc/net/stat/nf_conntrack", format!("{NAMES}{lines}"));
        let samples = tree.collect(&mut Conntrack).expect("collected");
        assert_eq!(
            samples,
            [
                "node_nf_conntrack_entries 123",
                "node_nf_conntrack_entries_limit 65536",
                "node_nf_conntrack_stat_found 11",
                "node_nf_conntrack_stat_invalid 3",
                "node_nf_conntrack_stat_ignore 19432",
                "node_nf_conntrack_stat_insert 1",
                "node_nf_conntrack_stat_insert_failed 2",
                "node_nf_conntrack_stat_drop 5",
                "node_nf_conntrack_stat_early_drop 6",
                "node_nf_conntrack_stat_search_restart 7",
            ]
        );
        for hostile in ["1 2 3", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 xyz", "-1"] {
            tree.write("proc/net/stat/nf_conntrack", format!("{NAMES}{hostile}"));
            let error = tree.collect(&mut Conntrack).expect_err(hostile).to_string();
            assert!(error.contains("nf_conntrack:2: expected 16 or 17"), "{error}");
        }
    }
}
