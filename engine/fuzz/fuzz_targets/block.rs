//! A sound block of which some bytes were changed, or whose files end early, opens or says what is
//! wrong, and so do its series and chunks. Checksums are off here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidepool_engine::block::{BlockBuilder, BlockMetaParams, BlockReader, SymbolCollector};
use tidepool_engine::chunk::{encode, values};
use tidepool_engine::model::{Histogram, Labels, MatchOp, Matcher, MatcherSpec, Value};
use tidepool_engine::storage::memory::MemoryBlocks;
use tidepool_engine::storage::{BlockWriter, Blocks};

const FILES: [&str; 4] = ["meta.json", "index", "chunks/000001", "tombstones"];

/// Twenty series, every third one of histograms.
fn sound_block() -> Vec<Vec<u8>> {
    let blocks = MemoryBlocks::default();
    let names: Vec<String> = (0..20).map(|number| format!("a{number:02}")).collect();
    let series =
        names.iter().map(|name| Labels::from_sorted([("__name__", name.as_str()), ("job", "b")]));
    let series: Vec<Labels> = series.collect();
    let mut symbols = SymbolCollector::new(1);
    series.iter().for_each(|labels| symbols.add(labels));
    let writer = blocks.create(0).expect("memory");
    let id = writer.id().to_owned();
    let mut builder = BlockBuilder::new(writer, symbols).expect("memory");
    for (number, labels) in series.iter().enumerate() {
        let value = |time: i64| match number % 3 {
            0 => (time, Value::from(Histogram::stale())),
            _ => (time, Value::from(time as f64)),
        };
        builder.add_series(labels, &encode((0..200).map(value))).expect("sound series");
    }
    let params = BlockMetaParams { max_time_ms: 1000, level: 1, ..BlockMetaParams::default() };
    builder.finish(params).expect("a sound block");
    let read = |name: &&str| {
        let file = blocks.open(&id, name).expect("a file of the block");
        file.read_at(0, file.size() as u32).expect("memory")
    };
    FILES.iter().map(read).collect()
}

thread_local! {
    static SOUND: Vec<Vec<u8>> = sound_block();
}

fuzz_target!(|input: (Vec<(u8, u16, u8)>, Option<(u8, u16)>)| {
    let (changes, cut) = input;
    let mut files = SOUND.with(Clone::clone);
    for (file, at, byte) in changes {
        let content = &mut files[usize::from(file) % FILES.len()];
        let len = content.len();
        if len > 0 {
            // Counted from the end, where the table of contents is.
            content[len - 1 - usize::from(at) % len] = byte;
        }
    }
    if let Some((file, len)) = cut {
        files[usize::from(file) % FILES.len()].truncate(usize::from(len));
    }
    let blocks = MemoryBlocks::default();
    let mut writer: Box<dyn BlockWriter> = blocks.create(0).expect("memory");
    let id = writer.id().to_owned();
    for (name, content) in FILES.iter().zip(&files) {
        writer.write_at(name, 0, content).expect("memory");
    }
    writer.commit().expect("memory");
    let Ok(block) = BlockReader::open(&blocks, &id) else { return };
    for op in [MatchOp::NotEqual, MatchOp::Regex] {
        let spec = MatcherSpec { name: "__name__".into(), op, value: "a1.*".into() };
        let matcher = Matcher::new(&spec).expect("a valid matcher");
        for series in block.select(&[matcher]).unwrap_or_default() {
            let Ok((_, metas)) = block.series(series) else { continue };
            for meta in metas {
                let Ok(chunk) = block.chunk(&meta) else { continue };
                let Ok(values) = values(&chunk) else { continue };
                values.for_each(drop);
            }
        }
    }
});
