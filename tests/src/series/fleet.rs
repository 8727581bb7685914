//! A model of the metrics of a Kubernetes fleet: per node, the families of node exporter, the
//! kubelet and an HTTP service, about ten labels each, with values that change as real ones do.
//!
//! The sizes matter for benchmarks: a row of one sample takes about 345 bytes in remote write 1.0
//! and about 64 in 2.0 (a test checks both).

use super::{Labels, ORDINARY_NAN_BITS, Random, STALE_MARKER_BITS, Sample, Series, Shape, Texture};

/// Kind of change of a family's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Motion {
    /// Whole numbers that rise, as those of counters.
    Count,
    /// Fractional seconds that rise, as those of counters.
    Seconds,
    /// Multiples of 4096 bytes, up and down.
    Bytes,
    /// Numbers with two decimals, up and down.
    Load,
    /// Mostly one and the same value.
    State,
}

/// A metric family: its name, the job that exposes it, its number of pods on a node, and the labels
/// in which its series differ within a pod.
struct Family {
    name: &'static str,
    exporter: &'static str,
    pods: usize,
    motion: Motion,
    first: (&'static str, &'static [&'static str]),
    second: (&'static str, &'static [&'static str]),
}

/// Stands for a value that is unique to the pod and the first label.
const UNIQUE: &[&str] = &["unique"];
const CPUS: &[&str] = &["0", "1", "2", "3"];
const MODES: &[&str] = &["idle", "iowait", "softirq", "system", "user"];
const DISKS: &[&str] = &["nvme0n1", "nvme1n1", "sda"];
const NICS: &[&str] = &["eth0", "cni0", "lo"];
const MOUNTS: &[&str] = &["/", "/boot", "/var/lib/kubelet"];
const CONTAINERS: &[&str] = &["api", "istio-proxy"];
const BOUNDS: &[&str] = &["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "5", "+Inf"];
const CODES: &[&str] = &["200", "404", "503"];
const PHASES: &[&str] = &["Pending", "Running", "Succeeded", "Failed", "Unknown"];

const FAMILIES: &[Family] = &[
    Family {
        name: "node_cpu_seconds_total",
        exporter: "node-exporter",
        pods: 1,
        motion: Motion::Seconds,
        first: ("cpu", CPUS),
        second: ("mode", MODES),
    },
    Family {
        name: "node_disk_written_bytes_total",
        exporter: "node-exporter",
        pods: 1,
        motion: Motion::Count,
        first: ("device", DISKS),
        second: ("endpoint", &["https"]),
    },
    Family {
        name: "node_network_receive_packets_total",
        exporter: "node-exporter",
        pods: 1,
        motion: Motion::Count,
        first: ("device", NICS),
        second: ("endpoint", &["https"]),
    },
    Family {
        name: "node_filesystem_avail_bytes",
        exporter: "node-exporter",
        pods: 1,
        motion: Motion::Bytes,
        first: ("mountpoint", MOUNTS),
        second: ("fstype", &["ext4"]),
    },
    Family {
        name: "node_load5",
        exporter: "node-exporter",
        pods: 1,
        motion: Motion::Load,
        first: ("endpoint", &["https"]),
        second: ("scheme", &["plain"]),
    },
    Family {
        name: "container_memory_working_set_bytes",
        exporter: "kubelet",
        pods: 6,
        motion: Motion::Bytes,
        first: ("container", CONTAINERS),
        second: ("id", UNIQUE),
    },
    Family {
        name: "container_cpu_usage_seconds_total",
        exporter: "kubelet",
        pods: 6,
        motion: Motion::Seconds,
        first: ("container", CONTAINERS),
        second: ("id", UNIQUE),
    },
    Family {
        name: "http_request_duration_seconds_bucket",
        exporter: "checkout",
        pods: 2,
        motion: Motion::Count,
        first: ("le", BOUNDS),
        second: ("code", CODES),
    },
    Family {
        name: "kube_pod_status_phase",
        exporter: "kube-state-metrics",
        pods: 3,
        motion: Motion::State,
        first: ("phase", PHASES),
        second: ("uid", UNIQUE),
    },
];

impl Family {
    fn series_per_pod(&self) -> usize {
        self.first.1.len() * self.second.1.len()
    }

    fn series_per_node(&self) -> usize {
        self.pods * self.series_per_pod()
    }
}

/// Generator of one series' values, one scrape after the other.
#[derive(Clone, Debug)]
pub struct Values {
    motion: Motion,
    value: f64,
    interval_ms: i64,
    random: Random,
}

/// Returns one series of the fleet with all its samples.
pub fn series(shape: &Shape, index: usize) -> Series {
    let (labels, mut values) = start(shape, index);
    let mut samples = Vec::with_capacity(shape.scrapes);
    for scrape in 0..shape.scrapes as i64 {
        let mut sample = Sample {
            timestamp_ms: shape.start_ms + scrape * shape.interval_ms,
            value: values.step(),
        };
        if shape.texture == Texture::Rough {
            let random = &mut values.random;
            if random.one_in(25) {
                continue;
            }
            roughen(&mut sample, shape.interval_ms, random);
            if values.motion == Motion::Count && random.one_in(200) {
                values.value = 0.0;
            }
        }
        samples.push(sample);
    }
    Series { labels, samples }
}

/// Returns the labels of a series and the generator of its values, for data larger than memory.
pub fn start(shape: &Shape, index: usize) -> (Labels, Values) {
    let (labels, motion) = identity(shape.seed, index);
    let mut random = Random::new(shape.seed, index as u64);
    let value = first_value(motion, &mut random);
    (labels, Values { motion, value, interval_ms: shape.interval_ms, random })
}

impl Values {
    pub fn step(&mut self) -> f64 {
        self.value = next_value(self.motion, self.value, self.interval_ms, &mut self.random);
        self.value
    }
}

/// Returns labels and motion of a series by its number: nodes one after the other, each with all
/// families.
fn identity(seed: u64, index: usize) -> (Labels, Motion) {
    let per_node: usize = FAMILIES.iter().map(Family::series_per_node).sum();
    let node = index / per_node;
    let mut rest = index % per_node;
    let mut families = FAMILIES.iter();
    let family = loop {
        match families.next() {
            Some(family) if rest < family.series_per_node() => break family,
            Some(family) => rest -= family.series_per_node(),
            // The remainder is below the sum of all families.
            None => unreachable!("series {index} lies in no family"),
        }
    };
    let (pod, rest) = (rest / family.series_per_pod(), rest % family.series_per_pod());
    let (first, second) = (family.first, family.second);
    let (first_index, second_index) = (rest % first.1.len(), rest / first.1.len());
    // Hashed names, as those of real pods, but the same for all series of the pod.
    let hash = Random::new(seed ^ 0x00b0_d5ee, (node * 64 + pod) as u64).next_u64();
    let second_value = match second.1 {
        UNIQUE => format!("/kubepods/burstable/pod{hash:016x}/{first_index:02x}"),
        values => values[second_index].to_string(),
    };
    let labels = Labels::from_pairs([
        ("__name__", family.name.to_string()),
        ("cluster", "prod-eu-central-1".to_string()),
        ("environment", "prod".to_string()),
        ("instance", format!("node-{node:05}.internal:9100")),
        ("job", format!("monitoring/{}", family.exporter)),
        ("namespace", "checkout-shop".to_string()),
        ("node", format!("ip-node-{node:05}.compute.internal")),
        ("pod", format!("{}-{:08x}-{:05x}", family.exporter, hash >> 32, hash & 0xf_ffff)),
        ("service", family.exporter.to_string()),
        (first.0, first.1[first_index].to_string()),
        (second.0, second_value),
    ]);
    (labels, family.motion)
}

fn first_value(motion: Motion, random: &mut Random) -> f64 {
    match motion {
        Motion::Count => random.below(50_000_000) as f64,
        Motion::Seconds => random.fraction() * 1e6,
        Motion::Bytes => (random.below(1 << 20) * 4096) as f64,
        Motion::Load => random.below(400) as f64 / 100.0,
        Motion::State => random.below(2) as f64,
    }
}

fn next_value(motion: Motion, value: f64, interval_ms: i64, random: &mut Random) -> f64 {
    match motion {
        // Many counters do not change between scrapes.
        Motion::Count if random.one_in(3) => value,
        Motion::Count => value + random.below(2_000) as f64,
        Motion::Seconds => {
            let busy = random.below(interval_ms as u64) as f64 / 1000.0;
            ((value + busy) * 100.0).round() / 100.0
        }
        Motion::Bytes => (value + (random.below(65) as f64 - 32.0) * 4096.0).max(0.0),
        Motion::Load => {
            ((value + (random.fraction() - 0.5) / 4.0) * 100.0).round().max(0.0) / 100.0
        }
        Motion::State if random.one_in(100) => 1.0 - value,
        Motion::State => value,
    }
}

/// Moves a sample's time, or replaces its value by one that is an edge case for encoders.
fn roughen(sample: &mut Sample, interval_ms: i64, random: &mut Random) {
    if random.one_in(4) {
        // Less than the interval, so that times still ascend; small and large delays, for every
        // width of a delta of deltas.
        let out_of_order_max_ms = random.pick(&[2, 40, 700, interval_ms]).min(interval_ms - 1);
        sample.timestamp_ms += random.below(out_of_order_max_ms as u64 + 1) as i64;
    }
    if random.one_in(20) {
        sample.value = random.pick(&[
            f64::from_bits(STALE_MARKER_BITS),
            f64::from_bits(ORDINARY_NAN_BITS),
            f64::from_bits(0xfff8_dead_beef_0001),
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            f64::MIN_POSITIVE / 2.0,
            f64::MAX,
            -1.0 / 3.0,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dataset;
    use super::*;
    use crate::remote_write::{Version, message_bytes};

    /// Returns the mean size of a row in a request of 2000 rows.
    fn bytes_per_row(version: Version) -> usize {
        let texture = Texture::Regular;
        let data = Dataset::generate(Shape {
            seed: 1,
            series: 2_000,
            scrapes: 1,
            start_ms: 1_760_000_000_000,
            interval_ms: 15_000,
            texture,
        });
        let rows = &data.requests(2_000)[0];
        message_bytes(version, rows).len() / rows.len()
    }

    #[test]
    fn rows_are_as_large_as_real_ones() {
        let (v1, v2) = (bytes_per_row(Version::V1), bytes_per_row(Version::V2));
        assert!((330..=360).contains(&v1), "remote write 1.0: {v1} bytes a row");
        assert!((56..=72).contains(&v2), "remote write 2.0: {v2} bytes a row");
    }

    #[test]
    fn label_sets_have_about_ten_labels() {
        assert_eq!(identity(1, 3).0.pairs().len(), 11);
    }

    #[test]
    fn rough_data_has_every_odd_value() {
        let data = Dataset::generate(Shape {
            seed: 3,
            series: 100,
            scrapes: 100,
            start_ms: 0,
            interval_ms: 15_000,
            texture: Texture::Rough,
        });
        let values = || data.series.iter().flat_map(|s| &s.samples).map(|s| s.value.to_bits());
        for bits in [STALE_MARKER_BITS, ORDINARY_NAN_BITS, f64::INFINITY.to_bits(), 1 << 63] {
            assert!(values().any(|v| v == bits), "{bits:#x} is missing");
        }
    }
}
