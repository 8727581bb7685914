//! Full checks of a world.

use super::model::{Asked, Exemplar, View};
use super::world::{End, Outcome, World, verify};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};
use tidepool_tests::data_dir;
use tidepool_tests::http::Client;
use tidepool_tests::prometheus::percent_encode;
use tidepool_tests::remote_read::{Reader, everything};
use tidepool_tests::series::Labels;
use tidepool_tests::tidepool::Config;
use tidepool_tests::wait;

/// Timeout for a node to remove unfinished files.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_PAUSE: Duration = Duration::from_millis(5);

impl World {
    /// Checks that the node has all required samples and exemplars, and no others.
    pub fn check(&mut self, when: &str) -> Outcome {
        let found = self.read_and_judge(Asked::EVERYTHING).and_then(|()| self.check_exemplars());
        found.map_err(|error| format!("{when}: {error}").into())
    }

    fn check_exemplars(&mut self) -> Outcome {
        let selector = percent_encode("{__name__=~\".+\"}");
        let path = "/api/v1/query_exemplars";
        let url = format!("{}{path}?query={selector}&start=0&end=9000000000", self.url());
        let answer = match Client::default().get(&url) {
            Ok(answer) => answer,
            Err(error) => return self.no_answer(&error),
        };
        if answer.status != 200 {
            return Err(format!("exemplars: {} {}", answer.status, answer.text()).into());
        }
        let answer: Value = serde_json::from_slice(&answer.body)?;
        let mut found = Vec::new();
        for series in answer["data"].as_array().into_iter().flatten() {
            for exemplar in series["exemplars"].as_array().into_iter().flatten() {
                let value: f64 = exemplar["value"].as_str().unwrap_or_default().parse()?;
                let seconds = exemplar["timestamp"].as_f64().ok_or("an exemplar without a time")?;
                found.push(Exemplar {
                    series: labels(&series["seriesLabels"]),
                    labels: labels(&exemplar["labels"]),
                    timestamp_ms: (seconds * 1000.0).round() as i64,
                    value: value.to_bits(),
                });
            }
        }
        Ok(self.model.judge_exemplars(&found)?)
    }

    /// Checks the last start, without faults: all required files and samples, and no others.
    pub fn check_at_the_end(&mut self) -> Outcome {
        self.faults.clear()?;
        self.has_errors = false;
        self.start()?;
        self.check("at the last start")?;
        wait_for_no_leftovers(&self.data_dir())?;
        self.end(End::Stop)?;
        verify(&self.data_dir())?;
        if self.model.taken == 0 {
            return Err("no request was acknowledged: this world tests nothing".into());
        }
        self.check_snapshot()
    }

    /// Checks that a node on the last snapshot has the samples of the time when it was made.
    fn check_snapshot(&self) -> Outcome {
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        let copy = tempfile::tempdir()?;
        let made = self.data_dir().join("snapshots").join(&snapshot.name);
        data_dir::copy(&made, &copy.path().join("data"))?;
        let server = Config::new(copy.path()).flag("--retention-time=0s").start()?;
        let everything = everything(i64::MIN, i64::MAX);
        let found = Reader::new(&server.url()).streamed_values(&everything)?;
        server.terminate()?;
        let view = View {
            acknowledged_before: snapshot.begun,
            deleted_before: snapshot.begun,
            sent_before: snapshot.ended,
        };
        let judged = self.model.judge(&found, Asked::EVERYTHING, view);
        judged.map_err(|what| format!("the snapshot {}: {what}", snapshot.name).into())
    }
}

/// Waits until the running node has removed unfinished files from its directory and its log.
pub fn wait_for_no_leftovers(data_dir: &Path) -> Outcome {
    let folders = [data_dir.to_path_buf(), data_dir.join("wal")];
    let mut left = Ok(Vec::new());
    let gone = wait::until_every(LOOK_PAUSE, "the end of leftovers", LEFTOVERS_TIMEOUT, || {
        left = folders.iter().map(|folder| leftovers(folder)).collect();
        left.as_ref().is_ok_and(|left| left.iter().all(Vec::is_empty)).then_some(())
    });
    gone.map_err(|error| format!("{error}: {left:?}").into())
}

fn leftovers(folder: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?.map(|it| Ok(it?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<io::Result<_>>()?;
    names.retain(|name| name.contains(".tmp"));
    Ok(names)
}

fn labels(object: &Value) -> Labels {
    let pairs = object.as_object().into_iter().flatten();
    Labels::from_pairs(pairs.map(|(name, value)| (name, value.as_str().unwrap_or_default())))
}
