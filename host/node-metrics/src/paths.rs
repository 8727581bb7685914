//! Root directories of the machine's files, which may be mounted elsewhere in a container.

use std::path::{Path, PathBuf};

/// Root directories, as set by node_exporter's `--path.*` flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub procfs: PathBuf,
    pub sysfs: PathBuf,
    /// `--path.rootfs`: root for mount points and `os-release`. It is removed from mount points.
    pub rootfs: PathBuf,
    /// `--path.udev.data`. As in upstream, not relative to `rootfs`, so containers set it as well.
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

    /// Returns the path here of a file whose path on the machine is `absolute`.
    pub(crate) fn rootfs(&self, absolute: &Path) -> PathBuf {
        self.rootfs.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }
}
