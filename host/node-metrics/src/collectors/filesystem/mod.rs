//! `filesystem`: usage of mounts. Upstream: `collector/filesystem_common.go` and
//! `collector/filesystem_linux.go`.
//!
//! The mounts are those of process 1 or, if its files are hidden, those of this process. The mounts
//! are queried by other threads, because some mounts never answer: see [`ask`].

mod ask;
mod mounts;

use super::{Collector, Round};
use crate::error::{CollectError, Result};
use crate::sink::{Kind, Label, Output};
use ask::{Answer, Asker};
use mounts::Mount;
use rustix::fs::{major, minor, statfs};
use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Name, help and value of a family with the usage of mounts that answered.
type Family = (&'static str, &'static str, fn(&Usage) -> f64);

const USAGE: [Family; 6] = [
    ("node_filesystem_size_bytes", "Filesystem size in bytes.", |usage| usage.size),
    ("node_filesystem_free_bytes", "Filesystem free space in bytes.", |usage| usage.free),
    (
        "node_filesystem_avail_bytes",
        "Filesystem space available to non-root users in bytes.",
        |usage| usage.available,
    ),
    ("node_filesystem_files", "Filesystem total file nodes.", |usage| usage.files),
    ("node_filesystem_files_free", "Filesystem total free file nodes.", |usage| usage.files_free),
    // Upstream has this family on all systems, with the value 0.
    (
        "node_filesystem_purgeable_bytes",
        "Filesystem space available including purgeable space (MacOS specific).",
        |_| 0.0,
    ),
];

/// Value of `device_error` for a mount that does not answer, as in upstream.
const TIMED_OUT: &str = "mountpoint timeout";
/// Value of `device_error` for a mount that is hidden from this process by another mount, such as
/// by systemd's mounts for a service. Upstream shows the figures of the other mount.
const HIDDEN: &str = "hidden by another mount";
/// `BTRFS_SUPER_MAGIC`. Device numbers of Btrfs subvolumes differ from those in `mountinfo`.
const BTRFS: u32 = 0x9123_683e;

pub(crate) struct Filesystem {
    asker: Asker,
}

/// Usage of one mount; sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Usage {
    size: f64,
    free: f64,
    available: f64,
    files: f64,
    files_free: f64,
    /// Major and minor number of the file system's device, and whether it is Btrfs.
    device: Option<((u32, u32), bool)>,
}

struct Shown {
    mount: Mount,
    usage: Option<Usage>,
    /// Value of the label `device_error`; empty if the mount answered.
    device_error: String,
    is_read_only: bool,
}

impl Collector for Filesystem {
    fn name(&self) -> &'static str {
        "filesystem"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let mounts = match read_mounts("1/mountinfo", round) {
            // With `hidepid`, the files of other users' processes are hidden.
            Err(CollectError::Read { source, .. }) if is_hidden(&source) => {
                read_mounts("self/mountinfo", round)
            }
            mounts => mounts,
        }?;
        let paths = mounts.iter().map(|mount| mount.path.clone()).collect();
        let answers = self.asker.ask(paths);
        let answers = answers
            .map_err(|source| CollectError::Call { call: "a thread for statfs(2)", source })?;
        let shown = mounts.into_iter().zip(answers).map(|(mount, answer)| show(mount, answer));
        write(&shown.collect::<Vec<_>>(), output);
        Ok(())
    }
}

impl Filesystem {
    pub(crate) fn new(timeout: Duration) -> Filesystem {
        let usage = |path: &std::path::Path| {
            let (stat, device) = (statfs(path)?, rustix::fs::stat(path)?.st_dev);
            // As in upstream, counts are of blocks, not of the fragments of `statvfs(3)`.
            let block_bytes = stat.f_bsize as f64;
            Ok(Usage {
                size: stat.f_blocks as f64 * block_bytes,
                free: stat.f_bfree as f64 * block_bytes,
                available: stat.f_bavail as f64 * block_bytes,
                files: stat.f_files as f64,
                files_free: stat.f_ffree as f64,
                // The magic number has 32 bits, but the field's type depends on the platform.
                device: Some(((major(device), minor(device)), stat.f_type as u32 == BTRFS)),
            })
        };
        Filesystem { asker: Asker::new(timeout, usage) }
    }
}

impl Usage {
    fn is_of(&self, mount: &Mount) -> bool {
        self.device.is_none_or(|(device, is_btrfs)| {
            mount.devices.contains(&device) || is_btrfs && mount.kind == "btrfs"
        })
    }
}

fn read_mounts(file: &str, round: &mut Round<'_>) -> Result<Vec<Mount>> {
    let path = round.paths.procfs(file);
    let text = round.reader.bytes(&path)?;
    mounts::parse(text, round.paths).map_err(|error| error.of(&path))
}

fn is_hidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

fn show(mount: Mount, answer: Answer) -> Shown {
    let is_read_only = mount.is_read_only;
    match answer {
        Answer::Usage(usage) if !usage.is_of(&mount) => {
            Shown { mount, usage: None, device_error: HIDDEN.to_owned(), is_read_only }
        }
        Answer::Usage(usage) => {
            Shown { mount, usage: Some(usage), device_error: String::new(), is_read_only }
        }
        Answer::Error(error) => {
            Shown { mount, usage: None, device_error: error_text(error), is_read_only }
        }
        // As in upstream, such a mount is not reported as read-only.
        Answer::TimedOut => {
            Shown { mount, usage: None, device_error: TIMED_OUT.to_owned(), is_read_only: false }
        }
    }
}

fn write(shown: &[Shown], output: &mut Output<'_>) {
    let mut family = output.family(
        "node_filesystem_device_error",
        "Whether an error occurred while getting statistics for the given device.",
        Kind::Gauge,
    );
    for mount in shown {
        family.sample(&mount.labels(), f64::from(u8::from(mount.usage.is_none())));
    }
    let help = "Filesystem read-only status.";
    let mut family = output.family("node_filesystem_readonly", help, Kind::Gauge);
    for mount in shown {
        family.sample(&mount.labels(), f64::from(u8::from(mount.is_read_only)));
    }
    for (name, help, value) in USAGE {
        let mut family = output.family(name, help, Kind::Gauge);
        for mount in shown {
            if let Some(usage) = &mount.usage {
                family.sample(&mount.labels(), value(usage));
            }
        }
    }
    let help = "Filesystem mount information.";
    let mut family = output.family("node_filesystem_mount_info", help, Kind::Gauge);
    for Shown { mount, .. } in shown.iter().filter(|shown| shown.usage.is_some()) {
        let labels = [
            ("device", mount.device.as_str()),
            ("major", &mount.major),
            ("minor", &mount.minor),
            ("mountpoint", &mount.mount_point),
        ];
        family.sample(&labels, 1.0);
    }
}

impl Shown {
    fn labels(&self) -> [Label<'_>; 4] {
        [
            ("device", &self.mount.device),
            ("device_error", &self.device_error),
            ("fstype", &self.mount.kind),
            ("mountpoint", &self.mount.mount_point),
        ]
    }
}

/// Returns the text of Go for an error of `statfs(2)`, because it becomes the value of a label.
fn error_text(error: Errno) -> String {
    let text = match error {
        Errno::PERM => "operation not permitted",
        Errno::NOENT => "no such file or directory",
        Errno::INTR => "interrupted system call",
        Errno::IO => "input/output error",
        Errno::NXIO => "no such device or address",
        Errno::BADF => "bad file descriptor",
        Errno::AGAIN => "resource temporarily unavailable",
        Errno::NOMEM => "cannot allocate memory",
        Errno::ACCESS => "permission denied",
        Errno::FAULT => "bad address",
        Errno::NODEV => "no such device",
        Errno::NOTDIR => "not a directory",
        Errno::INVAL => "invalid argument",
        Errno::NAMETOOLONG => "file name too long",
        Errno::NOSYS => "function not implemented",
        Errno::LOOP => "too many levels of symbolic links",
        Errno::OVERFLOW => "value too large for defined data type",
        Errno::PROTO => "protocol error",
        Errno::OPNOTSUPP => "operation not supported",
        Errno::NETDOWN => "network is down",
        Errno::NETUNREACH => "network is unreachable",
        Errno::CONNABORTED => "software caused connection abort",
        Errno::CONNRESET => "connection reset by peer",
        Errno::NOTCONN => "transport endpoint is not connected",
        Errno::SHUTDOWN => "cannot send after transport endpoint shutdown",
        Errno::TIMEDOUT => "connection timed out",
        Errno::CONNREFUSED => "connection refused",
        Errno::HOSTDOWN => "host is down",
        Errno::HOSTUNREACH => "no route to host",
        Errno::STALE => "stale file handle",
        Errno::REMOTEIO => "remote I/O error",
        Errno::NOMEDIUM => "no medium found",
        Errno::CANCELED => "operation canceled",
        Errno::NOKEY => "required key not available",
        Errno::KEYEXPIRED => "key has expired",
        Errno::KEYREVOKED => "key has been revoked",
        other => return format!("errno {}", other.raw_os_error()),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    fn filesystem(answer: fn(&str) -> rustix::io::Result<Usage>) -> Filesystem {
        let usage = move |path: &std::path::Path| answer(path.to_str().unwrap_or_default());
        Filesystem { asker: Asker::new(crate::MOUNT_TIMEOUT_DEFAULT, usage) }
    }

    const USED: Usage = Usage {
        size: 100.0,
        free: 40.0,
        available: 30.0,
        files: 20.0,
        files_free: 10.0,
        device: None,
    };

    #[test]
    fn usage_of_mounts_and_errors() {
        let tree = Tree::new();
        tree.write(
            "proc/1/mountinfo",
            "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro\n\
             23 22 0:5 / /proc rw - proc proc rw\n\
             24 22 8:1 / /boot\\040x ro,relatime - vfat /dev/sda1 rw\n\
             25 22 0:47 / /mnt/gone rw - fuse.sshfs me@there:/ rw\n",
        );
        let mut filesystem = filesystem(|path| match path {
            path if path.ends_with("gone") => Err(Errno::NOTCONN),
            _ => Ok(USED),
        });
        let samples = tree.collect(&mut filesystem).expect("collected");
        let root = r#"{device="/dev/nvme0n1p2",fstype="ext4",mountpoint="/"}"#;
        let boot = r#"{device="/dev/sda1",fstype="vfat",mountpoint="/boot x"}"#;
        let gone = r#"{device="me@there:/",device_error="transport endpoint is not connected",fstype="fuse.sshfs",mountpoint="/mnt/gone"}"#;
        let expected = [
            format!("node_filesystem_device_error{root} 0"),
            format!("node_filesystem_device_error{boot} 0"),
            format!("node_filesystem_device_error{gone} 1"),
            format!("node_filesystem_readonly{root} 0"),
            format!("node_filesystem_readonly{boot} 1"),
            format!("node_filesystem_readonly{gone} 0"),
            format!("node_filesystem_size_bytes{root} 100"),
            format!("node_filesystem_size_bytes{boot} 100"),
            format!("node_filesystem_free_bytes{root} 40"),
            format!("node_filesystem_free_bytes{boot} 40"),
            format!("node_filesystem_avail_bytes{root} 30"),
            format!("node_filesystem_avail_bytes{boot} 30"),
            format!("node_filesystem_files{root} 20"),
            format!("node_filesystem_files{boot} 20"),
            format!("node_filesystem_files_free{root} 10"),
            format!("node_filesystem_files_free{boot} 10"),
            format!("node_filesystem_purgeable_bytes{root} 0"),
            format!("node_filesystem_purgeable_bytes{boot} 0"),
            r#"node_filesystem_mount_info{device="/dev/nvme0n1p2",major="259",minor="2",mountpoint="/"} 1"#.to_owned(),
            r#"node_filesystem_mount_info{device="/dev/sda1",major="8",minor="1",mountpoint="/boot x"} 1"#.to_owned(),
        ];
        assert_eq!(samples, expected);
    }

    #[test]
    fn mounts_of_this_process_if_others_are_hidden() {
        let tree = Tree::new();
        let error = tree.collect(&mut filesystem(|_| Ok(USED))).expect_err("no file");
        assert!(error.is_not_found());
        tree.write("proc/self/mountinfo", "1 1 8:1 / /data rw - xfs /dev/sda rw\n");
        let mut recorder = Recorder::default();
        tree.collect_into(&mut filesystem(|_| Ok(USED)), &mut recorder).expect("collected");
        let size =
            r#"node_filesystem_size_bytes{device="/dev/sda",fstype="xfs",mountpoint="/data"}"#;
        assert_eq!(recorder.value(size), Some(100.0));
    }

    /// The temporary directory stands for the mounted file systems.
    #[test]
    fn the_system_is_asked_below_the_root_that_was_given() {
        let tree = Tree::new();
        tree.write("root/data/file", "");
        let device = rustix::fs::stat(tree.path("root/data")).expect("a directory").st_dev;
        let (major, minor) = (major(device), minor(device));
        // Of two mounts on one point, the second is visible.
        let mounts = format!(
            "1 1 0:1 / /data rw - xfs there rw\n2 1 {major}:{minor} / /data rw - xfs there rw\n\
             3 1 0:1 / /data rw - xfs hidden rw\n4 1 8:2 / /none rw - xfs none rw\n\
             5 1 0:1 / /data rw - btrfs hidden rw\n"
        );
        tree.write("proc/1/mountinfo", &mounts);
        let mut recorder = Recorder::default();
        let mut filesystem = Filesystem::new(crate::MOUNT_TIMEOUT_DEFAULT);
        tree.collect_into(&mut filesystem, &mut recorder).expect("collected");
        let there = r#"{device="there",fstype="xfs",mountpoint="/data"}"#;
        let value = |name: &str| recorder.value(&format!("node_filesystem_{name}{there}"));
        let expected = rustix::fs::statvfs(tree.path("root/data")).expect("a file system");
        assert_eq!(value("size_bytes"), Some((expected.f_blocks * expected.f_frsize) as f64));
        assert!(value("avail_bytes") <= value("size_bytes") && value("avail_bytes") > Some(0.0));
        let none = r#"node_filesystem_device_error{device="none",device_error="no such file or directory",fstype="xfs",mountpoint="/none"}"#;
        assert_eq!(recorder.value(none), Some(1.0));
        // Regression: a full file system was shown with the figures of the one that hid it.
        for kind in ["xfs", "btrfs"] {
            let labels = format!(
                "{{device=\"hidden\",device_error=\"{HIDDEN}\",fstype=\"{kind}\",mountpoint=\"/data\"}}"
            );
            let value = |name: &str| recorder.value(&format!("node_filesystem_{name}{labels}"));
            assert_eq!((value("device_error"), value("size_bytes")), (Some(1.0), None), "{kind}");
        }
    }

    #[test]
    fn subvolumes_of_btrfs_have_numbers_of_their_own() {
        let tree = Tree::new();
        let mounts =
            "1 1 0:40 / /data rw - btrfs /dev/sda rw\n2 1 8:1 / /home rw - ext4 /dev/sdb rw\n";
        tree.write("proc/1/mountinfo", mounts);
        let mut recorder = Recorder::default();
        let mut filesystem = filesystem(|_| Ok(Usage { device: Some(((0, 41), true)), ..USED }));
        tree.collect_into(&mut filesystem, &mut recorder).expect("collected");
        let size =
            |labels: &str| recorder.value(&format!("node_filesystem_size_bytes{{{labels}}}"));
        let btrfs = size(r#"device="/dev/sda",fstype="btrfs",mountpoint="/data""#);
        let ext4 = size(r#"device="/dev/sdb",fstype="ext4",mountpoint="/home""#);
        assert_eq!((btrfs, ext4), (Some(100.0), None));
    }

    #[test]
    fn errors_have_the_names_that_go_gives_them() {
        assert_eq!(error_text(Errno::ACCESS), "permission denied");
        assert_eq!(error_text(Errno::STALE), "stale file handle");
        assert_eq!(error_text(Errno::from_raw_os_error(530)), "errno 530");
    }
}
