//! The receivers that run: a pump or a heartbeat each, in a task of its own.

use super::health::Beats;
use super::{NotifierError, ReceiverTestError, lock};
use crate::config::{ReceiverConfig, ReceiverKind};
use crate::dispatch::{Links, Positions, Pump, PumpFigures, PumpParts, PumpStatus, Terms};
use crate::journal::Journal;
use crate::receivers::DeliveryError;
use crate::receivers::heartbeat::{Heartbeat, HeartbeatFigures};
use crate::receivers::{self, Answered, Receiver};
use crate::silences::{Now, Silences};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidepool_lifecycle::boxed::BoxFuture;
use tidepool_lifecycle::clock::system_now_ms;
use tidepool_lifecycle::shutdown::{Shutdown, ShutdownTrigger};
use tidepool_rules::labels::LabelSet;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// What a delivery may take beyond the timeout of its receiver, which has the better message.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

pub struct Receivers {
    runtime: Handle,
    positions: Positions,
    journal: Journal,
    silences: Silences,
    running: Mutex<BTreeMap<String, Running>>,
    /// Held while positions of receivers that are gone are removed, or receivers begin.
    changing: Mutex<()>,
}

struct Running {
    config: ReceiverConfig,
    /// What notifications say of the node; a change is a change of the receiver.
    node: Node,
    kind: Kind,
    stop: ShutdownTrigger,
    task: JoinHandle<()>,
}

/// What notifications say of the node, beside rules.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    pub external_url: String,
    pub external_labels: LabelSet,
}

#[derive(Clone)]
enum Kind {
    Pump(Pump, PumpFigures),
    Heartbeat(Arc<HeartbeatFigures>),
}

/// A receiver of a new configuration whose files were read.
pub struct Opened {
    config: ReceiverConfig,
    part: Part,
}

enum Part {
    /// As it runs already.
    Same,
    Pump(Arc<dyn Receiver>),
    Heartbeat(Box<Heartbeat>),
}

/// A receiver and its state.
pub enum State {
    Pump(PumpStatus),
    Heartbeat(Arc<HeartbeatFigures>),
}

impl Receivers {
    pub fn new(
        runtime: Handle,
        positions: Positions,
        journal: Journal,
        silences: Silences,
    ) -> Receivers {
        Receivers {
            runtime,
            positions,
            journal,
            silences,
            running: Mutex::default(),
            changing: Mutex::default(),
        }
    }

    /// Blocking: reads the files that receivers name. Those that did not change are not opened.
    pub fn open(
        &self,
        configs: &[ReceiverConfig],
        node: &Node,
        beats: &Arc<Beats>,
    ) -> Result<Vec<Opened>, NotifierError> {
        let running = lock(&self.running);
        let mut opened = Vec::new();
        for config in configs {
            let name = config.name.clone();
            let is_same = |running: &Running| running.config == *config && running.node == *node;
            let part = if running.get(&name).is_some_and(is_same) {
                Part::Same
            } else {
                let part = match &config.kind {
                    ReceiverKind::Heartbeat(heartbeat) => {
                        let beats = Arc::clone(beats);
                        let health = Arc::new(move || beats.health());
                        Heartbeat::open(&name, heartbeat, health)
                            .map(|heartbeat| Part::Heartbeat(Box::new(heartbeat)))
                    }
                    _ => receivers::open(config)
                        .map(|receiver| receiver.map_or(Part::Same, Part::Pump)),
                };
                part.map_err(|source| NotifierError::Receiver { name, source })?
            };
            opened.push(Opened { config: config.clone(), part });
        }
        Ok(opened)
    }

    /// Stops receivers that are gone or changed, and starts the others. One that takes the place
    /// of another begins when that has stored its position.
    pub fn replace(&self, opened: Vec<Opened>, node: &Node, links: &Links) {
        let _turn = lock(&self.changing);
        let mut running = lock(&self.running);
        let mut old = std::mem::take(&mut *running);
        for Opened { config, part } in opened {
            let before = old.remove(&config.name);
            if let Part::Same = part {
                running.extend(before.map(|before| (config.name.clone(), before)));
                continue;
            }
            let figures = before.as_ref().map(|before| before.kind.clone());
            let ended = before.map(Running::stop);
            let (stop, shutdown) = Shutdown::manual();
            let (kind, work) = self.work(&config, part, figures, links, shutdown);
            let task = self.runtime.spawn(async move {
                if let Some(ended) = ended {
                    // A panic there was logged, and costs at most its position.
                    let _ = ended.await;
                }
                work.await;
            });
            let node = node.clone();
            running.insert(config.name.clone(), Running { config, node, kind, stop, task });
        }
        old.into_values().for_each(|gone| drop(gone.stop()));
    }

    fn work(
        &self,
        config: &ReceiverConfig,
        part: Part,
        before: Option<Kind>,
        links: &Links,
        shutdown: Shutdown,
    ) -> (Kind, BoxFuture<'static, ()>) {
        let receiver = match part {
            Part::Heartbeat(heartbeat) => {
                return (Kind::Heartbeat(heartbeat.figures()), heartbeat.run(shutdown));
            }
            Part::Pump(receiver) => receiver,
            // The caller goes on with what runs.
            Part::Same => return (Kind::Heartbeat(Arc::default()), Box::pin(async {})),
        };
        let figures = match before {
            Some(Kind::Pump(_, figures)) => figures,
            _ => PumpFigures::default(),
        };
        let silences = self.silences.clone();
        let pump = Pump::new(PumpParts {
            terms: terms(config, links),
            receiver,
            journal: self.journal.clone(),
            positions: self.positions.clone(),
            is_silenced: Arc::new(move |labels| silences.silencing(labels).is_some()),
            now_ms: Arc::new(system_now_ms),
            figures: figures.clone(),
        });
        (Kind::Pump(pump.clone(), figures), Box::pin(pump.run(shutdown)))
    }

    /// Removes positions of receivers that left the configuration a while ago. Blocking.
    pub fn tidy(&self, now: Now) {
        let _turn = lock(&self.changing);
        // Not held meanwhile, because metrics wait for it.
        let names: Vec<String> = lock(&self.running).keys().cloned().collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let now_ms = (!now.is_doubted).then_some(now.wall_ms);
        if let Err(error) = self.positions.tidy(&names, now_ms) {
            tracing::warn!(%error, "could not tidy the positions of receivers");
        }
    }

    pub async fn test(&self, name: &str) -> Result<Answered, ReceiverTestError> {
        let found = lock(&self.running)
            .get(name)
            .map(|running| (running.kind.clone(), running.config.kind.clone()));
        match found {
            None => Err(ReceiverTestError::Unknown(name.to_owned())),
            Some((Kind::Pump(pump, _), _)) => Ok(pump.test().await?),
            Some((_, ReceiverKind::Heartbeat(config))) => {
                let health = Arc::new(|| Ok(()));
                let opened = Heartbeat::open(name, &config, health);
                let heartbeat = opened.map_err(|error| DeliveryError::failed(error.to_string()))?;
                Ok(heartbeat.send().await?)
            }
            Some((Kind::Heartbeat(_), _)) => Err(ReceiverTestError::Unknown(name.to_owned())),
        }
    }

    /// State of each receiver, by name, with the name of its kind.
    pub fn states(&self) -> Vec<(String, &'static str, State)> {
        let running = lock(&self.running);
        let state = |(name, running): (&String, &Running)| {
            let state = match &running.kind {
                Kind::Pump(_, figures) => State::Pump(figures.status()),
                Kind::Heartbeat(figures) => State::Heartbeat(Arc::clone(figures)),
            };
            let kind = match &running.config.kind {
                ReceiverKind::Webhook(_) => "webhook",
                ReceiverKind::Command(_) => "command",
                ReceiverKind::Heartbeat(_) => "heartbeat",
            };
            (name.clone(), kind, state)
        };
        running.iter().map(state).collect()
    }

    /// Ends all receivers, and waits for them.
    pub async fn stop(&self) {
        let running = std::mem::take(&mut *lock(&self.running));
        let ended: Vec<JoinHandle<()>> = running.into_values().map(Running::stop).collect();
        for task in ended {
            if let Err(error) = task.await {
                tracing::error!(%error, "a receiver panicked");
            }
        }
    }
}

impl Running {
    fn stop(self) -> JoinHandle<()> {
        self.stop.stop();
        self.task
    }
}

fn terms(config: &ReceiverConfig, links: &Links) -> Terms {
    let timeout = match &config.kind {
        ReceiverKind::Webhook(webhook) => webhook.timeout,
        ReceiverKind::Command(command) => command.timeout,
        ReceiverKind::Heartbeat(heartbeat) => heartbeat.timeout,
    };
    Terms::of(config, timeout.saturating_add(DEADLINE_GRACE), links.clone())
}
