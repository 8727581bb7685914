//! Parses `mountinfo` of procfs (`proc_pid_mountinfo(5)`), and chooses the mounts that are shown.
//!
//! ```text
//! 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 … - ext3 /dev/root rw,errors=continue
//!       device     mount  options               kind  source    options of the superblock
//! ```

use crate::Paths;
use crate::error::Malformed;
use crate::text::valid_utf8;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Types that upstream excludes: virtual file systems, and those that are stored on other mounts.
const KINDS_EXCLUDED: [&str; 25] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "procfs",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "erofs",
    "sysfs",
    "tracefs",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) device: String,
    pub(super) mount_point: String,
    pub(super) kind: String,
    pub(super) major: String,
    pub(super) minor: String,
    /// Device numbers of all mounts with the same labels. The last of these mounts is visible.
    pub(super) devices: Vec<(u32, u32)>,
    pub(super) is_read_only: bool,
    /// Path of the mount point below the given root.
    pub(super) path: PathBuf,
}

/// Returns the mounts that are shown, in the kernel's order. Of equal labels, the first is kept.
pub(super) fn parse(text: &[u8], paths: &Paths) -> Result<Vec<Mount>, Malformed> {
    let mut mounts: Vec<Mount> = Vec::new();
    // Index in `mounts` by labels.
    let mut known = HashMap::new();
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let malformed = |expected| Malformed::new(number, expected, &valid_utf8(line));
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        // The number of optional fields before the hyphen varies.
        let [
            _,
            _,
            device_number,
            _,
            mount_point,
            options,
            ..,
            separator,
            kind,
            source,
            super_options,
        ] = fields[..]
        else {
            return Err(malformed("ten fields"));
        };
        if separator != b"-" {
            return Err(malformed("a hyphen before the last three fields"));
        }
        let numbers = std::str::from_utf8(device_number).ok().and_then(|text| text.split_once(':'));
        let (major, minor) = numbers
            .and_then(|(major, minor)| {
                Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
            })
            .ok_or_else(|| malformed("two numbers and a colon between"))?;
        // As in upstream, only two of the kernel's escapes are decoded in labels.
        let shown_point = decoded(mount_point, b" \t");
        let shown_point = valid_utf8(&shown_point);
        let shown_point = below_root(&shown_point, &paths.rootfs);
        let kind = valid_utf8(kind);
        if is_mount_point_excluded(shown_point) || KINDS_EXCLUDED.contains(&kind.as_ref()) {
            continue;
        }
        let has = |options: &[u8], option: &[u8]| {
            options.split(|byte| *byte == b',').any(|o| o == option)
        };
        // The system call needs the real path, with all of the kernel's escapes decoded.
        let real_point = decoded(mount_point, b" \t\n\\#");
        let real_point = PathBuf::from(OsString::from_vec(real_point));
        let real_point = real_point.strip_prefix(&paths.rootfs).unwrap_or(&real_point);
        let mount = Mount {
            device: valid_utf8(source).into_owned(),
            mount_point: shown_point.to_owned(),
            kind: kind.into_owned(),
            major: major.to_string(),
            minor: minor.to_string(),
            devices: vec![(major, minor)],
            is_read_only: has(options, b"ro")
                || has(super_options, b"ro")
                || has(super_options, b"emergency_ro"),
            path: paths.rootfs(real_point),
        };
        let labels = (mount.device.clone(), mount.mount_point.clone(), mount.kind.clone());
        match known.entry(labels) {
            Entry::Vacant(entry) => {
                entry.insert(mounts.len());
                mounts.push(mount);
            }
            // Series must not repeat. Device numbers later show which of the mounts is visible.
            Entry::Occupied(entry) => {
                if let Some(first) = mounts.get_mut(*entry.get()) {
                    first.devices.push((major, minor));
                }
            }
        }
    }
    Ok(mounts)
}

/// Decodes octal escapes, but only those of the bytes in `escaped`: `\040` is a space.
fn decoded(field: &[u8], escaped: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        match code.filter(|code| escaped.contains(code)) {
            Some(code) => {
                decoded.push(code);
                rest = &after[3..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

/// Removes the given root from a mount point, which gives its path on the machine itself.
fn below_root<'p>(mount_point: &'p str, rootfs: &Path) -> &'p str {
    let root = rootfs.to_str().unwrap_or_default().trim_end_matches('/');
    match mount_point.strip_prefix(root) {
        Some("") => "/",
        Some(below) if below.starts_with('/') => below,
        _ => mount_point,
    }
}

/// Returns whether upstream's pattern matches:
/// `^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)`.
fn is_mount_point_excluded(mount_point: &str) -> bool {
    let is_below = |directory: &str| {
        let below = mount_point.strip_prefix(directory);
        below.is_some_and(|below| below.len() > 1 && below.starts_with('/'))
    };
    let with_contents = ["/dev", "/proc", "/sys"];
    let contents = ["/run/credentials", "/var/lib/docker", "/var/lib/containers/storage"];
    with_contents.iter().any(|directory| {
        mount_point
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }) || contents.into_iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str, rootfs: &str) -> Vec<Mount> {
        let paths = Paths { rootfs: rootfs.into(), ..Paths::default() };
        parse(text.as_bytes(), &paths).expect("parsed")
    }

    #[test]
    fn exclusions_are_upstreams() {
        let excluded = [
            "/dev",
            "/dev/shm",
            "/proc",
            "/proc/fs/nfsd",
            "/sys/kernel/debug",
            "/run/credentials/a.service",
            "/var/lib/docker/overlay2/x",
            "/var/lib/containers/storage/overlay",
            "/sys/",
        ];
        let shown = [
            "/",
            "/devices",
            "/system",
            "/run",
            "/run/credentials",
            "/var/lib/docker",
            "/var/lib/docker/",
            "/var/lib/containers/storage",
            "/var/lib/containers",
            "/home/dev",
            "/run/user/1000",
        ];
        assert_eq!(excluded.into_iter().find(|point| !is_mount_point_excluded(point)), None);
        assert_eq!(shown.into_iter().find(|point| is_mount_point_excluded(point)), None);
        let of_kind = |kind: &str| parsed(&format!("1 1 8:1 / /x rw - {kind} a rw\n"), "/").len();
        assert!(KINDS_EXCLUDED.into_iter().all(|kind| of_kind(kind) == 0));
        for kind in ["ext4", "xfs", "tmpfs", "nfs4", "fuse.overlay", "cgroup3", "zfs", "ramfs"] {
            assert_eq!(of_kind(kind), 1, "{kind}");
        }
    }

    #[test]
    fn read_only_is_what_either_options_say() {
        for (options, super_options, is_read_only) in [
            ("rw", "rw", false),
            ("ro,relatime", "rw", true),
            ("rw", "rw,ro", true),
            ("rw", "rw,emergency_ro", true),
            ("rw,errors=ro", "rw,errors=remount-ro", false),
        ] {
            let line =
                format!("1 1 8:1 / /x {options} shared:1 master:2 - ext4 a {super_options}\n");
            assert_eq!(parsed(&line, "/")[0].is_read_only, is_read_only, "{line}");
        }
    }

    #[test]
    fn escapes_in_labels_and_on_the_way() {
        let mounts = parsed("1 1 0:47 / /a\\040b\\011c\\134d rw - tmpfs  rw\n", "/");
        let [mount] = &mounts[..] else { panic!("{mounts:?}") };
        assert_eq!(mount.mount_point, "/a b\tc\\134d");
        assert_eq!(mount.path, Path::new("/a b\tc\\d"));
        assert_eq!(
            (mount.device.as_str(), mount.major.as_str(), mount.minor.as_str()),
            ("", "0", "47")
        );
        let mounts =
            parse(b"1 1 0:47 / /a\xff\xfeb rw - tmpfs \xe9 rw", &Paths::default()).expect("parsed");
        assert_eq!(
            (mounts[0].mount_point.as_str(), mounts[0].device.as_str()),
            ("/a\u{fffd}b", "\u{fffd}")
        );
        assert_eq!(mounts[0].path.as_os_str().len(), 5);
    }

    /// Mounts of the machine, and of a container that sees them below a directory.
    #[test]
    fn mount_points_are_those_of_the_machine() {
        for (mount_point, shown, path) in [
            ("/", "/", "/host"),
            ("/data", "/data", "/host/data"),
            ("/host", "/", "/host"),
            ("/host/data", "/data", "/host/data"),
            ("/hostile", "/hostile", "/host/hostile"),
        ] {
            for rootfs in ["/host", "/host/"] {
                let line = format!("1 1 8:1 / {mount_point} rw - ext4 a rw\n");
                let mount = &parsed(&line, rootfs)[0];
                assert_eq!(
                    (mount.mount_point.as_str(), mount.path.as_path()),
                    (shown, Path::new(path))
                );
            }
        }
    }

    #[test]
    fn a_mount_over_another_is_shown_once() {
        let mounts = parsed(
            "1 1 0:1 / /tmp rw - tmpfs tmpfs rw\n2 1 0:2 / /tmp ro - tmpfs tmpfs rw\n\
             3 1 0:2 / /tmp ro - tmpfs other rw\n",
            "/",
        );
        let devices: Vec<(&str, &str)> =
            mounts.iter().map(|mount| (mount.device.as_str(), mount.minor.as_str())).collect();
        assert_eq!(devices, [("tmpfs", "1"), ("other", "2")]);
    }

    #[test]
    fn other_text_is_named() {
        for hostile in [
            "1 1 8:1 / /x rw - ext4 a",
            "1 1 8:1 / /x rw shared:1 ext4 a rw rw",
            "1 1 8 / /x rw - ext4 a rw",
            "1 1 8:-1 / /x rw - ext4 a rw",
            "cut",
        ] {
            let text = format!("1 1 8:1 / /x rw - ext4 a rw\n{hostile}\n");
            let error = parse(text.as_bytes(), &Paths::default()).expect_err(hostile);
            let error = error.of(Path::new("mountinfo")).to_string();
            assert!(error.starts_with("mountinfo:2: expected"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn hostile_text_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _parsed = parse(&bytes, &Paths::default());
        }
    }
}
