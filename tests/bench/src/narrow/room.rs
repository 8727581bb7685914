//! Running servers with the same series: a day in blocks, if wanted, and the last hour and a half
//! in the head.

use super::super::contender::Contender;
use super::super::queries::data;
use super::super::queries::stores::{self, Stores};
use super::super::{BenchError, Context};
use super::asks::Data;
use tempfile::TempDir;
use tidepool_tests::process::Server;
use tidepool_tests::series::{Shape, Texture};

const HOUR_MS: i64 = 3_600_000;
/// Span of the head, and interval of its samples.
const HEAD_MS: i64 = HOUR_MS * 3 / 2;
const HEAD_INTERVAL_MS: i64 = 60_000;
/// Interval of samples in blocks; a day of a hundred thousand series is enough to write.
const BLOCK_INTERVAL_MS: i64 = 240_000;

/// Servers that are ready for requests.
pub struct Room {
    pub series: usize,
    /// Number of samples in each server.
    pub samples: u64,
    /// Properties of the data that requests name.
    pub data: Data,
    /// Servers in the order of the table; dropped before their directories.
    pub servers: Vec<(Contender, Server)>,
    _directories: Vec<TempDir>,
    _stores: Option<Stores>,
}

impl Room {
    /// Starts servers, and gives them some series over some hours in blocks.
    pub fn open(
        context: &Context,
        contenders: &[Contender],
        series: usize,
        hours: u32,
    ) -> Result<Room, BenchError> {
        let whole = data::shape(context.seed, series, 1);
        let end_ms = data::end_ms(&whole);
        let head = Shape {
            scrapes: (HEAD_MS / HEAD_INTERVAL_MS) as usize,
            start_ms: end_ms - HEAD_MS,
            interval_ms: HEAD_INTERVAL_MS,
            ..whole
        };
        let length_ms = i64::from(hours) * HOUR_MS;
        let blocks = Shape {
            scrapes: (length_ms / BLOCK_INTERVAL_MS) as usize,
            start_ms: head.start_ms - length_ms,
            interval_ms: BLOCK_INTERVAL_MS,
            texture: Texture::Regular,
            ..whole
        };
        let (mut servers, mut directories, mut samples) = (Vec::new(), Vec::new(), 0);
        let own = Context { servers: contenders.to_vec(), ..context.clone() };
        let stores = match hours {
            0 => None,
            _ => Some(Stores::load(&own, blocks)?),
        };
        for &contender in contenders {
            let server = match &stores {
                Some(stores) => stores.start(contender)?,
                None => {
                    let directory = tempfile::tempdir_in(&context.directory)?;
                    let flags = stores::flags_of(context, contender);
                    let server = contender.launch(directory.path(), &flags)?.start()?;
                    directories.push(directory);
                    Some(server)
                }
            };
            let Some(server) = server else { continue };
            samples = stores::send(head, &server, None)?;
            let time_range_ms = (head.start_ms, end_ms - 1);
            contender.check(&server, time_range_ms, samples)?;
            servers.push((contender, server));
        }
        samples += stores.as_ref().map_or(0, |stores| stores.samples);
        // Reads begin with the first sample and end within the samples.
        let hours = (length_ms / HOUR_MS).max(1);
        let data = Data { instances: data::instances(&whole) as u64, end_ms, hours };
        let series = whole.series;
        let _directories = directories;
        Ok(Room { series, samples, data, servers, _directories, _stores: stores })
    }

    pub fn close(self) -> Result<(), BenchError> {
        for (_, server) in self.servers {
            server.kill()?;
        }
        Ok(())
    }
}
