//! The process metrics of Prometheus' client libraries, with the same names, read from proc(5).

use crate::MetricsText;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs::read_to_string;

/// Adds the metrics that the system provides; metrics that it does not provide are left out.
pub fn show(text: &mut MetricsText) {
    let ticks_per_second = clock_ticks_per_second() as f64;
    let stat = read_to_string("/proc/self/stat").unwrap_or_default();
    let stat = fields(&stat);
    let number = |field: usize| stat.get(field - 3)?.parse::<u64>().ok();
    // Not from `stat`, whose fields count only hundredths of a second.
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    let help = "Total user and system CPU time spent in seconds.";
    text.counter("process_cpu_seconds_total", help, cpu_seconds);
    let system = read_to_string("/proc/stat").unwrap_or_default();
    if let Some((boot_seconds, ticks)) = boot_seconds(&system).zip(number(22)) {
        let help = "Start time of the process since unix epoch in seconds.";
        let seconds = boot_seconds as f64 + ticks as f64 / ticks_per_second;
        text.gauge("process_start_time_seconds", help, seconds);
    }
    if let Some(bytes) = resident_bytes() {
        text.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", bytes);
    }
    if let Some(bytes) = number(23) {
        text.gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", bytes);
    }
    let help = "Maximum amount of virtual memory available in bytes.";
    text.gauge("process_virtual_memory_max_bytes", help, limit(Resource::As));
    // The listing itself has a descriptor open, which is not counted.
    if let Some(files) = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count()) {
        let help = "Number of open file descriptors.";
        text.gauge("process_open_fds", help, files.saturating_sub(1));
    }
    let help = "Maximum number of open file descriptors.";
    text.gauge("process_max_fds", help, limit(Resource::Nofile));
    let network = read_to_string("/proc/self/net/netstat").unwrap_or_default();
    for (name, help, column) in [
        (
            "process_network_receive_bytes_total",
            "Number of bytes received by the process over the network.",
            "InOctets",
        ),
        (
            "process_network_transmit_bytes_total",
            "Number of bytes sent by the process over the network.",
            "OutOctets",
        ),
    ] {
        if let Some(bytes) = of_all_addresses(&network, column) {
            text.counter(name, help, bytes);
        }
    }
}

/// Resident bytes of this process (proc(5), `/proc/self/statm`, second field).
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * page_size() as u64)
}

/// Fields of `/proc/self/stat` from the third on. The second, in parentheses, may contain spaces.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().collect())
}

/// Time of the system's start in seconds since the epoch, by `/proc/stat`.
fn boot_seconds(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// A column of the table `IpExt` in `/proc/self/net/netstat`, which has a line of names and a line
/// of values. The values count the whole network namespace.
fn of_all_addresses(netstat: &str, column: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == column)?;
    values.split_whitespace().nth(at)?.parse().ok()
}

/// A limit as client libraries show it: the largest number if the resource has no limit.
fn limit(resource: Resource) -> f64 {
    getrlimit(resource).current.unwrap_or(u64::MAX) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_system_are_read() {
        let stat = "7 (a) b c) S 1 7 7 0 -1 4194560 100 0 0 0 11 22 0 0 20 0 9 0 3333 4444 55 0";
        let stat = fields(stat);
        assert_eq!((stat[22 - 3], stat[23 - 3]), ("3333", "4444"));
        assert_eq!(boot_seconds("cpu 1 2\nbtime 1700000000\nprocesses 3\n"), Some(1_700_000_000));
        let netstat = "TcpExt: A B\nTcpExt: 1 2\nIpExt: X InOctets OutOctets\nIpExt: 1 70 80\n";
        assert_eq!(of_all_addresses(netstat, "InOctets"), Some(70));
        assert_eq!(of_all_addresses(netstat, "OutOctets"), Some(80));
        assert_eq!((of_all_addresses("", "InOctets"), boot_seconds("")), (None, None));
        assert!(fields("").is_empty());
    }
}
