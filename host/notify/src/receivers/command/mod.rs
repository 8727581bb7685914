//! Notifications to a program of this machine.
//!
//! The program is started without a shell, with the arguments of the configuration, and has the
//! JSON of a webhook on its standard input. Exit status 0 accepts the notification. It runs in a
//! process group of its own, which is killed at the timeout, and once the program has ended:
//! nothing that it starts stays. Only one runs at a time.
//!
//! Its environment has `PATH` and these variables, each of at most 4 KiB:
//!
//! | variable | value |
//! | --- | --- |
//! | `TIDEPOOL_RECEIVER` | name of the receiver |
//! | `TIDEPOOL_STATUS` | `firing`, or `resolved` if no alert fires |
//! | `TIDEPOOL_REASON` | such as `first notification` |
//! | `TIDEPOOL_GROUP_KEY` | the key of the group |
//! | `TIDEPOOL_EXTERNAL_URL` | URL under which users reach the server |
//! | `TIDEPOOL_ALERTS` | number of alerts in the input |
//! | `TIDEPOOL_FIRING`, `TIDEPOOL_RESOLVED` | how many of them fire, and do not |
//! | `TIDEPOOL_ALERTNAME`, `TIDEPOOL_SEVERITY` | the label, if all alerts have the same |
//! | `TIDEPOOL_SUMMARY` | the annotation, if all alerts have the same |

mod process;

use super::{ANSWER_BYTES_MAX, Answered, DeliveryError, Receiver, begin, fitted, json, one_line};
use crate::config::CommandConfig;
use crate::event::Change;
use crate::notification::{Excerpt, Notification};
use process::{Ended, Process};
use std::process::Command;
use std::sync::Arc;
use tidepool_lifecycle::boxed::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

/// Maximum size of a variable's value. What is longer is cut.
const VARIABLE_BYTES_MAX: usize = 4 * 1024;

pub struct CommandReceiver {
    config: CommandConfig,
    /// Held while a process runs, also one that could not be killed yet.
    turn: Arc<Mutex<()>>,
}

impl CommandReceiver {
    pub fn new(config: CommandConfig) -> CommandReceiver {
        CommandReceiver { config, turn: Arc::default() }
    }

    fn command(&self, variables: Vec<(&'static str, String)>) -> Command {
        let mut command = Command::new(&self.config.path);
        command.args(&self.config.arguments).env_clear().envs(variables);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    async fn run(&self, notification: &Notification) -> Result<Answered, DeliveryError> {
        let CommandConfig { path, timeout, .. } = &self.config;
        let deadline = Instant::now() + *timeout;
        let ((input, variables), alerts) =
            fitted(notification, 0, |excerpt| Ok((json(excerpt)?, variables(excerpt))))?;
        let Ok(turn) = timeout_at(deadline, self.turn.clone().lock_owned()).await else {
            return Err(DeliveryError::failed("the process of an earlier notification still runs"));
        };
        let shown = path.display();
        let started = Process::start(self.command(variables), turn);
        let process = timeout_at(deadline, started).await;
        let process = process.map_err(|_| DeliveryError::Timeout(*timeout))?;
        let process = process
            .map_err(|error| DeliveryError::failed(format!("cannot run {shown}: {error}")))?;
        let Ended { status, output } = process.finish(input, deadline).await;
        let output = one_line(&output);
        let with_output = |what: String| {
            let colon = if output.is_empty() { "" } else { ": " };
            begin(&format!("{what}{colon}{output}"), ANSWER_BYTES_MAX).to_owned()
        };
        match status {
            Some(Ok(status)) if status.success() => {
                Ok(Answered { summary: with_output(status.to_string()), alerts })
            }
            Some(Ok(status)) => {
                Err(DeliveryError::failed(with_output(format!("{shown}: {status}"))))
            }
            Some(Err(error)) => Err(DeliveryError::failed(format!("{shown}: {error}"))),
            None => {
                let seconds = timeout.as_secs_f64();
                let what = format!("{shown} was killed, since it ran longer than {seconds} s");
                Err(DeliveryError::failed(with_output(what)))
            }
        }
    }
}

impl Receiver for CommandReceiver {
    fn deliver<'a>(
        &'a self,
        notification: &'a Notification,
    ) -> BoxFuture<'a, Result<Answered, DeliveryError>> {
        Box::pin(self.run(notification))
    }
}

fn variables(excerpt: &Excerpt<'_>) -> Vec<(&'static str, String)> {
    let Notification { receiver, group_key, external_url, .. } = excerpt.notification();
    let alerts = excerpt.alerts();
    let firing = alerts.iter().filter(|alert| alert.change == Change::Firing).count();
    let label = |name: &str| excerpt.common_labels().get(name).map_or("", String::as_str);
    let summary = excerpt.common_annotations().get("summary").map_or("", String::as_str);
    let (count, resolved) = (alerts.len().to_string(), (alerts.len() - firing).to_string());
    [
        ("TIDEPOOL_RECEIVER", receiver.as_str()),
        ("TIDEPOOL_STATUS", excerpt.status()),
        ("TIDEPOOL_REASON", excerpt.reason()),
        ("TIDEPOOL_GROUP_KEY", group_key),
        ("TIDEPOOL_EXTERNAL_URL", external_url),
        ("TIDEPOOL_ALERTS", &count),
        ("TIDEPOOL_FIRING", &firing.to_string()),
        ("TIDEPOOL_RESOLVED", &resolved),
        ("TIDEPOOL_ALERTNAME", label("alertname")),
        ("TIDEPOOL_SEVERITY", label("severity")),
        ("TIDEPOOL_SUMMARY", summary),
    ]
    .into_iter()
    // A NUL would end the value.
    .map(|(name, value)| (name, begin(value, VARIABLE_BYTES_MAX).replace('\0', "\u{fffd}")))
    .collect()
}

#[cfg(test)]
mod tests;
