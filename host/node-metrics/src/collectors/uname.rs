//! `uname`: kernel and names of the machine. Upstream: `collector/uname_linux.go`; `uname(2)`.

use super::{Collector, Round};
use crate::error::Result;
use crate::sink::{Kind, Output};
use crate::text::valid_utf8;

pub(crate) struct Uname;

impl Collector for Uname {
    fn name(&self) -> &'static str {
        "uname"
    }

    fn collect(&mut self, _round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let uname = rustix::system::uname();
        let labels = [
            ("domainname", valid_utf8(uname.domainname().to_bytes())),
            ("machine", valid_utf8(uname.machine().to_bytes())),
            ("nodename", valid_utf8(uname.nodename().to_bytes())),
            ("release", valid_utf8(uname.release().to_bytes())),
            ("sysname", valid_utf8(uname.sysname().to_bytes())),
            ("version", valid_utf8(uname.version().to_bytes())),
        ];
        let labels = labels.each_ref().map(|(name, value)| (*name, value.as_ref()));
        let help = "Labeled system information as provided by the uname system call.";
        output.family("node_uname_info", help, Kind::Gauge).sample(&labels, 1.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;
    use std::fs;

    #[test]
    fn as_the_kernel_says_in_its_files() {
        let of = |name| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).expect("a file");
            text.trim_end().to_owned()
        };
        let samples = Tree::new().collect(&mut Uname).expect("collected");
        let [sample] = &samples[..] else { panic!("{samples:?}") };
        for (label, name) in [
            ("domainname", "domainname"),
            ("nodename", "hostname"),
            ("release", "osrelease"),
            ("sysname", "ostype"),
            ("version", "version"),
        ] {
            assert!(sample.contains(&format!("{label}={:?}", of(name))), "{sample}");
        }
        assert!(sample.starts_with("node_uname_info{") && sample.ends_with("} 1"), "{sample}");
    }
}
