//! `netdev`: counters of network devices. Upstream: `collector/netdev_linux.go` and
//! `collector/netdev_common.go`.
//!
//! Counters are read by rtnetlink, as in upstream, or else from `net/dev` of procfs, in which only
//! [`NO_HANDLER`] is missing. In both cases the network namespace is that of this process.

mod netlink;

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::read::Reader;
use crate::sink::{Kind, Output};
use netlink::Socket;
use rustix::io::Errno;

const COUNTS: usize = 17;

macro_rules! families {
    ($($key:literal),* $(,)?) => {
        [$((
            concat!("node_network_", $key, "_total"),
            concat!("Network device statistic ", $key, "."),
        )),*]
    };
}

/// Families in the order of `net/dev`.
const FAMILIES: [(&str, &str); COUNTS] = families![
    "receive_bytes",
    "receive_packets",
    "receive_errs",
    "receive_drop",
    "receive_fifo",
    "receive_frame",
    "receive_compressed",
    "receive_multicast",
    "transmit_bytes",
    "transmit_packets",
    "transmit_errs",
    "transmit_drop",
    "transmit_fifo",
    "transmit_colls",
    "transmit_carrier",
    "transmit_compressed",
    "receive_nohandler",
];
/// Index of the packets that were dropped because no protocol handled them.
const NO_HANDLER: usize = COUNTS - 1;

#[derive(Default)]
pub(crate) struct Netdev {
    devices: Vec<Device>,
    socket: Option<Socket>,
    /// Whether a sandbox forbids netlink sockets, so that no further attempt is made.
    is_forbidden: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Device {
    name: String,
    /// Counts by index in [`FAMILIES`]. There may be fewer counts than families.
    counts: Vec<u64>,
}

impl Collector for Netdev {
    fn name(&self) -> &'static str {
        "netdev"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        self.devices.clear();
        if !self.read_links(round.reader) {
            // A failed request may have returned some of the devices.
            self.devices.clear();
            let path = round.paths.procfs("net/dev");
            let text = round.reader.text(&path)?;
            parse(text, &mut self.devices).map_err(|error| error.of(&path))?;
        }
        // Sorted, because the kernel's order is that of a hash table.
        self.devices.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        self.devices.dedup_by(|one, other| one.name == other.name);
        for (place, (name, help)) in FAMILIES.into_iter().enumerate() {
            let mut family = output.family(name, help, Kind::Counter);
            for Device { name, counts } in &self.devices {
                if let Some(count) = counts.get(place) {
                    family.sample(&[("device", name)], *count as f64);
                }
            }
        }
        Ok(())
    }
}

impl Netdev {
    /// Reads the devices by rtnetlink; returns whether this succeeded.
    fn read_links(&mut self, reader: &mut Reader) -> bool {
        if self.is_forbidden {
            return false;
        }
        // Taken out of `self`, so that the socket is closed on each early return.
        let mut socket = match self.socket.take().map_or_else(Socket::open, Ok) {
            Ok(socket) => socket,
            Err(error) => {
                // A lack of descriptors or memory may pass; a refusal lasts as long as the process.
                self.is_forbidden = !matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM);
                return false;
            }
        };
        // After an error, unread answers may remain in the socket, so it is closed.
        if socket.read_links(reader, &mut self.devices).is_err() {
            return false;
        }
        self.socket = Some(socket);
        true
    }
}

/// Parses `net/dev`: two lines of headings, and then lines with name, colon and counts.
fn parse(text: &str, devices: &mut Vec<Device>) -> std::result::Result<(), Malformed> {
    for (number, line) in text.lines().enumerate().skip(2) {
        let malformed = || Malformed::new(number, "a device, a colon and 16 counts", line);
        // Names may contain colons.
        let (name, counts) = line.rsplit_once(':').ok_or_else(malformed)?;
        let counts = counts.split_ascii_whitespace().map(str::parse);
        let counts: Vec<u64> =
            counts.collect::<std::result::Result<_, _>>().map_err(|_| malformed())?;
        if counts.len() != NO_HANDLER {
            return Err(malformed());
        }
        devices.push(Device { name: name.trim().to_owned(), counts });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    const HEADINGS: &str = "Inter-|   Receive   |  Transmit\n face |bytes    packets|bytes\n";

    fn without_netlink() -> Netdev {
        Netdev { is_forbidden: true, ..Netdev::default() }
    }

    #[test]
    fn devices_of_procfs() {
        let tree = Tree::new();
        let lines = "wlan0: 10437182923 13899359    1    2    3    4     5     6 \
                     2851649360 11726200 7 8 9 10 11 12\n  \
                     eth0:0:       0       0    0    0    0    0          0         0        \
                     1       0    0    0    0     0       0          0\n";
        tree.write("proc/net/dev", format!("{HEADINGS}{lines}"));
        let mut recorder = Recorder::default();
        tree.collect_into(&mut without_netlink(), &mut recorder).expect("collected");
        assert_eq!(recorder.samples.len(), 2 * NO_HANDLER);
        let wlan: Vec<&str> = recorder
            .samples
            .iter()
            .filter_map(|line| line.strip_prefix("node_network_"))
            .filter(|line| line.contains(r#"{device="wlan0"}"#))
            .collect();
        let expected = [
            ("receive_bytes", "10437182923"),
            ("receive_packets", "13899359"),
            ("receive_errs", "1"),
            ("receive_drop", "2"),
            ("receive_fifo", "3"),
            ("receive_frame", "4"),
            ("receive_compressed", "5"),
            ("receive_multicast", "6"),
            ("transmit_bytes", "2851649360"),
            ("transmit_packets", "11726200"),
            ("transmit_errs", "7"),
            ("transmit_drop", "8"),
            ("transmit_fifo", "9"),
            ("transmit_colls", "10"),
            ("transmit_carrier", "11"),
            ("transmit_compressed", "12"),
        ];
        let expected =
            expected.map(|(key, value)| format!("{key}_total{{device=\"wlan0\"}} {value}"));
        assert_eq!(wlan, expected);
        assert_eq!(
            recorder.value(r#"node_network_transmit_bytes_total{device="eth0:0"}"#),
            Some(1.0)
        );
        assert_eq!(recorder.families[0].1, "Network device statistic receive_bytes.");
    }

    #[test]
    fn other_text_is_named() {
        let tree = Tree::new();
        for hostile in ["eth0", "eth0: 1 2 3", "eth0: -1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", ""] {
            tree.write("proc/net/dev", format!("{HEADINGS}{hostile}\n"));
            let error = tree.collect(&mut without_netlink()).expect_err(hostile).to_string();
            assert!(error.contains("dev:3: expected a device"), "{error}");
        }
    }

    /// In a sandbox that forbids netlink, both read `net/dev`.
    #[test]
    fn netlink_and_procfs_have_the_same_devices() {
        let tree = Tree::new();
        tree.write("proc/net/dev", std::fs::read("/proc/net/dev").expect("a file"));
        let series = |mut netdev: Netdev| -> Vec<String> {
            let samples = tree.collect(&mut netdev).expect("collected").into_iter();
            let names = samples.filter_map(|line| Some(line.split_once(' ')?.0.to_owned()));
            names.filter(|name| !name.contains("nohandler")).collect()
        };
        assert_eq!(series(Netdev::default()), series(without_netlink()));
    }
}
