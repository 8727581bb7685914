//! `stat`: boot time, interrupts, context switches, forks and processes. Upstream:
//! `collector/stat_linux.go`.

use super::{Collector, Round};
use crate::error::Result;
use crate::sink::{Kind, Output};

pub(crate) struct Stat;

impl Collector for Stat {
    fn name(&self) -> &'static str {
        "stat"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let stat = round.stat.read(round.paths, round.reader)?;
        let families = [
            (
                "node_intr_total",
                "Total number of interrupts serviced.",
                Kind::Counter,
                stat.interrupts,
            ),
            (
                "node_context_switches_total",
                "Total number of context switches.",
                Kind::Counter,
                stat.context_switches,
            ),
            ("node_forks_total", "Total number of forks.", Kind::Counter, stat.forks),
            ("node_boot_time_seconds", "Node boot time, in unixtime.", Kind::Gauge, stat.boot_time),
            (
                "node_procs_running",
                "Number of processes in runnable state.",
                Kind::Gauge,
                stat.running,
            ),
            (
                "node_procs_blocked",
                "Number of processes blocked waiting for I/O to complete.",
                Kind::Gauge,
                stat.blocked,
            ),
        ];
        for (name, help, kind, value) in families {
            output.single(name, help, kind, value as f64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn counts_of_the_kernel() {
        let tree = Tree::new();
        tree.write(
            "proc/stat",
            "cpu  1 2 3\nintr 8885917 17 0 0\nctxt 38014093\nbtime 1418183276\nprocesses 26442\n\
             procs_running 2\nprocs_blocked 1\nsoftirq 5057579 250191\n",
        );
        let samples = tree.collect(&mut Stat).expect("collected");
        assert_eq!(
            samples,
            [
                "node_intr_total 8885917",
                "node_context_switches_total 38014093",
                "node_forks_total 26442",
                "node_boot_time_seconds 1418183276",
                "node_procs_running 2",
                "node_procs_blocked 1",
            ]
        );
        tree.write("proc/stat", "ctxt -1\n");
        assert!(tree.collect(&mut Stat).is_err());
    }
}
