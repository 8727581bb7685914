//! `vmstat`: paging. Upstream: `collector/vmstat_linux.go`; `proc_vmstat(5)`.

use super::{Collector, Round};
use crate::error::{Malformed, Result};
use crate::sink::{Kind, Output};
use crate::text::{format_into, is_name_part};
use std::collections::HashSet;

#[derive(Default)]
pub(crate) struct Vmstat {
    /// Fields that were shown already in this round.
    shown: HashSet<String>,
    name: String,
    help: String,
}

impl Collector for Vmstat {
    fn name(&self) -> &'static str {
        "vmstat"
    }

    fn collect(&mut self, round: &mut Round<'_>, output: &mut Output<'_>) -> Result<()> {
        let path = round.paths.procfs("vmstat");
        let text = round.reader.text(&path)?;
        self.shown.clear();
        for (number, line) in text.lines().enumerate() {
            let mut fields = line.split_ascii_whitespace();
            let (field, value) = (fields.next().unwrap_or_default(), fields.next());
            let value = value.and_then(|value| value.parse().ok());
            // Fields become parts of metric names, so they must be valid.
            let Some(value) = value.filter(|_| is_name_part(field)) else {
                return Err(Malformed::new(number, "a name and a count", line).of(&path));
            };
            // A repeated field is skipped, because it would repeat a series.
            if !is_shown(field) || !self.shown.insert(field.to_owned()) {
                continue;
            }
            let name = format_into(&mut self.name, format_args!("node_vmstat_{field}"));
            let arguments = format_args!("/proc/vmstat information field {field}.");
            let help = format_into(&mut self.help, arguments);
            output.single(name, help, Kind::Untyped, value);
        }
        Ok(())
    }
}

/// Returns whether upstream's `^(oom_kill|pgpg|pswp|pg.*fault).*` matches.
fn is_shown(field: &str) -> bool {
    ["oom_kill", "pgpg", "pswp"].iter().any(|prefix| field.starts_with(prefix))
        || field.strip_prefix("pg").is_some_and(|rest| rest.contains("fault"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Recorder, Tree};

    #[test]
    fn paging_faults_and_kills() {
        let tree = Tree::new();
        tree.write(
            "proc/vmstat",
            "nr_free_pages 977769\npgpgin 7344136\npgpgout 1541180581\npswpin 1476\npswpout 35045\n\
             pgalloc_dma32 1\npgfault 2320168809\npgmajfault 507162\npgfault 7\nnuma_pte_faults 5\n\
             thp_fault_alloc 142261\noom_kill 0\nfault 1\n",
        );
        let mut recorder = Recorder::default();
        tree.collect_into(&mut Vmstat::default(), &mut recorder).expect("collected");
        assert_eq!(
            recorder.samples,
            [
                "node_vmstat_pgpgin 7344136",
                "node_vmstat_pgpgout 1541180581",
                "node_vmstat_pswpin 1476",
                "node_vmstat_pswpout 35045",
                "node_vmstat_pgfault 2320168809",
                "node_vmstat_pgmajfault 507162",
                "node_vmstat_oom_kill 0",
            ]
        );
        let (name, help, kind) = &recorder.families[0];
        assert_eq!(name, "node_vmstat_pgpgin");
        assert_eq!(help, "/proc/vmstat information field pgpgin.");
        assert_eq!(*kind, Kind::Untyped);
    }

    #[test]
    fn other_text_is_named() {
        let tree = Tree::new();
        for hostile in ["pgpgin", "pgpgin x", "", "pgpg\u{e9}in 1", "pgpg{} 1"] {
            tree.write("proc/vmstat", format!("oom_kill 0\n{hostile}\n"));
            let error = tree.collect(&mut Vmstat::default()).expect_err(hostile).to_string();
            assert!(error.contains("vmstat:2: expected a name"), "{error}");
        }
    }
}
