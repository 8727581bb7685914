//! `mdadm`: software RAID. Upstream: `collector/mdadm_linux.go`; `md(4)`, `mdstat` of procfs, and
//! the kernel's `Documentation/admin-guide/md.rst`.
//!
//! A device has several lines in `mdstat`: one with name, state and disks; one that starts with the
//! number of blocks and may have `[required/active]`; possibly those of bitmap and operation.

use super::{Collector, Round};
use crate::error::{CollectError, Malformed, Result};
use crate::read::{Reader, entries};
use crate::sink::{Kind, Output};
use std::collections::HashSet;
use std::path::Path;

/// Value of the label `state`, and the matching value of [`Array::state`].
const STATES: [(&str, &str); 5] = [
    ("active", "active"),
    ("inactive", "inactive"),
    ("recovering", "recovering"),
    ("resync", "resyncing"),
    ("check", "checking"),
];

pub(crate) struct Mdadm;

/// State of a device in `mdstat`.
#[derive(Debug, PartialEq, Eq)]
struct Array {
    device: String,
    state: String,
    required: u64,
    active: u64,
    failed: u64,
    spare: u64,
    blocks: u64,
    synced: u64,
}

/// State of a device in sysfs.
struct Raid {
    device: String,
    disks: Option<u64>,
    degraded: u64,
}

impl Collector for Mdadm {
    fn name(&self) -> &'static str {
        "mdadm"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let path = round.paths.procfs("mdstat");
        let arrays = match round.reader.text(&path) {
            Ok(text) => parse(text).map_err(|error| error.of(&path))?,
            Err(error) if error.is_not_found() => {
                return Err(CollectError::NoData("there is no software RAID"));
            }
            Err(error) => return Err(error),
        };
        write_arrays(&arrays, output);
        let raids = read_raids(&round.paths.sysfs("block"), round.reader)?;
        let help = "Number of raid disks on device.";
        let mut family = output.family("node_md_raid_disks", help, Kind::Gauge);
        for Raid { device, disks, .. } in &raids {
            if let Some(disks) = disks {
                family.sample(&[("device", device)], *disks as f64);
            }
        }
        let help = "Number of degraded disks on device.";
        let mut family = output.family("node_md_degraded", help, Kind::Gauge);
        for Raid { device, degraded, .. } in &raids {
            family.sample(&[("device", device)], *degraded as f64);
        }
        Ok(())
    }
}

fn write_arrays(arrays: &[Array], output: &mut Output<'_>) {
    let help = "Number of active/failed/spare disks of device.";
    let mut family = output.family("node_md_disks", help, Kind::Gauge);
    for Array { device, active, failed, spare, .. } in arrays {
        for (state, disks) in [("active", active), ("failed", failed), ("spare", spare)] {
            family.sample(&[("device", device), ("state", state)], *disks as f64);
        }
    }
    let help = "Total number of disks of device.";
    let mut family = output.family("node_md_disks_required", help, Kind::Gauge);
    for Array { device, required, .. } in arrays {
        family.sample(&[("device", device)], *required as f64);
    }
    let mut family =
        output.family("node_md_state", "Indicates the state of md-device.", Kind::Gauge);
    for array in arrays {
        for (label, state) in STATES {
            let value = f64::from(u8::from(array.state == state));
            family.sample(&[("device", &array.device), ("state", label)], value);
        }
    }
    let help = "Total number of blocks on device.";
    let mut family = output.family("node_md_blocks", help, Kind::Gauge);
    for Array { device, blocks, .. } in arrays {
        family.sample(&[("device", device)], *blocks as f64);
    }
    let help = "Number of blocks synced on device.";
    let mut family = output.family("node_md_blocks_synced", help, Kind::Gauge);
    for Array { device, synced, .. } in arrays {
        family.sample(&[("device", device)], *synced as f64);
    }
}

fn parse(text: &str) -> std::result::Result<Vec<Array>, Malformed> {
    let mut arrays: Vec<Array> = Vec::new();
    let mut known = HashSet::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let is_other = line.trim().is_empty()
            || [" ", "unused", "Personalities :"].iter().any(|prefix| line.starts_with(prefix));
        if is_other {
            continue;
        }
        // `md0 : active raid1 …`
        let malformed = |expected| Malformed::new(number, expected, line);
        let mut fields = line.split_ascii_whitespace();
        let device = fields.next().unwrap_or_default();
        let state = fields.nth(1).ok_or_else(|| malformed("a device, a colon and a state"))?;
        if !known.insert(device) {
            return Err(malformed("a device that did not come before"));
        }
        let mut next = lines.clone().map(|(_, line)| line);
        let status = next.next().unwrap_or_default();
        let (blocks, required, active) = parse_status(line, status)
            .ok_or_else(|| Malformed::new(number + 1, "blocks and [required/active]", status))?;
        let (mut action_number, mut action) = (number + 2, next.next().unwrap_or_default());
        // The line of a bitmap is before the line of the operation.
        if action.contains("bitmap") {
            (action_number, action) = (number + 3, next.next().unwrap_or_default());
        }
        let (state, synced) = match action_state(action) {
            None => (state, blocks),
            // An operation that waits has not synced any block.
            Some(state) if ["PENDING", "DELAYED"].iter().any(|word| action.contains(word)) => {
                (state, 0)
            }
            Some(state) => {
                let expected = "(done/all) blocks";
                let synced = parse_done(action);
                (state, synced.ok_or_else(|| Malformed::new(action_number, expected, action))?)
            }
        };
        arrays.push(Array {
            device: device.to_owned(),
            state: state.to_owned(),
            required,
            active,
            failed: line.matches("(F)").count() as u64,
            spare: line.matches("(S)").count() as u64,
            blocks,
            synced,
        });
    }
    Ok(arrays)
}

/// Returns the numbers of blocks, required disks and active disks.
fn parse_status(device: &str, status: &str) -> Option<(u64, u64, u64)> {
    let blocks = status.split_ascii_whitespace().next()?.parse().ok()?;
    if device.contains("raid0") || device.contains("linear") {
        // Such a device has no spare disks; each of its disks has a number in brackets.
        let disks = device.matches('[').count() as u64;
        return Some((blocks, disks, disks));
    }
    if device.contains("inactive") {
        return Some((blocks, 0, 0));
    }
    // The last match is the one before `[UU_]`; a bitmap's `[0KB]` is on another line.
    let mut counts = status.split('[').filter_map(|part| {
        let (required, active) = part.split_once(']')?.0.split_once('/')?;
        Some((required.parse().ok()?, active.parse().ok()?))
    });
    let (required, active) = counts.next_back()?;
    Some((blocks, required, active))
}

fn action_state(line: &str) -> Option<&'static str> {
    let actions = [
        ("recovery", "recovering"),
        ("reshape", "reshaping"),
        ("check", "checking"),
        ("resync", "resyncing"),
    ];
    actions.into_iter().find(|(word, _)| line.contains(word)).map(|(_, state)| state)
}

/// Returns the first number in parentheses, as in `… (16775552/195310144) …`.
fn parse_done(line: &str) -> Option<u64> {
    let (done, all) = line.split_once('(')?.1.split_once(')')?.0.split_once('/')?;
    all.parse::<u64>().ok()?;
    done.parse().ok()
}

fn read_raids(directory: &Path, reader: &mut Reader) -> Result<Vec<Raid>> {
    let mut raids = Vec::new();
    let devices = entries(directory).unwrap_or_default();
    for device in devices.into_iter().filter(|name| name.starts_with("md")) {
        let path = directory.join(&device).join("md");
        let file = path.join("level");
        let level = match reader.attribute(&file) {
            Ok(level) => level.to_owned(),
            // The device was removed meanwhile, or is not a RAID.
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(CollectError::read(&file, error)),
        };
        // During a reshape, the file has two numbers, such as `11 (10)`.
        let disks = match level.as_slice() {
            b"" | b"container" | b"imsm" | b"ddf" => None,
            _ => {
                let file = path.join("raid_disks");
                let text =
                    reader.attribute(&file).map_err(|error| CollectError::read(&file, error))?;
                let number = text.split(|byte| *byte == b' ').next().unwrap_or_default();
                std::str::from_utf8(number).ok().and_then(|number| number.parse().ok())
            }
        };
        let degraded = match level.as_slice() {
            b"raid1" | b"raid4" | b"raid5" | b"raid6" | b"raid10" => {
                let file = path.join("degraded");
                reader.number(&file).map_err(|error| CollectError::read(&file, error))?
            }
            // Other levels have no redundancy, and the file does not exist.
            _ => 0,
        };
        raids.push(Raid { device, disks, degraded });
    }
    Ok(raids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    /// Devices of upstream's fixtures, and its expected output.
    #[test]
    fn arrays_in_all_states() {
        let text = "Personalities : [linear] [raid0] [raid1] [raid6]\n\n\
            md3 : active raid6 sda1[8] sdh1[7] sdd1[10](S) sdd2[11](S)\n      \
              5853468288 blocks super 1.2 level 6, 64k chunk, algorithm 2 [8/8] [UUUUUUUU]\n      \n\
            md4 : inactive raid1 sda3[0](F) sdb3[1](S)\n      4883648 blocks [2/2] [UU]\n\n\
            md6 : active raid1 sdb2[2](F) sdc[1](S) sda2[0]\n      195310144 blocks [2/1] [U_]\n      \
              [=>..]  recovery =  8.5% (16775552/195310144) finish=17.0min speed=259783K/sec\n\n\
            md201 : active raid1 sda3[0] sdb3[1]\n      1993728 blocks super 1.2 [2/2] [UU]\n      \
              [=>..]  check =  5.7% (114176/1993728) finish=0.2min speed=114176K/sec\n\n\
            md7 : active raid6 sdb1[0] sde1[3] sdd1[2] sdc1[1](F)\n      \
              7813735424 blocks super 1.2 level 6, 512k chunk, algorithm 2 [4/3] [U_UU]\n      \
              bitmap: 0/30 pages [0KB], 65536KB chunk\n\n\
            md9 : active raid1 sdc2[2] sde[4](F)\n      523968 blocks super 1.2 [4/4] [UUUU]\n      \
              resync=DELAYED\n\n\
            md12 : active raid0 sdc2[0] sdd2[1]\n      3886394368 blocks super 1.2 512k chunks\n\n\
            md219 : inactive sdb[2](S) sdc[1](S) sda[0](S)\n        \
              7932 blocks super external:imsm\n\n\
            md101 : active (read-only) raid0 sdb[2] sdd[1] sdc[0]\n      \
              322560 blocks super 1.2 512k chunks\n\n\
            unused devices: <none>\n";
        let array = |(device, state, required, active, failed, spare, blocks, synced)| Array {
            device: str::to_owned(device),
            state: str::to_owned(state),
            required,
            active,
            failed,
            spare,
            blocks,
            synced,
        };
        let expected = [
            ("md3", "active", 8, 8, 0, 2, 5853468288, 5853468288),
            ("md4", "inactive", 0, 0, 1, 1, 4883648, 4883648),
            ("md6", "recovering", 2, 1, 1, 1, 195310144, 16775552),
            ("md201", "checking", 2, 2, 0, 0, 1993728, 114176),
            ("md7", "active", 4, 3, 1, 0, 7813735424, 7813735424),
            ("md9", "resyncing", 4, 4, 1, 0, 523968, 0),
            ("md12", "active", 2, 2, 0, 0, 3886394368, 3886394368),
            ("md219", "inactive", 0, 0, 0, 3, 7932, 7932),
            ("md101", "active", 3, 3, 0, 0, 322560, 322560),
        ]
        .map(array);
        assert_eq!(parse(text).expect("parsed"), expected);
        let empty = "Personalities : \nunused devices: <none>\n";
        assert!(parse(empty).expect("parsed").is_empty());
    }

    #[test]
    fn series_of_an_array() {
        let tree = Tree::new();
        let error = tree.collect(&mut Mdadm).expect_err("no file");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        tree.write(
            "proc/mdstat",
            "md6 : active raid1 sdb2[2](F) sda2[0]\n 8 blocks [2/1] [U_]\n\n",
        );
        tree.write_all(
            "sys/block",
            &[
                ("md6/md/level", "raid1"),
                ("md6/md/raid_disks", "11 (10)"),
                ("md6/md/degraded", "1"),
                ("md7/md/level", "container"),
                ("md8/size", "0"),
            ],
        );
        let samples = tree.collect(&mut Mdadm).expect("collected");
        assert_eq!(
            samples,
            [
                r#"node_md_disks{device="md6",state="active"} 1"#,
                r#"node_md_disks{device="md6",state="failed"} 1"#,
                r#"node_md_disks{device="md6",state="spare"} 0"#,
                r#"node_md_disks_required{device="md6"} 2"#,
                r#"node_md_state{device="md6",state="active"} 1"#,
                r#"node_md_state{device="md6",state="inactive"} 0"#,
                r#"node_md_state{device="md6",state="recovering"} 0"#,
                r#"node_md_state{device="md6",state="resync"} 0"#,
                r#"node_md_state{device="md6",state="check"} 0"#,
                r#"node_md_blocks{device="md6"} 8"#,
                r#"node_md_blocks_synced{device="md6"} 8"#,
                r#"node_md_raid_disks{device="md6"} 11"#,
                r#"node_md_degraded{device="md6"} 1"#,
                r#"node_md_degraded{device="md7"} 0"#,
            ]
        );
        tree.remove("sys/block/md6/md/degraded");
        assert!(tree.collect(&mut Mdadm).is_err());
    }

    #[test]
    fn other_text_is_named() {
        for (hostile, line) in [
            ("md0", 1),
            ("md0 : active raid1\n", 2),
            ("md0 : active raid1\n x blocks [2/2]\n", 2),
            ("md0 : active raid1\n 8 blocks\n", 2),
            ("md0 : active raid1\n 8 blocks [2/2]\n recovery = 1%\n", 3),
            ("md0 : active raid1\n 8 blocks [2/2]\n bitmap\n resync (1)\n", 4),
            ("md0 : active raid0\n 8 blocks\nmd0 : active raid0\n 8 blocks\n", 3),
        ] {
            let error = parse(hostile).expect_err(hostile).of(Path::new("mdstat")).to_string();
            assert!(error.starts_with(&format!("mdstat:{line}: expected")), "{error}");
        }
    }
}
