//! Collectors do not depend on each other. Resources that several collectors use are in [`Round`].

mod adjtimex;
mod bonding;
mod conntrack;
mod cpu;
mod diskstats;
mod filefd;
mod filesystem;
mod hwmon;
mod loadavg;
mod mdadm;
mod meminfo;
mod netdev;
mod netstat;
mod os;
mod pressure;
pub(crate) mod proc_stat;
mod sockstat;
mod stat;
pub(crate) mod textfile;
mod thermal_zone;
mod time;
mod timex;
mod uname;
mod vmstat;

use crate::error::Result;
use crate::read::Reader;
use crate::sink::Output;
use crate::{Options, Paths};
use proc_stat::SharedStat;

pub(crate) struct Round<'r> {
    pub(crate) paths: &'r Paths,
    pub(crate) reader: &'r mut Reader,
    pub(crate) stat: &'r mut SharedStat,
}

pub(crate) trait Collector: Send {
    /// Returns the collector's name in upstream.
    fn name(&self) -> &'static str;

    /// Passes all samples to `output`. After an error, the samples passed before it remain.
    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()>;
}

/// Returns the collectors in order. Collectors that other programs can delay are last.
pub(crate) fn all(options: &Options, reader: &mut Reader) -> Vec<Box<dyn Collector>> {
    vec![
        Box::new(cpu::Cpu::default()),
        Box::new(stat::Stat),
        Box::new(bonding::Bonding),
        Box::new(conntrack::Conntrack),
        Box::new(diskstats::Diskstats::default()),
        Box::new(filefd::Filefd),
        Box::new(loadavg::Loadavg),
        Box::new(mdadm::Mdadm),
        Box::new(meminfo::Meminfo::default()),
        Box::new(netdev::Netdev::default()),
        Box::new(netstat::Netstat::default()),
        Box::new(os::Os),
        Box::new(pressure::Pressure),
        Box::new(sockstat::Sockstat::default()),
        Box::new(time::Time::new(reader)),
        Box::new(timex::Timex),
        Box::new(uname::Uname),
        Box::new(vmstat::Vmstat::default()),
        Box::new(thermal_zone::ThermalZone),
        Box::new(hwmon::Hwmon),
        Box::new(filesystem::Filesystem::new(options.mount_timeout)),
        Box::new(textfile::Textfile::new(options.textfile_directories.clone())),
    ]
}
