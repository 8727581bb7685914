//! `loadavg`: load averages. Upstream: `collector/loadavg_linux.go`; `proc_loadavg(5)`.

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::sink::{Kind, Output};

const FAMILIES: [(&str, &str); 3] = [
    ("node_load1", "1m load average."),
    ("node_load5", "5m load average."),
    ("node_load15", "15m load average."),
];

pub(crate) struct Loadavg;

impl Collector for Loadavg {
    fn name(&self) -> &'static str {
        "loadavg"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let path = round.paths.procfs("loadavg");
        let text = round.reader.text(&path)?;
        let mut fields = text.split_ascii_whitespace().map(str::parse);
        let mut field = || fields.next().and_then(std::result::Result::ok);
        let (Some(one), Some(five), Some(fifteen)) = (field(), field(), field()) else {
            return Err(Malformed::new(0, "three averages", text.trim_end()).of(&path));
        };
        for ((name, help), load) in FAMILIES.into_iter().zip([one, five, fifteen]) {
            output.single(name, help, Kind::Gauge, load);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn three_averages() {
        let tree = Tree::new();
        tree.write("proc/loadavg", "0.21 0.37 0.39 1/719 19737\n");
        let samples = tree.collect(&mut Loadavg).expect("collected");
        assert_eq!(samples, ["node_load1 0.21", "node_load5 0.37", "node_load15 0.39"]);
        for hostile in ["", "0.21 0.37", "0.21 x 0.39"] {
            tree.write("proc/loadavg", hostile);
            assert!(tree.collect(&mut Loadavg).is_err(), "{hostile}");
        }
        tree.remove("proc/loadavg");
        assert!(tree.collect(&mut Loadavg).expect_err("no file").is_not_found());
    }
}
