//! Where the machine's files are: elsewhere in a container that has them mounted.

use std::path::{Path, PathBuf};

/// Roots, as node_exporter's `--path.*` flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// `--path.procfs`.
    pub procfs: PathBuf,
    /// `--path.sysfs`.
    pub sysfs: PathBuf,
    /// `--path.rootfs`: what mount points and `os-release` lie under, and what is taken off mount
    /// points.
    pub rootfs: PathBuf,
    /// `--path.udev.data`. As upstream's, not below `rootfs`: containers name it, too.
    pub udev_data: PathBuf,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths {
            procfs: "/proc".into(),
            sysfs: "/sys".into(),
            rootfs: "/".into(),
            udev_data: "/run/udev/data".into(),
        }
    }
}

impl Paths {
    pub(crate) fn procfs(&self, name: impl AsRef<Path>) -> PathBuf {
        self.procfs.join(name)
    }

    pub(crate) fn sysfs(&self, name: impl AsRef<Path>) -> PathBuf {
        self.sysfs.join(name)
    }

    /// Where what the machine calls `absolute` lies here.
    pub(crate) fn rootfs(&self, absolute: &Path) -> PathBuf {
        self.rootfs.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }
}
