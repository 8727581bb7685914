//! `cpu`: the time of each processor by mode, throttling, and isolated and online processors.
//! Upstream: `collector/cpu_linux.go`; `sysfs-devices-system-cpu` in the kernel's ABI
//! documentation.
//!
//! The topology is read again only when the set of processors in `stat` changes: reading takes four
//! files per processor, and nothing changes until a processor goes online or offline.

use super::proc_stat::{CPU_TIMES, CpuTimes, IDLE};
use super::{Collector, Round};
use crate::Paths;
use crate::error::{CollectError, Malformed, Result};
use crate::read::{Reader, numbered};
use crate::sink::{Kind, Output};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Unit of the times in the kernel's files (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// If idle time falls by this much, the processor was replaced, and its times start from 0. Smaller
/// falls are due to the kernel's arithmetic, and the previous value is kept.
const JUMP_BACK_TICKS: u64 = 300;
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
const GUEST_MODES: [&str; 2] = ["user", "nice"];
/// Limit on processor numbers, above that of any kernel (`NR_CPUS`).
const CPU_NUMBER_MAX: u32 = 65_535;

#[derive(Default)]
pub(crate) struct Cpu {
    cpus: Vec<OneCpu>,
    topology: Topology,
    /// Read only once, like in upstream, because the kernel's command line determines it.
    isolated: Option<Vec<String>>,
}

struct OneCpu {
    times: CpuTimes,
    label: String,
}

/// State of the processors as shown in sysfs.
#[derive(Default)]
struct Topology {
    packages: Vec<Throttled>,
    cores: Vec<Throttled>,
    /// Processor numbers and whether each is online; empty if processors cannot go offline.
    online: Vec<(String, bool)>,
}

struct Throttled {
    package: String,
    /// Number of the core; empty for a whole package.
    core: String,
    path: PathBuf,
}

impl Collector for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let Round { paths, reader, stat } = round;
        let have_changed = self.update(&stat.read(paths, reader)?.cpus);
        self.write_times(output);
        if have_changed {
            self.topology = Topology::read(paths, reader);
        }
        self.topology.write(reader, output);
        if self.isolated.is_none() {
            self.isolated = Some(read_isolated(paths, reader)?);
        }
        let mut isolated = output.family(
            "node_cpu_isolated",
            "Whether each core is isolated, information from /sys/devices/system/cpu/isolated.",
            Kind::Gauge,
        );
        for cpu in self.isolated.iter().flatten() {
            isolated.sample(&[("cpu", cpu)], 1.0);
        }
        Ok(())
    }
}

impl Cpu {
    /// Stores the new times; returns whether the set of processors changed.
    fn update(&mut self, now: &[CpuTimes]) -> bool {
        let are_the_same = self.cpus.len() == now.len()
            && self.cpus.iter().zip(now).all(|(before, now)| before.times.number == now.number);
        if !are_the_same {
            let before = std::mem::take(&mut self.cpus);
            let times_of = |number| {
                // Both lists are sorted by number, as a binary search requires.
                let place = before.binary_search_by_key(&number, |cpu: &OneCpu| cpu.times.number);
                place.ok().map(|place| before[place].times)
            };
            self.cpus.extend(now.iter().map(|&CpuTimes { number, .. }| {
                let nothing = CpuTimes { number, ticks: [0; CPU_TIMES] };
                let times = times_of(number).unwrap_or(nothing);
                OneCpu { times, label: number.to_string() }
            }));
        }
        for (cpu, now) in self.cpus.iter_mut().zip(now) {
            let ticks = &mut cpu.times.ticks;
            if ticks[IDLE].saturating_sub(now.ticks[IDLE]) >= JUMP_BACK_TICKS {
                *ticks = [0; CPU_TIMES];
            }
            for (before, now) in ticks.iter_mut().zip(now.ticks) {
                // A counter must never fall, except for a reset.
                *before = now.max(*before);
            }
        }
        !are_the_same
    }

    fn write_times(&self, output: &mut Output<'_>) {
        let mut seconds = output.family(
            "node_cpu_seconds_total",
            "Seconds the CPUs spent in each mode.",
            Kind::Counter,
        );
        for OneCpu { times, label } in &self.cpus {
            for (mode, ticks) in MODES.into_iter().zip(times.ticks) {
                seconds.sample(&[("cpu", label), ("mode", mode)], ticks as f64 / TICKS_PER_SECOND);
            }
        }
        let mut guests = output.family(
            "node_cpu_guest_seconds_total",
            "Seconds the CPUs spent in guests (VMs) for each mode.",
            Kind::Counter,
        );
        for OneCpu { times, label } in &self.cpus {
            for (mode, ticks) in GUEST_MODES.into_iter().zip(&times.ticks[MODES.len()..]) {
                guests.sample(&[("cpu", label), ("mode", mode)], *ticks as f64 / TICKS_PER_SECOND);
            }
        }
    }
}

impl Topology {
    /// Reads the topology. Unreadable files are skipped, because virtual machines have few of them.
    fn read(paths: &Paths, reader: &mut Reader) -> Topology {
        let mut topology = Topology::default();
        let mut packages: BTreeMap<u64, PathBuf> = BTreeMap::new();
        let mut cores: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
        let directory = paths.sysfs("devices/system/cpu");
        let cpus = numbered(&directory, "cpu").unwrap_or_default();
        // On x86 the first processor is always online; then upstream shows no processor's state.
        let has_online =
            cpus.first().is_some_and(|cpu| directory.join(cpu).join("online").exists());
        for name in &cpus {
            let cpu = directory.join(name);
            if has_online {
                let is_online =
                    reader.attribute(&cpu.join("online")).is_ok_and(|text| text == b"1");
                topology.online.push((name["cpu".len()..].to_owned(), is_online));
            }
            let mut number = |file: &str| reader.number::<u64>(&cpu.join(file)).ok();
            let Some(package) = number("topology/physical_package_id") else { continue };
            let Some(core) = number("topology/core_id") else { continue };
            // The first processor with a count is used for its core and its package.
            let core_count = "thermal_throttle/core_throttle_count";
            if !cores.contains_key(&(package, core)) && number(core_count).is_some() {
                cores.insert((package, core), cpu.join(core_count));
            }
            let package_count = "thermal_throttle/package_throttle_count";
            if !packages.contains_key(&package) && number(package_count).is_some() {
                packages.insert(package, cpu.join(package_count));
            }
        }
        topology.packages.extend(packages.into_iter().map(|(package, path)| Throttled {
            package: package.to_string(),
            core: String::new(),
            path,
        }));
        topology.cores.extend(cores.into_iter().map(|((package, core), path)| Throttled {
            package: package.to_string(),
            core: core.to_string(),
            path,
        }));
        topology
    }

    fn write(&self, reader: &mut Reader, output: &mut Output<'_>) {
        let mut family = output.family(
            "node_cpu_package_throttles_total",
            "Number of times this CPU package has been throttled.",
            Kind::Counter,
        );
        for Throttled { package, path, .. } in &self.packages {
            // If a file no longer exists, only its own series is missing.
            if let Ok(count) = reader.number::<u64>(path) {
                family.sample(&[("package", package)], count as f64);
            }
        }
        let mut family = output.family(
            "node_cpu_core_throttles_total",
            "Number of times this CPU core has been throttled.",
            Kind::Counter,
        );
        for Throttled { package, core, path } in &self.cores {
            if let Ok(count) = reader.number::<u64>(path) {
                family.sample(&[("core", core), ("package", package)], count as f64);
            }
        }
        let mut family = output.family(
            "node_cpu_online",
            "CPUs that are online and being scheduled.",
            Kind::Gauge,
        );
        for (cpu, is_online) in &self.online {
            family.sample(&[("cpu", cpu)], f64::from(u8::from(*is_online)));
        }
    }
}

fn read_isolated(paths: &Paths, reader: &mut Reader) -> Result<Vec<String>> {
    let path = paths.sysfs("devices/system/cpu/isolated");
    let text = match reader.text(&path) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    parse_ranges(text).ok_or_else(|| -> CollectError {
        Malformed::new(0, "numbers and ranges, with commas between", text.trim()).of(&path)
    })
}

/// Parses a list of processors as in `cpuset(7)`, such as `0-3,5`.
fn parse_ranges(text: &str) -> Option<Vec<String>> {
    let mut cpus = Vec::new();
    let number = |text: &str| text.parse().ok().filter(|number| *number <= CPU_NUMBER_MAX);
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (number(first)?, number(last)?);
        // Bounded by `CPU_NUMBER_MAX`, so that an invalid range does not fill the memory.
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus.into_iter().map(|cpu| cpu.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    fn recorded(tree: &Tree, cpu: &mut Cpu) -> Recorder {
        let mut recorder = Recorder::default();
        tree.collect_into(cpu, &mut recorder).expect("collected");
        recorder
    }

    #[test]
    fn times_by_mode_in_seconds() {
        let tree = Tree::new();
        tree.write(
            "proc/stat",
            "cpu  301854 612 111922 8979004 3552 2 3944 0 44 36\n\
             cpu0 44490 19 21045 1087069 220 1 3410 0 2 1\n\
             cpu11 47869 23 16474 1110787 591 0 46 30 3 2\n",
        );
        let samples = tree.collect(&mut Cpu::default()).expect("collected");
        let expected = [
            r#"node_cpu_seconds_total{cpu="0",mode="user"} 444.9"#,
            r#"node_cpu_seconds_total{cpu="0",mode="nice"} 0.19"#,
            r#"node_cpu_seconds_total{cpu="0",mode="system"} 210.45"#,
            r#"node_cpu_seconds_total{cpu="0",mode="idle"} 10870.69"#,
            r#"node_cpu_seconds_total{cpu="0",mode="iowait"} 2.2"#,
            r#"node_cpu_seconds_total{cpu="0",mode="irq"} 0.01"#,
            r#"node_cpu_seconds_total{cpu="0",mode="softirq"} 34.1"#,
            r#"node_cpu_seconds_total{cpu="0",mode="steal"} 0"#,
            r#"node_cpu_seconds_total{cpu="11",mode="user"} 478.69"#,
        ];
        assert_eq!(samples[..9], expected);
        assert_eq!(samples[15], r#"node_cpu_seconds_total{cpu="11",mode="steal"} 0.3"#);
        assert_eq!(
            samples[16..],
            [
                r#"node_cpu_guest_seconds_total{cpu="0",mode="user"} 0.02"#,
                r#"node_cpu_guest_seconds_total{cpu="0",mode="nice"} 0.01"#,
                r#"node_cpu_guest_seconds_total{cpu="11",mode="user"} 0.03"#,
                r#"node_cpu_guest_seconds_total{cpu="11",mode="nice"} 0.02"#,
            ]
        );
    }

    /// Upstream's table of steps: a fall of less than 3 s keeps the previous value, a larger one
    /// resets.
    #[test]
    fn times_that_jump_back_are_held_up_until_they_start_anew() {
        let tree = Tree::new();
        let mut cpu = Cpu::default();
        for (user, idle, user_shown, idle_shown) in [
            (100, 1000, 1.0, 10.0),
            (90, 1100, 1.0, 11.0),
            (110, 801, 1.1, 11.0),
            (110, 800, 1.1, 8.0),
            (50, 0, 0.5, 0.0),
        ] {
            tree.write("proc/stat", format!("cpu0 {user} 0 0 {idle} 0 0 0 0 0 0\n"));
            let recorder = recorded(&tree, &mut cpu);
            let shown = |mode| {
                recorder.value(&format!("node_cpu_seconds_total{{cpu=\"0\",mode=\"{mode}\"}}"))
            };
            assert_eq!(shown("user"), Some(user_shown), "{user} {idle}");
            assert_eq!(shown("idle"), Some(idle_shown), "{user} {idle}");
        }
    }

    #[test]
    fn a_processor_that_comes_back_goes_on_where_others_do() {
        let tree = Tree::new();
        let mut cpu = Cpu::default();
        let mut users = |text: &str| {
            tree.write("proc/stat", text);
            let samples = recorded(&tree, &mut cpu).samples;
            samples
                .into_iter()
                .filter(|line| line.contains("seconds_total") && line.contains("user"))
                .filter(|line| !line.contains("guest"))
                .map(|line| line.replace("node_cpu_seconds_total", ""))
                .collect::<Vec<_>>()
        };
        let (first, second) = ("cpu0 100\n", "cpu1 200\n");
        let shown = |cpu, value| format!("{{cpu=\"{cpu}\",mode=\"user\"}} {value}");
        assert_eq!(users(&format!("{first}{second}")), [shown(0, "1"), shown(1, "2")]);
        assert_eq!(users(second), [shown(1, "2")]);
        assert_eq!(users("cpu0 7\ncpu1 200\n"), [shown(0, "0.07"), shown(1, "2")]);
    }

    #[test]
    fn throttling_by_core_and_package() {
        let tree = Tree::new();
        tree.write("proc/stat", "cpu0 1\ncpu1 1\n");
        // Processors, their packages and cores, and counts of both; cpu1 is a sibling of cpu0.
        for (cpu, package, core, core_count, package_count) in
            [(0, 0, 0, "5", "30"), (1, 0, 0, "7", "31"), (2, 0, 1, "0", ""), (3, 1, 0, "x", "-6")]
        {
            let directory = format!("sys/devices/system/cpu/cpu{cpu}");
            tree.write_all(
                &directory,
                &[
                    ("topology/physical_package_id", &package.to_string()),
                    ("topology/core_id", &core.to_string()),
                    ("thermal_throttle/core_throttle_count", core_count),
                    ("thermal_throttle/package_throttle_count", package_count),
                ],
            );
        }
        tree.write("sys/devices/system/cpu/cpu4/uevent", "");
        let mut cpu = Cpu::default();
        let throttles = |recorder: Recorder| {
            let samples = recorder.samples.into_iter();
            samples.filter(|line| line.contains("throttles")).collect::<Vec<_>>()
        };
        let [package, core_0, core_1] = [
            r#"node_cpu_package_throttles_total{package="0"} 30"#,
            r#"node_cpu_core_throttles_total{core="0",package="0"} 5"#,
            r#"node_cpu_core_throttles_total{core="1",package="0"} 0"#,
        ];
        assert_eq!(throttles(recorded(&tree, &mut cpu)), [package, core_0, core_1]);
        let count = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
        tree.write(count, "6\n");
        assert!(throttles(recorded(&tree, &mut cpu))[1].ends_with(" 6"));
        tree.remove(count);
        assert_eq!(throttles(recorded(&tree, &mut cpu)), [package, core_1]);
    }

    #[test]
    fn isolated_and_online_processors() {
        let tree = Tree::new();
        tree.write("proc/stat", "cpu0 1\n");
        tree.write("sys/devices/system/cpu/isolated", "1,3-5,9\n");
        for (cpu, online) in [("cpu0", "1"), ("cpu1", "0"), ("cpu10", "1")] {
            tree.write(&format!("sys/devices/system/cpu/{cpu}/online"), format!("{online}\n"));
        }
        let flags = |recorder: Recorder| {
            let samples = recorder.samples.into_iter();
            samples.filter(|line| !line.contains("seconds")).collect::<Vec<_>>()
        };
        let isolated =
            ["1", "3", "4", "5", "9"].map(|cpu| format!("node_cpu_isolated{{cpu=\"{cpu}\"}} 1"));
        let shown = flags(recorded(&tree, &mut Cpu::default()));
        assert_eq!(shown[3..], isolated);
        assert_eq!(
            shown[..3],
            [
                r#"node_cpu_online{cpu="0"} 1"#,
                r#"node_cpu_online{cpu="1"} 0"#,
                r#"node_cpu_online{cpu="10"} 1"#,
            ]
        );
        // x86 cannot take the first one offline, and upstream shows none then.
        tree.remove("sys/devices/system/cpu/cpu0/online");
        assert_eq!(flags(recorded(&tree, &mut Cpu::default())), isolated);
        for hostile in ["1-x", "0-4294967295", "-1", "1-2-3"] {
            tree.write("sys/devices/system/cpu/isolated", hostile);
            let error = tree.collect(&mut Cpu::default()).expect_err(hostile).to_string();
            assert!(error.contains("isolated:1: expected numbers"), "{error}");
        }
    }
}
