//! The engine as a library of this program.

use crate::work::{self, RUNS, SERIES, STEPS, STEPS_A_CALL, Spent, timed};
use crate::{Figures, Outcome};
use std::rc::Rc;
use std::time::Instant;
use tidepool_engine::Result;
use tidepool_engine::chunk::samples;
use tidepool_engine::engine::{Engine, Role, Storage};
use tidepool_engine::head::HeadOptions;
use tidepool_engine::model::{Labels, Sample, TimeRange};
use tidepool_engine::select::{FrameFormat, Selection};
use tidepool_engine::storage::memory::{MemoryBlocks, MemoryWal};

fn open() -> Result<Engine> {
    let storage = Storage {
        wal: Box::new(MemoryWal::default()),
        blocks: Rc::new(MemoryBlocks::default()),
        head: None,
    };
    let mut store = Engine::open(Role::All, HeadOptions::new(7), storage)?;
    while !store.replay(1 << 20)?.done {}
    Ok(store)
}

fn read(store: &Engine) -> Outcome<(u64, f64)> {
    let mut cursor = store.select(&Selection {
        matchers: vec![],
        range: TimeRange::ALL,
        format: FrameFormat::ChunkedSeries,
        query_index: 0,
        frame_bytes_max: 0,
        samples_max: 0,
        external: Labels::default(),
    })?;
    let (mut count, mut sum) = (0, 0.0);
    loop {
        let series = cursor.next(1 << 20)?;
        if series.is_empty() {
            return Ok((count, sum));
        }
        for chunk in series.iter().flat_map(|series| &series.chunks) {
            for sample in samples(chunk)? {
                count += 1;
                sum += sample?.value;
            }
        }
    }
}

pub fn measure() -> Outcome<Figures> {
    let (mut append, mut select) = (Spent::MOST, Spent::MOST);
    let mut found = (0, 0.0);
    let began = Instant::now();
    drop(open()?);
    let load_ms = began.elapsed().as_secs_f64() * 1e3;
    for _ in 0..RUNS {
        let mut store = open()?;
        let mut refs = Vec::new();
        for series in 0..SERIES {
            let labels = work::labels(series);
            let pairs = labels.iter().map(|(name, value)| (*name, value.as_str()));
            refs.push(store.series_ref(&Labels::from_pairs(pairs)?)?);
        }
        let row = |series: usize, step| {
            let sample =
                Sample { timestamp_ms: work::time_ms(step), value: work::value(series, step) };
            (refs[series], sample)
        };
        let batch = |from: usize| -> Vec<_> {
            let steps = from..from + STEPS_A_CALL;
            steps.flat_map(|step| (0..SERIES).map(move |series| (series, step))).collect()
        };
        let batches: Vec<Vec<_>> = (0..STEPS)
            .step_by(STEPS_A_CALL)
            .map(|from| batch(from).into_iter().map(|(series, step)| row(series, step)).collect())
            .collect();
        let (appended, spent) = timed(|| -> Result<()> {
            for rows in batches {
                store.append(rows.into_iter(), work::END_MS)?;
            }
            Ok(())
        });
        appended?;
        append = append.least(spent);
        let (read, spent) = timed(|| read(&store));
        found = read?;
        select = select.least(spent);
    }
    Ok(Figures {
        load_ms,
        reload_ms: None,
        append_seconds: append.seconds,
        append_cpu_seconds: append.cpu_seconds,
        select_seconds: select.seconds,
        select_cpu_seconds: select.cpu_seconds,
        samples: found.0,
        sum: found.1,
    })
}
