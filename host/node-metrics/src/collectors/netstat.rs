//! `netstat`: counters of network protocols. Upstream: `collector/netstat_linux.go`. `net/netstat`
//! and `net/snmp` of procfs have pairs of lines: a line with names, then a line with values.
//! `net/snmp6` has a name and a value per line.

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::sink::{Kind, Output};
use crate::text::{format_into, is_name_part};

/// Maximum number of counters. About forty are shown.
const COUNTERS_MAX: usize = 1000;

#[derive(Default)]
pub(crate) struct Netstat {
    /// Protocol, name and value. Of equal names, the value from the later file is shown.
    counters: Vec<(String, String, f64)>,
    name: String,
    help: String,
}

impl Collector for Netstat {
    fn name(&self) -> &'static str {
        "netstat"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        self.counters.clear();
        for file in ["net/netstat", "net/snmp"] {
            let path = round.paths.procfs(file);
            self.parse_pairs(round.reader.text(&path)?).map_err(|error| error.of(&path))?;
        }
        let path = round.paths.procfs("net/snmp6");
        match round.reader.text(&path) {
            Ok(text) => self.parse_lines(text).map_err(|error| error.of(&path))?,
            // If the kernel has no IPv6, the file does not exist.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        for (protocol, counter, value) in &self.counters {
            let name = format_args!("node_netstat_{protocol}_{counter}");
            let help = format_args!("Statistic {protocol}{counter}.");
            let name = format_into(&mut self.name, name);
            output.single(name, format_into(&mut self.help, help), Kind::Untyped, *value);
        }
        Ok(())
    }
}

impl Netstat {
    fn parse_pairs(&mut self, text: &str) -> std::result::Result<(), Malformed> {
        let mut lines = text.lines().enumerate();
        while let Some((number, names)) = lines.next() {
            let values = lines.next().map_or("", |(_, values)| values);
            let malformed =
                |found: &str| Malformed::new(number, "names, and as many values below", found);
            let mut names = names.split(' ');
            let mut values = values.split(' ');
            let protocol = names.next().and_then(|name| name.strip_suffix(':'));
            let protocol = protocol.ok_or_else(|| malformed("no protocol"))?;
            // The line with values begins with the protocol as well.
            let _protocol = values.next();
            loop {
                match (names.next(), values.next()) {
                    (Some(name), Some(value)) => {
                        let value = value.parse().map_err(|_| malformed(value))?;
                        self.add(protocol, name, value).ok_or_else(|| malformed(name))?;
                    }
                    (None, None) => break,
                    (Some(other), None) | (None, Some(other)) => return Err(malformed(other)),
                }
            }
        }
        Ok(())
    }

    fn parse_lines(&mut self, text: &str) -> std::result::Result<(), Malformed> {
        for (number, line) in text.lines().enumerate() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(name), Some(value)) = (fields.next(), fields.next()) else { continue };
            // The digit is the last character of the protocol, such as in `Ip6InOctets`.
            let Some(digit) = name.find('6') else { continue };
            let malformed = || Malformed::new(number, "a name and a count", line);
            let value = value.parse().map_err(|_| malformed())?;
            let (protocol, name) = name.split_at(digit + 1);
            self.add(protocol, name, value).ok_or_else(malformed)?;
        }
        Ok(())
    }

    /// Adds a counter; `None` if its name is invalid, or if there are too many counters.
    fn add(&mut self, protocol: &str, name: &str, value: f64) -> Option<()> {
        // Checked first, because names that are not shown need not be valid.
        if !is_shown(protocol, name) {
            return Some(());
        }
        if !is_name_part(protocol) || !is_name_part(name) {
            return None;
        }
        let is_full = self.counters.len() == COUNTERS_MAX;
        let known = self.counters.iter_mut().find(|known| known.0 == protocol && known.1 == name);
        match known {
            Some(known) => known.2 = value,
            None if is_full => return None,
            None => self.counters.push((protocol.to_owned(), name.to_owned(), value)),
        }
        Some(())
    }
}

/// Returns whether upstream's default for `--collector.netstat.fields` matches.
fn is_shown(protocol: &str, name: &str) -> bool {
    if matches!(name, "InErrors" | "InErrs") {
        return true;
    }
    match protocol {
        "Ip" => name == "Forwarding",
        "Ip6" | "IpExt" => matches!(name, "InOctets" | "OutOctets"),
        "Icmp" | "Icmp6" => matches!(name, "InMsgs" | "OutMsgs"),
        "TcpExt" => {
            name.starts_with("Listen")
                || name.starts_with("Syncookies")
                || matches!(name, "TCPSynRetrans" | "TCPTimeouts" | "TCPOFOQueue" | "TCPRcvQDrop")
        }
        "Tcp" => matches!(
            name,
            "ActiveOpens"
                | "InSegs"
                | "OutSegs"
                | "OutRsts"
                | "PassiveOpens"
                | "RetransSegs"
                | "CurrEstab"
        ),
        "Udp" | "Udp6" => {
            matches!(
                name,
                "InDatagrams" | "OutDatagrams" | "NoPorts" | "RcvbufErrors" | "SndbufErrors"
            )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    fn tree() -> Tree {
        let tree = Tree::new();
        tree.write(
            "proc/net/netstat",
            "TcpExt: SyncookiesSent EmbryonicRsts ListenDrops TCPTimeouts\nTcpExt: 0 9 3 115\n\
             IpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 6286396970 2786264347\n",
        );
        tree.write(
            "proc/net/snmp",
            "Ip: Forwarding DefaultTTL\nIp: 1 64\nIcmp: InMsgs InErrors OutMsgs\nIcmp: 104 0 120\n\
             Tcp: MaxConn CurrEstab InErrs\nTcp: -1 1 5\nUdpLite: InErrors\nUdpLite: 0\n",
        );
        tree
    }

    const SHOWN: [&str; 11] = [
        "node_netstat_TcpExt_SyncookiesSent 0",
        "node_netstat_TcpExt_ListenDrops 3",
        "node_netstat_TcpExt_TCPTimeouts 115",
        "node_netstat_IpExt_InOctets 6286396970",
        "node_netstat_IpExt_OutOctets 2786264347",
        "node_netstat_Ip_Forwarding 1",
        "node_netstat_Icmp_InMsgs 104",
        "node_netstat_Icmp_InErrors 0",
        "node_netstat_Icmp_OutMsgs 120",
        "node_netstat_Tcp_CurrEstab 1",
        "node_netstat_Tcp_InErrs 5",
    ];

    #[test]
    fn what_upstream_shows_by_default() {
        let tree = tree();
        let mut recorder = Recorder::default();
        tree.collect_into(&mut Netstat::default(), &mut recorder).expect("collected");
        assert_eq!(recorder.samples[..11], SHOWN);
        assert_eq!(recorder.samples[11..], ["node_netstat_UdpLite_InErrors 0"]);
        let (_, help, kind) = &recorder.families[0];
        assert_eq!((help.as_str(), *kind), ("Statistic TcpExtSyncookiesSent.", Kind::Untyped));
        tree.write(
            "proc/net/snmp6",
            "Ip6InReceives   7\nIp6InOctets   460\nIcmp6InMsgs  8\nUdp6NoPorts 2\nother\nUdpLite6InErrors 3\n",
        );
        let samples = tree.collect(&mut Netstat::default()).expect("collected");
        assert_eq!(
            samples[12..],
            [
                "node_netstat_Ip6_InOctets 460",
                "node_netstat_Icmp6_InMsgs 8",
                "node_netstat_Udp6_NoPorts 2",
                "node_netstat_UdpLite6_InErrors 3",
            ]
        );
    }

    #[test]
    fn other_text_is_named() {
        let tree = tree();
        for hostile in [
            "Tcp InErrs\nTcp: 1",
            "Tcp: InErrs",
            "Tcp: InErrs\nTcp:",
            "T p: InErrs\nT: 1 2",
            "Tcp: A\nTcp: x",
        ] {
            tree.write("proc/net/snmp", hostile);
            let error = tree.collect(&mut Netstat::default()).expect_err(hostile).to_string();
            assert!(error.contains("snmp:1: expected names"), "{error}");
        }
        tree.remove("proc/net/snmp");
        assert!(tree.collect(&mut Netstat::default()).expect_err("no file").is_not_found());
    }
}
