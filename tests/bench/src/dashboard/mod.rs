//! Dashboards that refresh while a server takes writes: latency of panels and of writes, each
//! beside the other, in tidepool, Prometheus and VictoriaMetrics in one run.
//!
//! [`history`] writes hours of the series that [`panels`] show, and continues when each scrape is
//! due. [`viewer`] refreshes; [`phases`] writes other series at an even rate, alternately alone and
//! beside the viewers. Before that, each dashboard is requested once and then again, a step later:
//! the cost of the second time shows the effect of kept results. Then [`answers`] compares.
//! [`verdict`] judges, [`table`] prints.

pub mod answers;
pub mod history;
pub mod panels;
pub mod phases;
pub mod table;
pub mod verdict;
pub mod viewer;

use super::contender::Contender;
use super::queries::{REFERENCE, data};
use super::trial::settle;
use super::{BenchError, Context};
use answers::Reply;
use history::History;
use panels::Panel;
use phases::{Phase, Writes};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidepool_tests::clock::now_ms;
use tidepool_tests::latency::median;
use tidepool_tests::process::Server;
use tidepool_tests::remote_write::Version;
use tidepool_tests::series::Shape;
use tidepool_tests::wait;
use viewer::{Refreshes, Viewer};

/// Timeout for the beginning of the next step.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of viewers at the same time.
    pub viewers: usize,
    /// Number of panels of a dashboard.
    pub panels: usize,
    /// Interval from one refresh to the next.
    pub refresh_every: Duration,
    /// Number of samples written in a second.
    pub write_rate: usize,
    /// Length of a phase in seconds.
    pub phase_s: usize,
    /// Number of phases without viewers, and of phases with viewers.
    pub phases: usize,
    /// Number of series that panels select from.
    pub series: usize,
    /// Hours of samples stored before the measurement.
    pub hours: u32,
    /// Number of repeated requests of each dashboard after the first one.
    pub repeats: usize,
}

/// Cost of one refresh, as the mean of all viewers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefreshCost {
    pub cpu: Duration,
    /// Time from the first request to the last answer.
    pub wall: Duration,
}

pub struct ServerFigures {
    pub contender: Contender,
    pub version: Version,
    /// Number of samples in the server before the measurement.
    pub stored: u64,
    pub quiet: Vec<Phase>,
    /// Phases of writes beside viewers.
    pub beside: Vec<Phase>,
    /// Peak of resident memory in the phases.
    pub peak_memory_bytes: u64,
    /// First refresh, beside the scrapes of these series only.
    pub first: RefreshCost,
    /// The same refresh a step later; the median of all repetitions.
    pub repeated: RefreshCost,
    /// Failed requests with their reasons.
    pub failures: Vec<String>,
}

pub struct Outcome {
    /// Measurements by server, in the order of the columns.
    pub found: Vec<ServerFigures>,
    /// Number of panels whose answers were compared.
    pub compared: usize,
    /// Differences between tidepool's and Prometheus' answers; `None` unless both were measured.
    pub differences: Option<Vec<String>>,
}

/// Measures one server after the other.
pub fn run(context: &Context, options: &Options) -> Result<Outcome, BenchError> {
    let shape = history::shape(context.seed, options.series, options.hours);
    let sample = sample(&shape, options);
    let mut found = Vec::new();
    let (mut ours, mut theirs) = (None, None);
    for &contender in &context.servers {
        let (of_server, replies) = measure(context, options, contender, shape, &sample)?;
        found.push(of_server);
        match contender {
            Contender::Tidepool => ours = Some(replies),
            REFERENCE => theirs = Some(replies),
            _ => {}
        }
    }
    let both = ours.zip(theirs);
    let differences = both.map(|(ours, theirs)| answers::differences(&sample, &ours, &theirs));
    Ok(Outcome { found, compared: sample.len(), differences })
}

/// Returns the panels to compare: all of the first and of the last viewer.
fn sample(shape: &Shape, options: &Options) -> Vec<Panel> {
    let of = |viewer| panels::of_viewer(viewer, data::instances(shape), options.panels);
    let mut sample = of(0);
    sample.extend(of(options.viewers.saturating_sub(1)));
    sample.dedup();
    sample
}

fn measure(
    context: &Context,
    options: &Options,
    contender: Contender,
    shape: Shape,
    sample: &[Panel],
) -> Result<(ServerFigures, Vec<Result<Reply, String>>), BenchError> {
    let directory = tempfile::tempdir_in(&context.directory)?;
    let flags = match contender {
        Contender::Tidepool => context.tidepool_flags.as_slice(),
        _ => &[],
    };
    let server = contender.launch(directory.path(), flags)?.start()?;
    let version = if contender.takes(Version::V2) { Version::V2 } else { Version::V1 };
    let mut history = History::new(shape, &server.url(), version);
    let mut writes = Writes::new(context.seed, options.write_rate, version);
    let mut stored = history.catch_up()?;
    writes.begin(&server)?;
    settle(&server, context.idle_window)?;
    stored += history.catch_up()?;
    eprintln!("{contender}: {stored} samples are stored");

    let is_over = AtomicBool::new(false);
    let (measured, followed) = std::thread::scope(|scope| {
        let follower = scope.spawn(|| history.follow(&is_over));
        let measured = measure_filled(context, options, contender, &server, &mut writes, shape);
        is_over.store(true, Relaxed);
        let followed = follower.join();
        (measured, followed.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let found = ServerFigures { version, stored, ..measured? };
    followed?;
    let replies = answers::ask(&server, sample, history::end_ms(&shape))?;
    server.terminate()?;
    Ok((found, replies))
}

fn measure_filled(
    context: &Context,
    options: &Options,
    contender: Contender,
    server: &Server,
    writes: &mut Writes,
    shape: Shape,
) -> Result<ServerFigures, BenchError> {
    let viewers: Vec<Viewer> = (0..options.viewers)
        .map(|number| panels::of_viewer(number, data::instances(&shape), options.panels))
        .map(|panels| Viewer::new(&server.url(), panels))
        .collect();
    let mut failures = Vec::new();
    let mut end_ms = now_ms();
    let first = refresh_all(context, server, &viewers, end_ms, &mut failures)?;
    let mut repeated = Vec::new();
    for _ in 0..options.repeats {
        end_ms = next_step(context, end_ms)?;
        repeated.push(refresh_all(context, server, &viewers, end_ms, &mut failures)?);
    }
    let of = |part: fn(&RefreshCost) -> Duration| median(repeated.iter().map(part));
    let repeated = RefreshCost { cpu: of(|cost| cost.cpu), wall: of(|cost| cost.wall) };
    eprintln!("{contender}: a refresh took {first:?} at first, {repeated:?} later");

    server.reset_peak_memory()?;
    let (mut quiet, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..options.phases {
        for (viewers, phases) in [(&viewers[..0], &mut quiet), (&viewers[..], &mut beside)] {
            let phase = writes.phase(server, options.phase_s, viewers, options.refresh_every)?;
            eprintln!("{contender}: {}", table::progress(&phase));
            phases.push(phase);
        }
    }
    let peak_memory_bytes = server.usage()?.peak_memory_bytes;
    failures.extend(beside.iter().flat_map(|phase| phase.refreshes.failures.iter().cloned()));
    Ok(ServerFigures {
        contender,
        version: Version::V2,
        stored: 0,
        quiet,
        beside,
        peak_memory_bytes,
        first,
        repeated,
        failures,
    })
}

/// Refreshes one dashboard after the other, all at the same time of evaluation.
fn refresh_all(
    context: &Context,
    server: &Server,
    viewers: &[Viewer],
    now_ms: i64,
    failures: &mut Vec<String>,
) -> Result<RefreshCost, BenchError> {
    let before = settle(server, context.idle_window)?;
    let mut all = Refreshes::default();
    viewers.iter().for_each(|viewer| all.extend(viewer.refresh(now_ms)));
    let cpu = settle(server, context.idle_window)?.cpu.saturating_sub(before.cpu);
    failures.extend(all.failures);
    let count = viewers.len().max(1) as u32;
    Ok(RefreshCost { cpu: cpu / count, wall: all.whole.iter().sum::<Duration>() / count })
}

/// Waits for the next step and returns the time of a refresh whose ranges end in that step.
fn next_step(context: &Context, before_ms: i64) -> Result<i64, BenchError> {
    // A smoke test does not wait for the next step.
    if context.quick {
        return Ok(before_ms + panels::STEP_MS);
    }
    let later = || {
        Some(now_ms()).filter(|&now| panels::last_step_ms(now) > panels::last_step_ms(before_ms))
    };
    Ok(wait::until("the next step", STEP_TIMEOUT, later)?)
}

impl ServerFigures {
    /// Returns the viewers' refreshes of all phases.
    pub fn refreshes(&self) -> Refreshes {
        let mut all = Refreshes::default();
        self.beside.iter().for_each(|phase| all.extend(phase.refreshes.clone()));
        all
    }
}
