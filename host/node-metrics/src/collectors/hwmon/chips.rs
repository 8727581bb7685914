//! Names chips by the device to which they belong, because the numbers of `hwmon` directories
//! depend on the order in which drivers load.

use crate::read::Reader;
use crate::text::valid_utf8;
use std::path::{Path, PathBuf};

pub(super) struct Chip {
    pub(super) path: PathBuf,
    pub(super) label: String,
    /// Name from the driver, if any. Two chips may have the same name.
    pub(super) readable_name: Option<String>,
}

/// A chip whose name may not be unique yet.
struct Candidate {
    path: PathBuf,
    name: String,
    /// Content of the file `name`.
    driver: String,
}

/// Returns the chips in `directory`. Each is a directory, or a link to a directory.
pub(super) fn all(directory: &Path, names: Vec<String>, reader: &mut Reader) -> Vec<Chip> {
    let mut candidates = Vec::new();
    for name in names {
        let path = directory.join(name);
        if !path.is_dir() {
            continue;
        }
        let driver = reader.raw_attribute(&path.join("name")).map(valid_utf8);
        let driver = driver.map(|driver| driver.into_owned()).unwrap_or_default();
        let Some(name) = chip_name(&path, &driver) else { continue };
        candidates.push(Candidate { path, name, driver: driver.trim().to_owned() });
    }
    let label_of = |candidate: &Candidate| {
        let Candidate { path, name, driver } = candidate;
        let of_name = || candidates.iter().filter(|other| other.name == *name);
        if of_name().count() == 1 {
            return name.clone();
        }
        // Several chips of a device share its name. Mostly they have different drivers.
        let mut suffix = clean(driver);
        if suffix.is_empty() || of_name().filter(|other| other.driver == *driver).count() > 1 {
            suffix = path.file_name().map_or_else(String::new, clean_os);
        }
        format!("{name}_{suffix}")
    };
    let labels: Vec<String> = candidates.iter().map(label_of).collect();
    let chips =
        candidates.into_iter().zip(labels).map(|(Candidate { path, driver, .. }, label)| {
            let readable_name = Some(clean(&driver)).filter(|name| !name.is_empty());
            Chip { path, label, readable_name }
        });
    chips.collect()
}

/// Returns bus and device of a chip, or else the name of its driver, or else of its directory.
fn chip_name(path: &Path, driver: &str) -> Option<String> {
    // `device` is a link, and the path of its target has bus and device.
    if let Ok(device) = path.join("device").canonicalize() {
        let name = device.file_name().map_or_else(String::new, clean_os);
        let bus = device.parent().and_then(Path::file_name).map_or_else(String::new, clean_os);
        if !name.is_empty() {
            return Some(if bus.is_empty() { name } else { format!("{bus}_{name}") });
        }
    }
    let real = || path.canonicalize().ok()?.file_name().map(clean_os);
    Some(clean(driver))
        .filter(|name| !name.is_empty())
        .or_else(real)
        .filter(|name| !name.is_empty())
}

fn clean_os(name: &std::ffi::OsStr) -> String {
    clean(&name.to_string_lossy())
}

/// Converts to lower case, replaces invalid characters by underscores, and trims underscores.
pub(super) fn clean(name: &str) -> String {
    let characters = name.chars().flat_map(char::to_lowercase).map(|character| match character {
        'a'..='z' | '0'..='9' | ':' | '_' => character,
        _ => '_',
    });
    characters.collect::<String>().trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::entries;
    use crate::testing::Tree;

    fn labels(tree: &Tree) -> Vec<(String, Option<String>)> {
        let directory = tree.path("sys/class/hwmon");
        let names = entries(&directory).expect("a directory");
        let chips = all(&directory, names, &mut Reader::default()).into_iter();
        chips.map(|chip| (chip.label, chip.readable_name)).collect()
    }

    #[test]
    fn clean_names() {
        for (name, expected) in [
            ("coretemp.0", "coretemp_0"),
            ("  Nct6779\n", "nct6779"),
            ("_-_", ""),
            ("ÄB c:1", "b_c:1"),
        ] {
            assert_eq!(clean(name), expected);
        }
    }

    /// Upstream's cases: a device; only a driver; only a number.
    #[test]
    fn names_are_of_the_device_or_else_of_the_driver() {
        let tree = Tree::new();
        tree.write("sys/devices/platform/coretemp.0/x", "");
        tree.link("sys/class/hwmon/hwmon0/device", "sys/devices/platform/coretemp.0");
        tree.write("sys/class/hwmon/hwmon1/name", "NCT 6779\n");
        tree.write("sys/devices/virtual/hwmon4/x", "");
        tree.link("sys/class/hwmon/hwmon2", "sys/devices/virtual/hwmon4");
        let expected =
            [("platform_coretemp_0", None), ("nct_6779", Some("nct_6779")), ("hwmon4", None)];
        let expected = expected.map(|(label, name)| (label.to_owned(), name.map(str::to_owned)));
        assert_eq!(labels(&tree), expected);
    }

    #[test]
    fn chips_of_one_device_have_the_driver_or_the_number_behind() {
        let tree = Tree::new();
        tree.write("sys/devices/platform/asus-nb-wmi/x", "");
        for (chip, name) in [
            ("hwmon0", "asus"),
            ("hwmon1", "asus_wmi_sensors"),
            ("hwmon2", "same"),
            ("hwmon3", "same"),
        ] {
            tree.write(&format!("sys/class/hwmon/{chip}/name"), format!("{name}\n"));
            let device = format!("sys/class/hwmon/{chip}/device");
            tree.link(&device, "sys/devices/platform/asus-nb-wmi");
        }
        tree.link("sys/class/hwmon/hwmon4/device", "sys/devices/platform/asus-nb-wmi");
        let labels: Vec<String> = labels(&tree).into_iter().map(|(label, _)| label).collect();
        let suffixes = ["asus", "asus_wmi_sensors", "hwmon2", "hwmon3", "hwmon4"];
        assert_eq!(labels, suffixes.map(|suffix| format!("platform_asus_nb_wmi_{suffix}")));
    }
}
