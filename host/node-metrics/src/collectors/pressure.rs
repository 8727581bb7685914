//! `pressure`: time that tasks waited for a resource. Upstream: `collector/pressure_linux.go`; the
//! kernel's `Documentation/accounting/psi.rst`.

use super::{Collector, Round};
use crate::error::{CollectError, Malformed, Result};
use crate::sink::{Kind, Output};
use rustix::io::Errno;
use std::io;

const MICROS: f64 = 1000.0;

/// A file of procfs, with name and help of the families for its lines `some` and `full`.
struct Resource {
    file: &'static str,
    some: Option<(&'static str, &'static str)>,
    full: Option<(&'static str, &'static str)>,
}

const RESOURCES: [Resource; 4] = [
    Resource {
        file: "pressure/cpu",
        some: Some((
            "node_pressure_cpu_waiting_seconds_total",
            "Total time in seconds that processes have waited for CPU time",
        )),
        full: None,
    },
    Resource {
        file: "pressure/io",
        some: Some((
            "node_pressure_io_waiting_seconds_total",
            "Total time in seconds that processes have waited due to IO congestion",
        )),
        full: Some((
            "node_pressure_io_stalled_seconds_total",
            "Total time in seconds no process could make progress due to IO congestion",
        )),
    },
    Resource {
        file: "pressure/memory",
        some: Some((
            "node_pressure_memory_waiting_seconds_total",
            "Total time in seconds that processes have waited for memory",
        )),
        full: Some((
            "node_pressure_memory_stalled_seconds_total",
            "Total time in seconds no process could make progress due to memory congestion",
        )),
    },
    Resource {
        file: "pressure/irq",
        some: None,
        full: Some((
            "node_pressure_irq_stalled_seconds_total",
            "Total time in seconds no process could make progress due to IRQ congestion",
        )),
    },
];

pub(crate) struct Pressure;

impl Collector for Pressure {
    fn name(&self) -> &'static str {
        "pressure"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let mut is_found = false;
        for resource in &RESOURCES {
            let path = round.paths.procfs(resource.file);
            let text = match round.reader.text(&path) {
                Ok(text) => text,
                // Older kernels do not have all files; `irq` exists since Linux 6.1.
                Err(error) if error.is_not_found() => continue,
                Err(CollectError::Read { source, .. }) if is_disabled(&source) => {
                    return Err(CollectError::NoData("the kernel was started with psi=0"));
                }
                Err(error) => return Err(error),
            };
            let (some, full) = parse(text).map_err(|error| error.of(&path))?;
            for (names, micros) in [(resource.some, some), (resource.full, full)] {
                // As in upstream, some lines are not shown.
                let Some((name, help)) = names else { continue };
                let Some(micros) = micros else {
                    return Err(CollectError::NoData("a line of pressure information is missing"));
                };
                // Divided twice as in upstream, so that the last digit is the same.
                output.single(name, help, Kind::Counter, micros as f64 / MICROS / MICROS);
            }
            is_found = true;
        }
        match is_found {
            true => Ok(()),
            false => Err(CollectError::NoData("the kernel has no pressure information")),
        }
    }
}

fn is_disabled(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error())
}

/// Returns the total times in the lines `some` and `full`, in microseconds.
fn parse(text: &str) -> std::result::Result<(Option<u64>, Option<u64>), Malformed> {
    let (mut some, mut full) = (None, None);
    for (number, line) in text.lines().enumerate() {
        let (slot, rest) = match line.split_once(' ') {
            Some(("some", rest)) => (&mut some, rest),
            Some(("full", rest)) => (&mut full, rest),
            // Lines that later kernels may add are ignored.
            _ => continue,
        };
        let total = rest.split(' ').find_map(|field| field.strip_prefix("total="));
        let total = total.and_then(|total| total.parse().ok());
        *slot = Some(total.ok_or_else(|| Malformed::new(number, "total= and a count", line))?);
    }
    Ok((some, full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const NONE: &str = "avg10=0.00 avg60=0.00 avg300=0.00";

    #[test]
    fn totals_in_seconds() {
        let tree = Tree::new();
        tree.write(
            "proc/pressure/cpu",
            format!("some {NONE} total=14036781\nfull {NONE} total=1\n"),
        );
        tree.write(
            "proc/pressure/io",
            format!("some {NONE} total=159886802\nnew 1\nfull {NONE} total=159229614\n"),
        );
        tree.write("proc/pressure/memory", format!("some {NONE} total=0\nfull {NONE} total=5\n"));
        let mut expected = vec![
            "node_pressure_cpu_waiting_seconds_total 14.036781000000001",
            "node_pressure_io_waiting_seconds_total 159.886802",
            "node_pressure_io_stalled_seconds_total 159.229614",
            "node_pressure_memory_waiting_seconds_total 0",
            "node_pressure_memory_stalled_seconds_total 0.000005",
        ];
        assert_eq!(tree.collect(&mut Pressure).expect("collected"), expected);
        // Since Linux 6.1; it has no line `some`.
        tree.write("proc/pressure/irq", format!("full {NONE} total=8494\n"));
        expected.push("node_pressure_irq_stalled_seconds_total 0.008494");
        assert_eq!(tree.collect(&mut Pressure).expect("collected"), expected);
    }

    #[test]
    fn kernels_without_it_have_no_data() {
        let tree = Tree::new();
        let error = tree.collect(&mut Pressure).expect_err("no files");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        tree.write("proc/pressure/io", format!("some {NONE} total=1\n"));
        let error = tree.collect(&mut Pressure).expect_err("one line");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        for hostile in ["total=", "total=-1", NONE] {
            tree.write("proc/pressure/io", format!("some {hostile}\n"));
            let error = tree.collect(&mut Pressure).expect_err(hostile).to_string();
            assert!(error.contains("io:1: expected total="), "{error}");
        }
        assert!(is_disabled(&Errno::OPNOTSUPP.into()));
    }
}
