//! Roots of the machine's files, which a container may have mounted elsewhere.

use std::path::{Path, PathBuf};

/// Roots, as node_exporter's `--path.*` flags set them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub procfs: PathBuf,
    pub sysfs: PathBuf,
    /// `--path.rootfs`: root of mount points and `os-release`, which is removed from mount points.
    pub rootfs: PathBuf,
    /// `--path.udev.data`. As in upstream, not below `rootfs`: containers name it, too.
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

    /// Returns the path of a file that the machine calls `absolute`.
    pub(crate) fn rootfs(&self, absolute: &Path) -> PathBuf {
        self.rootfs.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }
}
