//! `bonding`: bonded network devices, and how many of their slaves are up. Upstream:
//! `collector/bonding_linux.go`; the kernel's `Documentation/networking/bonding.rst`.

use super::{Collector, Round};
use crate::error::{CollectError, Result};
use crate::read::Reader;
use crate::sink::{Kind, Output};
use crate::text::valid_utf8;
use rustix::io::Errno;
use std::path::Path;

pub(crate) struct Bonding;

struct Bond {
    master: String,
    slaves: u32,
    active: u32,
}

impl Collector for Bonding {
    fn name(&self) -> &'static str {
        "bonding"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let directory = round.paths.sysfs("class/net");
        let mut masters = words(&directory.join("bonding_masters"), round.reader)?;
        // Sorted and without duplicates, as sinks expect the same series in the same order.
        masters.sort_unstable();
        masters.dedup();
        let bonds = masters.into_iter().map(|master| read_bond(&directory, master, round.reader));
        let bonds: Vec<Bond> = bonds.collect::<Result<_>>()?;
        let help = "Number of configured slaves per bonding interface.";
        let mut family = output.family("node_bonding_slaves", help, Kind::Gauge);
        for Bond { master, slaves, .. } in &bonds {
            family.sample(&[("master", master)], f64::from(*slaves));
        }
        let help = "Number of active slaves per bonding interface.";
        let mut family = output.family("node_bonding_active", help, Kind::Gauge);
        for Bond { master, active, .. } in &bonds {
            family.sample(&[("master", master)], f64::from(*active));
        }
        Ok(())
    }
}

/// Reads the words of a file. Fails with `NoData` if the kernel's module is not loaded.
fn words(path: &Path, reader: &mut Reader) -> Result<Vec<String>> {
    match reader.bytes(path) {
        Ok(text) => Ok(valid_utf8(text).split_whitespace().map(str::to_owned).collect()),
        Err(error) if error.is_not_found() => {
            Err(CollectError::NoData("there are no bonded network devices"))
        }
        Err(error) => Err(error),
    }
}

fn read_bond(directory: &Path, master: String, reader: &mut Reader) -> Result<Bond> {
    let path = directory.join(&master);
    let (mut slaves, mut active) = (0, 0);
    for slave in words(&path.join("bonding/slaves"), reader)? {
        slaves += 1;
        // Kernels before 3.9 have the prefix `slave_` instead.
        let [file, old] = ["lower", "slave"]
            .map(|prefix| path.join(format!("{prefix}_{slave}/bonding_slave/mii_status")));
        let is_up = match reader.attribute(&file) {
            Ok(status) => status == b"up",
            Err(Errno::NOENT) => {
                let status = reader.attribute(&old);
                status.map_err(|error| CollectError::read(&old, error))? == b"up"
            }
            Err(error) => return Err(CollectError::read(&file, error)),
        };
        active += u32::from(is_up);
    }
    Ok(Bond { master, slaves, active })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn slaves_and_those_that_are_up() {
        let tree = Tree::new();
        let error = tree.collect(&mut Bonding).expect_err("no file");
        assert!(matches!(error, CollectError::NoData(_)), "{error}");
        let net = "sys/class/net";
        tree.write_all(
            net,
            &[
                ("bonding_masters", "bond0 dmz int"),
                ("bond0/bonding/slaves", ""),
                ("dmz/bonding/slaves", "eth0 eth4"),
                ("dmz/lower_eth0/bonding_slave/mii_status", "up"),
                ("dmz/slave_eth4/bonding_slave/mii_status", "up"),
                ("int/bonding/slaves", "eth5 eth1"),
                ("int/lower_eth5/bonding_slave/mii_status", "down"),
                ("int/lower_eth1/bonding_slave/mii_status", "up"),
            ],
        );
        let samples = tree.collect(&mut Bonding).expect("collected");
        assert_eq!(
            samples,
            [
                r#"node_bonding_slaves{master="bond0"} 0"#,
                r#"node_bonding_slaves{master="dmz"} 2"#,
                r#"node_bonding_slaves{master="int"} 2"#,
                r#"node_bonding_active{master="bond0"} 0"#,
                r#"node_bonding_active{master="dmz"} 2"#,
                r#"node_bonding_active{master="int"} 1"#,
            ]
        );
        tree.remove("sys/class/net/dmz/slave_eth4");
        assert!(tree.collect(&mut Bonding).is_err());
    }
}
