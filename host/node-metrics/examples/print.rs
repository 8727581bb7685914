//! Prints the metrics of this machine in Prometheus' text format, like a node_exporter: `cargo run
//! --example print [TEXTFILE_DIRECTORY]…`. The variables `PROCFS`, `SYSFS`, `ROOTFS` and
//! `UDEV_DATA` set other roots for the files.

use std::env::{args_os, var_os};
use tidepool_node_metrics::{
    CollectError, Exposition, Kind, Label, NodeMetrics, Options, Sink, TextFile, TextFileOutcome,
};

#[derive(Default)]
struct Printed(Exposition);

impl Sink for Printed {
    fn family(&mut self, name: &str, help: &str, kind: Kind) {
        self.0.family(name, help, kind);
    }

    fn sample(&mut self, labels: &[Label<'_>], value: f64) {
        self.0.sample(labels, value);
    }

    fn text_file(&mut self, file: &TextFile<'_>) -> TextFileOutcome {
        self.0.lines(&String::from_utf8_lossy(file.content));
        TextFileOutcome::Taken
    }

    fn failed(&mut self, collector: &'static str, error: &CollectError) {
        eprintln!("{collector}: {error}");
    }
}

fn main() {
    let mut options = Options::default();
    let roots = [
        ("PROCFS", &mut options.paths.procfs),
        ("SYSFS", &mut options.paths.sysfs),
        ("ROOTFS", &mut options.paths.rootfs),
        ("UDEV_DATA", &mut options.paths.udev_data),
    ];
    for (name, root) in roots {
        if let Some(path) = var_os(name) {
            *root = path.into();
        }
    }
    options.textfile_directories = args_os().skip(1).map(Into::into).collect();
    let mut printed = Printed::default();
    NodeMetrics::new(options).collect(&mut printed);
    print!("{}", printed.0.take());
}
