//! `filefd`: open files of the whole machine. Upstream: `collector/filefd_linux.go`;
//! `proc_sys_fs(5)`.

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::sink::{Kind, Output};

pub(crate) struct Filefd;

impl Collector for Filefd {
    fn name(&self) -> &'static str {
        "filefd"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let path = round.paths.procfs("sys/fs/file-nr");
        let text = round.reader.text(&path)?;
        let fields: Vec<Option<f64>> =
            text.trim().split('\t').map(|field| field.parse().ok()).collect();
        // The second count has always been 0 since Linux 2.6.
        let [Some(allocated), _, Some(maximum), ..] = fields[..] else {
            return Err(
                Malformed::new(0, "three counts with tabs between", text.trim_end()).of(&path)
            );
        };
        let (name, help) = ("node_filefd_allocated", "File descriptor statistics: allocated.");
        output.single(name, help, Kind::Gauge, allocated);
        let (name, help) = ("node_filefd_maximum", "File descriptor statistics: maximum.");
        output.single(name, help, Kind::Gauge, maximum);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn allocated_and_maximum() {
        let tree = Tree::new();
        tree.write("proc/sys/fs/file-nr", "1024\t0\t1631329\n");
        let samples = tree.collect(&mut Filefd).expect("collected");
        assert_eq!(samples, ["node_filefd_allocated 1024", "node_filefd_maximum 1631329"]);
        for hostile in ["", "1024\t0", "1 0 2", "x\t0\t2"] {
            tree.write("proc/sys/fs/file-nr", hostile);
            assert!(tree.collect(&mut Filefd).is_err(), "{hostile}");
        }
    }
}
