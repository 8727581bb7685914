//! `diskstats`: counters and properties of disks. Upstream: `collector/diskstats_linux.go`; the
//! kernel's `Documentation/admin-guide/iostats.rst`. Properties are the lines `E:` of udev's
//! database (`udevadm(8)`).

mod families;

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::read::Reader;
use crate::sink::{Kind, Output};
use crate::text::valid_utf8;
use families::{ATA_FAMILIES, COUNTS, FAMILIES};
use std::collections::HashSet;
use std::path::Path;

/// Minimum number of counts after the name. Partitions of old kernels have fewer; they are skipped.
const COUNTS_MIN: usize = 11;
/// Properties that are read from udev. Their values are in [`Disk::udev`], by the same index.
const PROPERTIES: [&str; 19] = [
    "ID_PATH",
    "ID_WWN",
    "ID_MODEL",
    "ID_REVISION",
    "SCSI_IDENT_SERIAL",
    "ID_SERIAL_SHORT",
    "ID_SERIAL",
    "ID_FS_TYPE",
    "ID_FS_USAGE",
    "ID_FS_UUID",
    "ID_FS_VERSION",
    "DM_NAME",
    "DM_UUID",
    "DM_VG_NAME",
    "DM_LV_NAME",
    "DM_LV_LAYER",
    "ID_ATA_WRITE_CACHE",
    "ID_ATA_WRITE_CACHE_ENABLED",
    "ID_ATA_ROTATION_RATE_RPM",
];
/// Property without which the properties `ID_ATA_…` are not used.
const ATA: &str = "ID_ATA";

#[derive(Default)]
pub(crate) struct Diskstats {
    disks: Vec<Disk>,
}

struct Disk {
    name: String,
    major: String,
    minor: String,
    counts: [u64; COUNTS],
    counts_len: usize,
    is_rotational: bool,
    /// Values of [`PROPERTIES`]; empty if absent.
    udev: [String; PROPERTIES.len()],
    is_ata: bool,
}

impl Collector for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let Round { paths, reader, .. } = round;
        let path = paths.procfs("diskstats");
        self.disks.clear();
        parse(reader.text(&path)?, &mut self.disks).map_err(|error| error.of(&path))?;
        for disk in &mut self.disks {
            let rotational = paths.sysfs(format!("block/{}/queue/rotational", disk.name));
            disk.is_rotational = reader.number(&rotational) == Ok(1u64);
            disk.read_udev(
                &paths.udev_data.join(format!("b{}:{}", disk.major, disk.minor)),
                reader,
            );
        }
        self.write(output);
        Ok(())
    }
}

impl Diskstats {
    fn write(&self, output: &mut Output<'_>) {
        let help = "Info of /sys/block/<block_device>.";
        let mut info = output.family("node_disk_info", help, Kind::Gauge);
        for disk in &self.disks {
            let labels = [
                ("device", disk.name.as_str()),
                ("major", &disk.major),
                ("minor", &disk.minor),
                ("model", disk.property("ID_MODEL")),
                ("path", disk.property("ID_PATH")),
                ("revision", disk.property("ID_REVISION")),
                ("rotational", if disk.is_rotational { "1" } else { "0" }),
                ("serial", disk.serial()),
                ("wwn", disk.property("ID_WWN")),
            ];
            info.sample(&labels, 1.0);
        }
        for (index, (name, help, kind, factor)) in FAMILIES.into_iter().enumerate() {
            let mut family = output.family(name, help, kind);
            // Old kernels have fewer counts per disk.
            for disk in self.disks.iter().filter(|disk| index < disk.counts_len) {
                family.sample(&[("device", &disk.name)], disk.counts[index] as f64 * factor);
            }
        }
        let help = "Info about disk filesystem.";
        let mut info = output.family("node_disk_filesystem_info", help, Kind::Gauge);
        for disk in self.disks.iter().filter(|disk| !disk.property("ID_FS_TYPE").is_empty()) {
            let labels = [
                ("device", disk.name.as_str()),
                ("type", disk.property("ID_FS_TYPE")),
                ("usage", disk.property("ID_FS_USAGE")),
                ("uuid", disk.property("ID_FS_UUID")),
                ("version", disk.property("ID_FS_VERSION")),
            ];
            info.sample(&labels, 1.0);
        }
        let help = "Info about disk device mapper.";
        let mut info = output.family("node_disk_device_mapper_info", help, Kind::Gauge);
        for disk in self.disks.iter().filter(|disk| !disk.property("DM_NAME").is_empty()) {
            let labels = [
                ("device", disk.name.as_str()),
                ("lv_layer", disk.property("DM_LV_LAYER")),
                ("lv_name", disk.property("DM_LV_NAME")),
                ("name", disk.property("DM_NAME")),
                ("uuid", disk.property("DM_UUID")),
                ("vg_name", disk.property("DM_VG_NAME")),
            ];
            info.sample(&labels, 1.0);
        }
        for (property, name, help) in ATA_FAMILIES {
            let mut family = output.family(name, help, Kind::Gauge);
            for disk in self.disks.iter().filter(|disk| disk.is_ata) {
                // If a value is not a number, only its own series is missing.
                if let Ok(value) = disk.property(property).parse() {
                    family.sample(&[("device", &disk.name)], value);
                }
            }
        }
    }
}

impl Disk {
    /// Returns a property; empty if udev does not have it or is not running.
    fn property(&self, name: &str) -> &str {
        let place = PROPERTIES.iter().position(|property| *property == name);
        place.map_or("", |place| &self.udev[place])
    }

    /// Returns the serial number printed on a disk, or else that of a virtual disk.
    fn serial(&self) -> &str {
        let names = ["SCSI_IDENT_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL"];
        let mut serials = names.into_iter().map(|name| self.property(name));
        serials.find(|serial| !serial.is_empty()).unwrap_or_default()
    }

    fn read_udev(&mut self, path: &Path, reader: &mut Reader) {
        // If udev is not running, the properties stay empty.
        let Ok(text) = reader.bytes(path) else { return };
        for line in text.split(|byte| *byte == b'\n') {
            let Some(property) = line.strip_prefix(b"E:") else { continue };
            let mut parts = property.splitn(2, |byte| *byte == b'=');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            if name == ATA.as_bytes() {
                self.is_ata = !value.is_empty();
            } else if let Some(place) = PROPERTIES.iter().position(|known| known.as_bytes() == name)
            {
                self.udev[place] = valid_utf8(value).into_owned();
            }
        }
    }
}

fn parse(text: &str, disks: &mut Vec<Disk>) -> std::result::Result<(), Malformed> {
    let mut known = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let malformed = || Malformed::new(number, "major and minor number, name and counts", line);
        let mut fields = line.split_ascii_whitespace();
        let (Some(major), Some(minor), Some(name)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(malformed());
        };
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        if !is_number(major) || !is_number(minor) {
            return Err(malformed());
        }
        let (mut counts, mut counts_len) = ([0; COUNTS], 0);
        for (count, field) in counts.iter_mut().zip(fields) {
            *count = field.parse().map_err(|_| malformed())?;
            counts_len += 1;
        }
        // A repeated name is skipped, because it would repeat series.
        if counts_len < COUNTS_MIN || is_excluded(name) || !known.insert(name) {
            continue;
        }
        disks.push(Disk {
            name: name.to_owned(),
            major: major.to_owned(),
            minor: minor.to_owned(),
            counts,
            counts_len,
            is_rotational: false,
            udev: Default::default(),
            is_ata: false,
        });
    }
    Ok(())
}

/// Matches upstream's `^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`: virtual devices and
/// partitions.
fn is_excluded(name: &str) -> bool {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if base.len() == name.len() {
        return false;
    }
    if ["ram", "zram", "loop", "fd"].contains(&base) {
        return true;
    }
    let is_letter = |rest: &str| rest.len() == 1 && rest.as_bytes()[0].is_ascii_lowercase();
    if ["hd", "sd", "vd", "xvd"].iter().any(|kind| base.strip_prefix(kind).is_some_and(is_letter)) {
        return true;
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    base.strip_prefix("nvme")
        .and_then(|rest| rest.strip_suffix('p')?.split_once('n'))
        .is_some_and(|(controller, namespace)| is_number(controller) && is_number(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    fn of_device(recorder: &Recorder, device: &str) -> Vec<String> {
        let label = format!("device={device:?}");
        let of_it = recorder.samples.iter().filter(|line| line.contains(&label));
        of_it.map(|line| line.replace(&label, "").replace("{}", "")).collect()
    }

    fn recorded(tree: &Tree) -> Recorder {
        let mut recorder = Recorder::default();
        tree.collect_into(&mut Diskstats::default(), &mut recorder).expect("collected");
        recorder
    }

    /// Lines and values of upstream's fixtures.
    #[test]
    fn old_kernels_have_fewer_counts() {
        let tree = Tree::new();
        tree.write(
            "proc/diskstats",
            "   8       0 sda 25354637 34367663 1003346126 18492372 28444756 11134226 505697032 \
             63877960 0 9653880 82621804\n   \
             8      16 sdb 326552 841 9657779 84 41822 2895 1972905 5007 0 60730 67070 68851 0 \
             1925173784 11130\n   \
             8      32 sdc 126552 141 1657779 14 11822 1895 172905 1007 0 10730 17070 18851 0 \
             125173784 11130 1555 1944 99\n   \
             8       1 sda1 250 0 2000 36 0 0 0 0 0 36 36\n   3       1 hdx 1 2 3 4\n",
        );
        let recorder = recorded(&tree);
        assert_eq!(
            of_device(&recorder, "sda"),
            [
                r#"node_disk_info{,major="8",minor="0",rotational="0"} 1"#,
                "node_disk_reads_completed_total 25354637",
                "node_disk_reads_merged_total 34367663",
                "node_disk_read_bytes_total 513713216512",
                "node_disk_read_time_seconds_total 18492.372",
                "node_disk_writes_completed_total 28444756",
                "node_disk_writes_merged_total 11134226",
                "node_disk_written_bytes_total 258916880384",
                "node_disk_write_time_seconds_total 63877.96",
                "node_disk_io_now 0",
                "node_disk_io_time_seconds_total 9653.880000000001",
                "node_disk_io_time_weighted_seconds_total 82621.804",
            ]
        );
        let discards = [
            "node_disk_discards_completed_total 68851",
            "node_disk_discards_merged_total 0",
            "node_disk_discarded_sectors_total 1925173784",
            "node_disk_discard_time_seconds_total 11.13",
        ];
        assert_eq!(of_device(&recorder, "sdb")[12..], discards);
        let flushes = [
            "node_disk_flush_requests_total 1555",
            "node_disk_flush_requests_time_seconds_total 1.944",
        ];
        assert_eq!(of_device(&recorder, "sdc")[16..], flushes);
        assert!(of_device(&recorder, "sda1").is_empty() && of_device(&recorder, "hdx").is_empty());
    }

    #[test]
    fn udev_and_sysfs_say_which_it_is() {
        let tree = Tree::new();
        let counts = "1 1 1 1 1 1 1 1 1 1 1";
        let lines =
            [("8 0 sda"), ("252 0 dm-0"), ("254 0 vda")].map(|disk| format!("{disk} {counts}\n"));
        tree.write("proc/diskstats", lines.concat());
        tree.write("sys/block/sda/queue/rotational", "1\n");
        tree.write("sys/block/vda/queue/rotational", "x\n");
        tree.write(
            "udev/b8:0",
            b"S:disk/by-id/x\nE:ID_ATA=1\nE:ID_ATA_WRITE_CACHE=1\nE:ID_ATA_WRITE_CACHE_ENABLED=0\n\
              E:ID_ATA_ROTATION_RATE_RPM=7200\nE:ID_MODEL=TOSHIBA_\xff\xfe\nE:ID_WWN=0x7c\nE:ID_PATH=pci-0\n\
              E:ID_REVISION=01=02\nE:ID_SERIAL=no\nE:ID_SERIAL_SHORT=no\nE:SCSI_IDENT_SERIAL=2160A\nE:\nE:x",
        );
        tree.write(
            "udev/b252:0",
            "E:DM_NAME=crypt\nE:DM_UUID=CRYPT-1\nE:ID_FS_TYPE=LVM2_member\nE:ID_FS_USAGE=raid\n\
             E:ID_FS_UUID=c3\nE:ID_FS_VERSION=LVM2 001\nE:ID_ATA_WRITE_CACHE=1\n",
        );
        tree.write("udev/b254:0", "E:ID_SERIAL=virtio\nE:ID_ATA=1\nE:ID_ATA_WRITE_CACHE=x\n");
        let recorder = recorded(&tree);
        let infos = |device| {
            let all = of_device(&recorder, device).into_iter();
            all.filter(|line| line.contains("info") || line.contains("ata")).collect::<Vec<_>>()
        };
        assert_eq!(
            infos("sda"),
            [
                "node_disk_info{,major=\"8\",minor=\"0\",model=\"TOSHIBA_\u{fffd}\",path=\"pci-0\",\
                 revision=\"01=02\",rotational=\"1\",serial=\"2160A\",wwn=\"0x7c\"} 1",
                "node_disk_ata_write_cache 1",
                "node_disk_ata_write_cache_enabled 0",
                "node_disk_ata_rotation_rate_rpm 7200",
            ]
        );
        assert_eq!(
            infos("dm-0")[1..],
            [
                r#"node_disk_filesystem_info{,type="LVM2_member",usage="raid",uuid="c3",version="LVM2 001"} 1"#,
                r#"node_disk_device_mapper_info{,name="crypt",uuid="CRYPT-1"} 1"#,
            ]
        );
        assert_eq!(
            infos("vda"),
            [r#"node_disk_info{,major="254",minor="0",rotational="0",serial="virtio"} 1"#]
        );
    }

    #[test]
    fn partitions_and_disks_in_memory_are_excluded() {
        let excluded =
            ["ram0", "zram12", "loop7", "fd0", "hda1", "sdb12", "vdz9", "xvda3", "nvme0n1p1"];
        let shown = [
            "sda",
            "sdaa1",
            "xvd1",
            "nvme0n1",
            "nvmen1p1",
            "nvme0c1n1p1",
            "mmcblk0p1",
            "dm-0",
            "sr0",
            "md127",
            "aram0",
            "ram",
            "sdA1",
            "vd1",
        ];
        assert!(excluded.into_iter().all(is_excluded));
        assert_eq!(shown.into_iter().find(|name| is_excluded(name)), None);
    }

    #[test]
    fn other_text_is_named() {
        let tree = Tree::new();
        let path = "proc/diskstats";
        for hostile in ["8 0", "", "x 0 sda 1", "8 -1 sda 1", "8 0 sda 1 -2 3", "8 0 sda 1.5"] {
            tree.write(path, format!("8 0 sda 1 1 1 1 1 1 1 1 1 1 1\n{hostile}\n"));
            let error = tree.collect(&mut Diskstats::default()).expect_err(hostile).to_string();
            assert!(error.contains("diskstats:2: expected major"), "{error}");
        }
    }
}
