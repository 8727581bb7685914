use super::*;
use proptest::prelude::*;
use tidepool_disk::{BlockDirs, BlockFile, DataDir};
use tidepool_engine::chunk::{Chunk, Encoding};
use tidepool_engine::model::{Labels, TimeRange};
use tidepool_engine::wire::{PlannedChunk, put_planned_series, put_streamed_frames};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

const LABELS: [(&str, &str); 2] = [("__name__", "up"), ("job", "node")];

/// A block in a directory of its own, with files of chunks of lengths at which no read-ahead ends.
struct Files {
    _dir: tempfile::TempDir,
    blocks: BlockDirs,
    block: String,
}

impl Files {
    /// Returns the offsets of the chunks in each file.
    fn write(files: &[Vec<Chunk>]) -> TestResult<(Files, Vec<Vec<u32>>)> {
        let dir = tempfile::tempdir()?;
        let blocks = BlockDirs::open(&DataDir::open(dir.path())?);
        let mut writer = blocks.create(1)?;
        let block = writer.id().to_owned();
        writer.write_at("meta.json", 0, b"{}")?;
        let mut places = Vec::new();
        for (number, chunks) in files.iter().enumerate() {
            let mut bytes = b"\x85\xbd\x40\xdd\x01\0\0\0".to_vec();
            let mut offsets = Vec::new();
            for chunk in chunks {
                offsets.push(bytes.len() as u32);
                put_uvarint(&mut bytes, chunk.data.len() as u64);
                let start = bytes.len();
                bytes.push(chunk.encoding as u8);
                bytes.extend_from_slice(&chunk.data);
                bytes.extend(crc32c::crc32c(&bytes[start..]).to_be_bytes());
            }
            writer.write_at(&format!("chunks/{:06}", number + 1), 0, &bytes)?;
            places.push(offsets);
        }
        writer.commit()?;
        Ok((Files { _dir: dir, blocks, block }, places))
    }

    fn names(&self, count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("{}/chunks/{number:06}", self.block)).collect()
    }

    fn open(&self, name: &str) -> Option<BlockFile> {
        let (block, name) = name.split_once('/')?;
        self.blocks.open_file(block, name).ok()
    }
}

fn chunk(min_time_ms: i64, data: Vec<u8>) -> Chunk {
    let (encoding, max_time_ms, data) = (Encoding::Xor, min_time_ms + 5, data.into());
    Chunk { encoding, min_time_ms, max_time_ms, data }
}

fn stored(chunk: &Chunk, file: u32, offset: u32) -> PlannedChunk {
    let span = TimeRange { start_ms: chunk.min_time_ms, end_ms: chunk.max_time_ms };
    PlannedChunk::Stored { span, file, offset }
}

fn frames(query_index: u32, bytes_max: usize) -> FrameOptions {
    FrameOptions { query_index, bytes_max, crc32c: Some(crc32c::crc32c as Crc32c) }
}

/// Follows a plan of many series.
fn follow(
    files: &Files,
    plan: &[u8],
    frames: FrameOptions,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let (mut open, mut out, mut rest) = (ChunkFiles::default(), Vec::new(), plan);
    while !rest.is_empty() {
        let (series, after) = split_series(rest).ok_or("no series")?;
        let put = put_frames(series, frames, &mut open, |name| files.open(name), &mut out);
        put.map_err(|_| "not put")?;
        rest = after;
    }
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Series whose chunks lie in several files, some of them given, chunks of all sizes, in any
    /// order: the frames are those of the engine.
    #[test]
    fn frames_are_those_of_the_engine(
        lengths in prop::collection::vec(
            prop_oneof![8 => 0usize..600, 1 => 4_000usize..9_000, 1 => 60_000usize..140_000], 1..60,
        ),
        file_count in 1usize..4,
        per_series in 1usize..9,
        given_every in 2usize..12,
        is_backwards: bool,
        query_index in prop_oneof![Just(0u32), 1u32..400],
        frame_bytes_max in prop_oneof![Just(1usize), 100usize..2_000, Just(1usize << 20)],
        start_ms in prop_oneof![Just(0i64), Just(-5i64), Just(1_700_000_000_000)],
    ) {
        let chunks: Vec<Chunk> = (0i64..)
            .zip(&lengths)
            .map(|(i, len)| chunk(start_ms + 10 * i, vec![i as u8 ^ 0x5a; *len]))
            .collect();
        let mut in_files = vec![Vec::new(); file_count];
        for (i, chunk) in chunks.iter().enumerate() {
            in_files[i % file_count].push(chunk.clone());
        }
        let fail = |error: Box<dyn std::error::Error>| TestCaseError::fail(error.to_string());
        let (files, places) = Files::write(&in_files).map_err(fail)?;
        let planned = chunks.iter().enumerate().map(|(i, chunk)| match i % given_every {
            0 => PlannedChunk::Given(chunk.clone()),
            _ => stored(chunk, (i % file_count) as u32, places[i % file_count][i / file_count]),
        });
        let mut planned: Vec<(PlannedChunk, Chunk)> = planned.zip(chunks.clone()).collect();
        if is_backwards {
            planned.reverse();
        }
        let (mut plan, mut expected) = (Vec::new(), Vec::new());
        let options = frames(query_index, frame_bytes_max);
        let labels = Labels::from_sorted(LABELS);
        let mut names = files.names(file_count);
        for series in planned.chunks(per_series) {
            let (planned, chunks): (Vec<_>, Vec<_>) = series.iter().cloned().unzip();
            put_planned_series(&mut plan, &labels, &names, &planned);
            put_streamed_frames(&mut expected, options, &labels, &chunks);
            names.clear();
        }
        let found = follow(&files, &plan, options).map_err(fail)?;
        prop_assert!(found == expected, "{} bytes, {} expected", found.len(), expected.len());
    }

    #[test]
    fn hostile_plans_are_survived(plan: Vec<u8>, at in 0usize..80, wrong: u8) {
        let labels = Labels::from_sorted(LABELS);
        let chunk = chunk(1, vec![1, 2, 3]);
        let mut near = Vec::new();
        let planned = [stored(&chunk, 0, 8), PlannedChunk::Given(chunk)];
        put_planned_series(&mut near, &labels, &["a/b".to_owned()], &planned);
        let at = at % near.len();
        near[at] = wrong;
        for plan in [plan, near] {
            let Some((series, _)) = split_series(&plan) else { continue };
            let mut files = ChunkFiles::default();
            let _ = put_frames(series, frames(0, 1), &mut files, |_| None, &mut Vec::new());
            let _ = put_frames(&plan, frames(0, 1), &mut files, |_| None, &mut Vec::new());
        }
    }
}

/// Kinds of chunks that the host does not put into a frame.
#[test]
fn what_is_not_as_usual_is_left_to_the_engine() -> TestResult {
    let plain = |at: i64| chunk(at, vec![7; 100]);
    let of = |encoding| Chunk { encoding, ..plain(3) };
    let chunks = [plain(1), of(Encoding::Histogram), of(Encoding::Xor2), of(Encoding::HistogramSt)];
    let (files, places) = Files::write(&[chunks.to_vec()])?;
    let path = files.open(&files.names(1)[0]).ok_or("no file")?.path().to_path_buf();
    let labels = Labels::from_sorted(LABELS);
    let put = |names: &[String], file: u32, offset: u32| {
        let mut plan = Vec::new();
        let planned = [PlannedChunk::Given(plain(0)), stored(&plain(1), file, offset)];
        put_planned_series(&mut plan, &labels, names, &planned);
        let (series, _) = split_series(&plan).expect("a series");
        let (mut open, mut out) = (ChunkFiles::default(), Vec::new());
        put_frames(series, frames(0, 1), &mut open, |name| files.open(name), &mut out)
    };
    let is_left = |put| matches!(put, Err(Unput::LeftToEngine));
    let names = files.names(1);
    let at = &places[0];
    assert!(put(&names, 0, at[0]).is_ok() && put(&names, 0, at[1]).is_ok());
    assert!(is_left(put(&names, 0, at[2])), "with start timestamps");
    assert!(is_left(put(&names, 0, at[3])), "with start timestamps");
    assert!(is_left(put(&names, 1, at[0])), "a file that was not named");
    assert!(is_left(put(&files.names(2)[1..], 0, at[0])), "a file that is not there");
    assert!(is_left(put(&["no file".to_owned()], 0, at[0])));
    assert!(is_left(put(&names, 0, at[0] + 1)), "no chunk begins there");
    assert!(is_left(put(&names, 0, u32::MAX)), "past the end");
    let mut bytes = std::fs::read(&path)?;
    bytes[at[0] as usize + 50] ^= 4;
    std::fs::write(&path, &bytes)?;
    assert!(is_left(put(&names, 0, at[0])), "damaged");
    assert!(put(&names, 0, at[1]).is_ok());
    bytes.truncate(at[1] as usize + 20);
    std::fs::write(&path, &bytes)?;
    assert!(is_left(put(&names, 0, at[1])), "cut short");
    Ok(())
}
