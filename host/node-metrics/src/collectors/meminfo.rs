//! `meminfo`: memory use. Upstream: `collector/meminfo_linux.go`; `proc_meminfo(5)`.
//!
//! Only fields that upstream knows are shown, because its dashboards use no others.

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::sink::{Kind, Output};

const KIB: f64 = 1024.0;

struct Field {
    key: &'static str,
    name: &'static str,
    help: &'static str,
}

macro_rules! fields {
    ($($key:literal $name:literal),* $(,)?) => {
        [$(Field {
            key: $key,
            name: concat!("node_memory_", $name),
            help: concat!("Memory information field ", $name, "."),
        }),*]
    };
}

/// Fields in the kernel's order, so that each search can start after the previous match.
const FIELDS: [Field; 51] = fields![
    "MemTotal" "MemTotal_bytes",
    "MemFree" "MemFree_bytes",
    "MemAvailable" "MemAvailable_bytes",
    "Buffers" "Buffers_bytes",
    "Cached" "Cached_bytes",
    "SwapCached" "SwapCached_bytes",
    "Active" "Active_bytes",
    "Inactive" "Inactive_bytes",
    "Active(anon)" "Active_anon_bytes",
    "Inactive(anon)" "Inactive_anon_bytes",
    "Active(file)" "Active_file_bytes",
    "Inactive(file)" "Inactive_file_bytes",
    "Unevictable" "Unevictable_bytes",
    "Mlocked" "Mlocked_bytes",
    "SwapTotal" "SwapTotal_bytes",
    "SwapFree" "SwapFree_bytes",
    "Zswap" "Zswap_bytes",
    "Zswapped" "Zswapped_bytes",
    "Dirty" "Dirty_bytes",
    "Writeback" "Writeback_bytes",
    "AnonPages" "AnonPages_bytes",
    "Mapped" "Mapped_bytes",
    "Shmem" "Shmem_bytes",
    "Slab" "Slab_bytes",
    "SReclaimable" "SReclaimable_bytes",
    "SUnreclaim" "SUnreclaim_bytes",
    "KernelStack" "KernelStack_bytes",
    "PageTables" "PageTables_bytes",
    "NFS_Unstable" "NFS_Unstable_bytes",
    "Bounce" "Bounce_bytes",
    "WritebackTmp" "WritebackTmp_bytes",
    "CommitLimit" "CommitLimit_bytes",
    "Committed_AS" "Committed_AS_bytes",
    "VmallocTotal" "VmallocTotal_bytes",
    "VmallocUsed" "VmallocUsed_bytes",
    "VmallocChunk" "VmallocChunk_bytes",
    "Percpu" "Percpu_bytes",
    "HardwareCorrupted" "HardwareCorrupted_bytes",
    "AnonHugePages" "AnonHugePages_bytes",
    "ShmemHugePages" "ShmemHugePages_bytes",
    "ShmemPmdMapped" "ShmemPmdMapped_bytes",
    "CmaTotal" "CmaTotal_bytes",
    "CmaFree" "CmaFree_bytes",
    "HugePages_Total" "HugePages_Total",
    "HugePages_Free" "HugePages_Free",
    "HugePages_Rsvd" "HugePages_Rsvd",
    "HugePages_Surp" "HugePages_Surp",
    "Hugepagesize" "Hugepagesize_bytes",
    "DirectMap4k" "DirectMap4k_bytes",
    "DirectMap2M" "DirectMap2M_bytes",
    "DirectMap1G" "DirectMap1G_bytes",
];

pub(crate) struct Meminfo {
    /// Values of this round, by index in [`FIELDS`].
    values: [Option<f64>; FIELDS.len()],
}

impl Default for Meminfo {
    fn default() -> Meminfo {
        Meminfo { values: [None; FIELDS.len()] }
    }
}

impl Collector for Meminfo {
    fn name(&self) -> &'static str {
        "meminfo"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let path = round.paths.procfs("meminfo");
        self.parse(round.reader.text(&path)?).map_err(|error| error.of(&path))?;
        for (Field { name, help, .. }, value) in FIELDS.iter().zip(self.values) {
            if let Some(value) = value {
                output.single(name, help, Kind::Gauge, value);
            }
        }
        Ok(())
    }
}

impl Meminfo {
    fn parse(&mut self, text: &str) -> std::result::Result<(), Malformed> {
        // Values of the previous round must not be shown again.
        self.values = [None; FIELDS.len()];
        let mut next = 0;
        for (number, line) in text.lines().enumerate() {
            let malformed =
                || Malformed::new(number, "a name, a colon, a count and maybe kB", line);
            let (key, rest) = line.split_once(':').ok_or_else(malformed)?;
            let mut words = rest.split_ascii_whitespace();
            let value: u64 =
                words.next().and_then(|count| count.parse().ok()).ok_or_else(malformed)?;
            let factor = match (words.next(), words.next()) {
                (None, _) => 1.0,
                (Some("kB"), None) => KIB,
                _ => return Err(malformed()),
            };
            // Lines are in the order of `FIELDS`, so the first comparison nearly always matches.
            let places = (next..FIELDS.len()).chain(0..next);
            if let Some(place) = places.into_iter().find(|place| FIELDS[*place].key == key) {
                self.values[place] = Some(value as f64 * factor);
                next = place + 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn kilobytes_are_bytes_and_counts_stay() {
        let tree = Tree::new();
        tree.write(
            "proc/meminfo",
            "MemTotal:       16042172 kB\nActive(anon):    2068484 kB\nZswap:  0 kB\n\
             Unaccepted: 1 kB\nHugePages_Total:       7\nCommitted_AS: 18446744073709551615 kB\n\
             MemFree: 3 kB\n",
        );
        let samples = tree.collect(&mut Meminfo::default()).expect("collected");
        assert_eq!(
            samples,
            [
                "node_memory_MemTotal_bytes 16427184128",
                "node_memory_MemFree_bytes 3072",
                "node_memory_Active_anon_bytes 2118127616",
                "node_memory_Zswap_bytes 0",
                "node_memory_Committed_AS_bytes 18889465931478580000000",
                "node_memory_HugePages_Total 7",
            ]
        );
    }

    #[test]
    fn each_round_stands_alone_and_other_text_is_named() {
        let tree = Tree::new();
        let mut collector = Meminfo::default();
        tree.write("proc/meminfo", "MemTotal: 1 kB\n");
        assert_eq!(tree.collect(&mut collector).expect("collected").len(), 1);
        tree.write("proc/meminfo", "");
        assert!(tree.collect(&mut collector).expect("collected").is_empty());
        for hostile in
            ["MemTotal 1 kB", "MemTotal:", "MemTotal: -1 kB", "MemFree: 1 MB", "A: 1 kB kB"]
        {
            tree.write("proc/meminfo", format!("Buffers: 1 kB\n{hostile}"));
            let error = tree.collect(&mut collector).expect_err(hostile).to_string();
            assert!(error.contains("meminfo:2: expected a name"), "{error}");
        }
    }
}
