//! Actions of a world on its node: writes of all kinds, deletions, reads, snapshots.

use super::model::{Asked, Exemplar, View};
use super::values::{GROUPS, Live, Row};
use super::world::{Outcome, Snapshot, World};
use std::collections::{BTreeMap, BTreeSet};
use tidepool_tests::admin::Admin;
use tidepool_tests::histogram::generate::SentValue;
use tidepool_tests::histogram::wire::{SentExemplar, SentRow, encode_with};
use tidepool_tests::http::Response;
use tidepool_tests::proto::prometheus::label_matcher::Type;
use tidepool_tests::remote_read::{Reader, everything, matcher, query};
use tidepool_tests::remote_write::{Version, Writer};
use tidepool_tests::series::Labels;

/// Largest age of out-of-order samples behind the newest, however large the window is.
const LATE_MS_MAX: i64 = 40_000;
/// Largest age of in-order samples behind the newest of all series.
const BEHIND_MS: i64 = 1_000;

/// Samples of a request, each once.
type Rows = BTreeMap<(Labels, i64), SentValue>;

impl World {
    pub fn step(&mut self) -> Outcome {
        self.move_clock()?;
        let (name, step): (&str, fn(&mut World) -> Outcome) = match self.random.below(100) {
            0..41 => ("scrape", |world| world.scrape(1)),
            41..44 => ("a second program", World::second_program),
            44..51 => ("many scrapes", |world| world.scrape(30)),
            51..63 => ("late samples", World::late),
            63..65 => ("another value", World::replace),
            65..75 => ("mixed samples", World::mixed),
            75..79 => ("deleted samples again", World::again),
            79..84 => ("deletion", World::delete),
            84..86 => ("clean_tombstones", World::clean),
            86..88 => ("snapshot", World::take_snapshot),
            88..98 => ("read", World::read),
            _ => ("other series", World::other_series),
        };
        self.steps.push(name.to_owned());
        step(self)
    }

    /// Sends all series, at this number of times.
    fn scrape(&mut self, times: usize) -> Outcome {
        self.send_scrape(times)?;
        Ok(())
    }

    /// Sends the next scrape; returns whether it was accepted.
    pub fn scrape_is_taken(&mut self) -> Outcome<bool> {
        Ok(self.send_scrape(1)? == Some(204))
    }

    fn send_scrape(&mut self, times: usize) -> Outcome<Option<u16>> {
        let mut rows = Rows::new();
        for _ in 0..times {
            self.now_ms += self.random.pick(&[200, 1000, 1000, 3000]);
            self.now_ms = self.now_ms.max(self.newest_ms - BEHIND_MS);
            for live in self.live.clone() {
                let timestamp_ms = self.now_ms + self.random.below(50) as i64;
                self.add(&mut rows, &live, timestamp_ms);
            }
        }
        let with_exemplars = self.random.one_in(3);
        self.send(rows, with_exemplars)
    }

    /// Returns the largest accepted age of an out-of-order sample behind the newest; zero for none.
    fn late_ms_max(&self) -> i64 {
        self.flags.out_of_order_ms.min(LATE_MS_MAX) * 4 / 5
    }

    fn late(&mut self) -> Outcome {
        let late_ms_max = self.late_ms_max();
        let mut rows = Rows::new();
        for _ in 0..self.random.pick(&[1, 5, 40]) {
            if late_ms_max > 0 {
                let live = self.any_live();
                let timestamp_ms = self.newest_ms - self.random.below(late_ms_max as u64) as i64;
                self.add(&mut rows, &live, timestamp_ms);
            }
        }
        self.send(rows, false)?;
        Ok(())
    }

    /// Sends in-order and out-of-order samples in one request.
    fn mixed(&mut self) -> Outcome {
        let late_ms_max = self.late_ms_max();
        let mut rows = Rows::new();
        self.now_ms = (self.now_ms + 500).max(self.newest_ms - BEHIND_MS);
        for live in self.live.clone() {
            if !self.random.one_in(3) {
                let timestamp_ms = self.now_ms + self.random.below(40) as i64;
                self.add(&mut rows, &live, timestamp_ms);
            }
            if late_ms_max > 0 && self.random.one_in(3) {
                let timestamp_ms = self.newest_ms - self.random.below(late_ms_max as u64) as i64;
                self.add(&mut rows, &live, timestamp_ms);
            }
        }
        self.send(rows, false)?;
        Ok(())
    }

    /// Sends deleted samples again, with other values.
    fn again(&mut self) -> Outcome {
        let oldest_ms = self.newest_ms - self.late_ms_max();
        let mut rows = Rows::new();
        for live in self.live.clone() {
            for timestamp_ms in self.model.deleted_times(&live.labels) {
                if timestamp_ms > oldest_ms && self.random.one_in(2) {
                    let value = self.source.value(&live, &mut self.random);
                    rows.insert((live.labels.clone(), timestamp_ms), value);
                }
            }
        }
        self.send(rows, false)?;
        Ok(())
    }

    /// Sends another value for a time that has one. It replaces the earlier value, or is refused as
    /// long as the head has that value.
    fn replace(&mut self) -> Outcome {
        if !self.keeps_replaced() {
            return Ok(());
        }
        let live = self.any_live();
        let oldest_ms = self.newest_ms - self.late_ms_max();
        let times = self.model.times(&live.labels, oldest_ms, self.newest_ms);
        if times.is_empty() {
            return Ok(());
        }
        // Older samples are more likely to be in a block.
        let number = self.random.below(times.len() as u64).min(self.random.below(4));
        let value = self.source.value(&live, &mut self.random);
        let rows = Rows::from([((live.labels, times[number as usize]), value)]);
        self.send_and_expect(rows, false, &[204, 400])?;
        Ok(())
    }

    /// Adds a sample for a time that has none.
    fn add(&mut self, rows: &mut Rows, live: &Live, timestamp_ms: i64) {
        if self.model.has(&live.labels, timestamp_ms) {
            return;
        }
        let value = self.source.value(live, &mut self.random);
        rows.entry((live.labels.clone(), timestamp_ms)).or_insert(value);
    }

    /// Sends a request; `None` if the node was killed meanwhile, or there was nothing to send.
    fn send(&mut self, rows: Rows, with_exemplars: bool) -> Outcome<Option<u16>> {
        self.send_and_expect(rows, with_exemplars, &[204])
    }

    fn send_and_expect(
        &mut self,
        rows: Rows,
        with_exemplars: bool,
        statuses: &[u16],
    ) -> Outcome<Option<u16>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let row = |((labels, timestamp_ms), value)| Row { labels, timestamp_ms, value };
        let rows: Vec<Row> = rows.into_iter().map(row).collect();
        let newest_ms = rows.iter().map(|row| row.timestamp_ms).max();
        self.newest_ms = self.newest_ms.max(newest_ms.unwrap_or(i64::MIN));
        let exemplars = if with_exemplars { self.exemplars_of(&rows) } else { Vec::new() };
        let sent: Vec<SentRow<'_>> = rows.iter().map(Row::sent).collect();
        let version = self.random.pick(&Version::ALL);
        let body = encode_with(version, &sent, &exemplars);
        let writer = Writer::new(&self.url());
        let request = self.model.begin(rows.iter().map(Row::expected));
        // A sender that is asked to retry does so, or gives up.
        let attempts = self.random.pick(&[1, 3]);
        let mut status = None;
        for _ in 0..attempts {
            let answer = writer.send_body(version, &body);
            status = self.status_of("a write", answer, statuses)?;
            if status != Some(503) {
                break;
            }
        }
        let known = |sent: &SentExemplar| Exemplar {
            series: rows[sent.row].labels.clone(),
            labels: sent.labels.clone(),
            timestamp_ms: sent.timestamp_ms,
            value: sent.value.to_bits(),
        };
        let exemplars: Vec<Exemplar> = exemplars.iter().map(known).collect();
        self.model.end(request, status == Some(204), &exemplars);
        if let Some(status) = status.filter(|status| *status != 204) {
            self.steps.push(format!("({status})"));
        }
        Ok(status)
    }

    /// Makes an exemplar for the newest sample of some series.
    fn exemplars_of(&mut self, rows: &[Row]) -> Vec<SentExemplar> {
        let mut exemplars = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let is_last = rows.get(number + 1).is_none_or(|next| next.labels != row.labels);
            if is_last && self.random.one_in(3) {
                self.exemplars += 1;
                let trace =
                    format!("{}-{}", self.exemplars, "z".repeat(self.random.pick(&[0, 60])));
                exemplars.push(SentExemplar {
                    row: number,
                    labels: Labels::from_pairs([("trace_id", trace)]),
                    timestamp_ms: row.timestamp_ms,
                    value: self.exemplars as f64 + 0.5,
                });
            }
        }
        exemplars
    }

    /// Returns the status of an answer, which must be one of these unless a call failed; `None` if
    /// the node was killed meanwhile.
    fn status_of<E: std::error::Error>(
        &mut self,
        what: &str,
        answer: Result<Response, E>,
        statuses: &[u16],
    ) -> Outcome<Option<u16>> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.no_answer(&error).map(|()| None),
        };
        let status = answer.status;
        // A refused request may have been applied in part, and a similar one is then too old.
        let is_right =
            statuses.contains(&status) || self.had_errors && matches!(status, 400 | 500 | 503);
        match is_right {
            true => Ok(Some(status)),
            false => Err(format!("{what} is answered {status}: {}", answer.text()).into()),
        }
    }

    fn delete(&mut self) -> Outcome {
        let group = self.random.below(GROUPS).to_string();
        let one = self.any_live().labels;
        let (series, selector) = match self.random.below(10) {
            0..5 => {
                let selector = format!("{{series=\"{}\"}}", one.value("series"));
                (Some(BTreeSet::from([one])), selector)
            }
            5..8 => {
                let is_in = |labels: &&Labels| labels.value("group") == group;
                let series = self.model.series().filter(is_in).cloned().collect();
                (Some(series), format!("{{group=\"{group}\"}}"))
            }
            _ => (None, "{__name__=~\".+\"}".to_owned()),
        };
        let behind_ms = self.random.pick(&[2_000, 20_000, 60_000]);
        let end_ms = self.newest_ms + BEHIND_MS - self.random.below(behind_ms) as i64;
        let start_ms = match self.random.one_in(10) {
            true => 0,
            false => end_ms - self.random.pick(&[1_000, 10_000, 40_000]),
        };
        let deletion = self.model.begin_deletion(series, start_ms, end_ms);
        let seconds = |ms: i64| format!("{}.{:03}", ms / 1000, ms % 1000);
        let (start, end) = (seconds(start_ms), seconds(end_ms));
        let form = [("match[]", selector.as_str()), ("start", &start), ("end", &end)];
        let answer = Admin::new(&self.url()).post("delete_series", &form);
        if self.status_of("a deletion", answer, &[204])? == Some(204) {
            self.model.end_deletion(deletion);
        }
        Ok(())
    }

    fn clean(&mut self) -> Outcome {
        let answer = Admin::new(&self.url()).post("clean_tombstones", &[]);
        self.status_of("clean_tombstones", answer, &[204])?;
        Ok(())
    }

    fn take_snapshot(&mut self) -> Outcome {
        let begun = self.model.tick();
        let answer = Admin::new(&self.url()).post("snapshot", &[]);
        let name = answer.as_ref().ok().and_then(|answer| {
            let answer: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
            Some(answer["data"]["name"].as_str()?.to_owned())
        });
        if self.status_of("a snapshot", answer, &[200])? == Some(200) {
            let name = name.ok_or("a snapshot without a name")?;
            let ended = self.model.tick();
            self.snapshot = Some(Snapshot { name, begun, ended });
        }
        Ok(())
    }

    /// Reads one series or all, between two times.
    fn read(&mut self) -> Outcome {
        let one = self.random.one_in(2).then(|| self.any_live().labels);
        let start_ms = self.newest_ms - self.random.pick(&[5_000, 30_000, 200_000, 10_000_000]);
        let end_ms = start_ms + self.random.pick(&[5_000, 30_000, 200_000, 10_000_000]);
        self.read_and_judge(Asked { series: one.as_ref(), start_ms, end_ms })
    }

    /// Reads, and compares the answer with the model.
    pub fn read_and_judge(&mut self, asked: Asked<'_>) -> Outcome {
        use tidepool_tests::remote_read::ReadError;
        let asks = match asked.series {
            None => everything(asked.start_ms, asked.end_ms),
            Some(labels) => {
                let matcher = matcher(Type::Eq, "series", labels.value("series"));
                query(asked.start_ms, asked.end_ms, vec![matcher])
            }
        };
        let reader = Reader::new(&self.url());
        let begun = self.model.tick();
        let answer = match self.random.one_in(2) {
            true => reader.sampled_values(&asks),
            false => reader.streamed_values(&asks),
        };
        let ended = self.model.tick();
        let view = View { acknowledged_before: begun, deleted_before: begun, sent_before: ended };
        match answer {
            Ok(found) => Ok(self.model.judge(&found, asked, view)?),
            Err(error @ (ReadError::Http(_) | ReadError::Connection(_))) => self.no_answer(&error),
            Err(ReadError::Status { .. }) if self.has_errors => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a series by a new one.
    fn other_series(&mut self) -> Outcome {
        if self.live.len() > 2 && self.random.one_in(2) {
            let number = self.random.below(self.live.len() as u64) as usize;
            self.live.swap_remove(number);
        }
        self.live.push(self.source.series(&mut self.random));
        Ok(())
    }

    fn any_live(&mut self) -> Live {
        self.live[self.random.below(self.live.len() as u64) as usize].clone()
    }
}
