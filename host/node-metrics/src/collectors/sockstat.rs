//! `sockstat`: sockets by protocol. Upstream: `collector/sockstat_linux.go`; `net/sockstat` and
//! `net/sockstat6` of procfs.

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::sink::{Kind, Output};
use crate::text::{format_into, is_name_part};
use std::collections::HashSet;

/// States that upstream shows, in upstream's order.
const STATES: [&str; 6] = ["inuse", "orphan", "tw", "alloc", "mem", "memory"];
/// Index of `mem`, whose unit is pages.
const MEM: usize = 4;

#[derive(Default)]
pub(crate) struct Sockstat {
    /// Protocols that were shown already in this round.
    shown: HashSet<String>,
    name: String,
    help: String,
}

impl Collector for Sockstat {
    fn name(&self) -> &'static str {
        "sockstat"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        self.shown.clear();
        for file in ["net/sockstat", "net/sockstat6"] {
            let path = round.paths.procfs(file);
            match round.reader.text(&path) {
                Ok(text) => self.parse(text, output).map_err(|error| error.of(&path))?,
                // If the kernel does not have the protocol, the file does not exist.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Sockstat {
    fn parse(&mut self, text: &str, output: &mut Output<'_>) -> std::result::Result<(), Malformed> {
        let page_bytes = rustix::param::page_size() as f64;
        for (number, line) in text.lines().enumerate() {
            let malformed = || Malformed::new(number, "a protocol, states and counts", line);
            let mut fields = line.split(' ');
            let protocol = fields.next().unwrap_or_default();
            let protocol = protocol.strip_suffix(':').unwrap_or(protocol);
            let (mut used, mut is_empty) = (0.0, true);
            let mut counts = [None; STATES.len()];
            // As in upstream, `inuse` is shown even if it is absent in the file.
            counts[0] = Some(0.0);
            while let Some(state) = fields.next() {
                let count: i64 =
                    fields.next().and_then(|count| count.parse().ok()).ok_or_else(malformed)?;
                is_empty = false;
                if state == "used" {
                    used = count as f64;
                } else if let Some(place) = STATES.iter().position(|known| *known == state) {
                    counts[place] = Some(count as f64);
                }
            }
            // A repeated protocol is an error, because it would repeat series.
            let is_first = self.shown.insert(protocol.to_owned());
            if is_empty || !is_first || !is_name_part(protocol) {
                return Err(malformed());
            }
            if protocol == "sockets" {
                let help = "Number of IPv4 sockets in use.";
                output.single("node_sockstat_sockets_used", help, Kind::Gauge, used);
                continue;
            }
            for (state, count) in STATES.into_iter().zip(counts) {
                if let Some(count) = count {
                    self.write(protocol, state, count, output);
                }
            }
            if let Some(pages) = counts[MEM] {
                self.write(protocol, "mem_bytes", pages * page_bytes, output);
            }
        }
        Ok(())
    }

    fn write(&mut self, protocol: &str, state: &str, value: f64, output: &mut Output<'_>) {
        let name = format_args!("node_sockstat_{protocol}_{state}");
        let help = format_args!("Number of {protocol} sockets in state {state}.");
        let (name, help) = (format_into(&mut self.name, name), format_into(&mut self.help, help));
        output.single(name, help, Kind::Gauge, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    #[test]
    fn sockets_by_protocol_and_state() {
        let tree = Tree::new();
        tree.write(
            "proc/net/sockstat",
            "sockets: used 229\nTCP: inuse 4 orphan 0 tw 4 alloc 17 mem 3\nUDPLITE: inuse 0\n\
             FRAG: inuse 0 memory 5\n",
        );
        tree.write("proc/net/sockstat6", "TCP6: inuse 17\nFRAG6: memory 0 other 1\n");
        let mut recorder = Recorder::default();
        tree.collect_into(&mut Sockstat::default(), &mut recorder).expect("collected");
        let mem_bytes = format!("node_sockstat_TCP_mem_bytes {}", 3 * rustix::param::page_size());
        assert_eq!(
            recorder.samples,
            [
                "node_sockstat_sockets_used 229",
                "node_sockstat_TCP_inuse 4",
                "node_sockstat_TCP_orphan 0",
                "node_sockstat_TCP_tw 4",
                "node_sockstat_TCP_alloc 17",
                "node_sockstat_TCP_mem 3",
                &mem_bytes,
                "node_sockstat_UDPLITE_inuse 0",
                "node_sockstat_FRAG_inuse 0",
                "node_sockstat_FRAG_memory 5",
                "node_sockstat_TCP6_inuse 17",
                "node_sockstat_FRAG6_inuse 0",
                "node_sockstat_FRAG6_memory 0",
            ]
        );
        assert_eq!(recorder.families[1].1, "Number of TCP sockets in state inuse.");
        tree.remove("proc/net/sockstat6");
        assert_eq!(tree.collect(&mut Sockstat::default()).expect("collected").len(), 10);
    }

    #[test]
    fn other_text_is_named() {
        let tree = Tree::new();
        for hostile in [
            "TCP:",
            "TCP: inuse",
            "TCP: inuse x",
            "",
            "T P: inuse 1 2",
            "T-P: inuse 1",
            "sockets: used 2",
        ] {
            tree.write("proc/net/sockstat", format!("sockets: used 1\n{hostile}\n"));
            let error = tree.collect(&mut Sockstat::default()).expect_err(hostile).to_string();
            assert!(error.contains("sockstat:2: expected a protocol"), "{error}");
        }
    }
}
