//! Configuration of the alert plugin.

use crate::Labels;
use saphyr::{LoadableYamlNode as _, Yaml};

/// Expression, duration for which its result must last, and webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub alert: String,
    pub expr: String,
    pub for_ms: i64,
    /// URL of the webhook; if empty, none is called.
    pub webhook: String,
    /// Labels added to all alerts.
    pub labels: Labels,
}

impl Config {
    /// Returns the labels of an alert: those of its series and of the configuration, and the
    /// alert's name.
    pub fn labels_of(&self, series: &Labels) -> Labels {
        let own = |(name, _): &&(String, String)| {
            name != "alertname" && !self.labels.iter().any(|(other, _)| other == name)
        };
        let mut labels: Labels = series.iter().filter(own).cloned().collect();
        labels.extend(self.labels.iter().filter(|(name, _)| name != "alertname").cloned());
        labels.push(("alertname".to_owned(), self.alert.clone()));
        labels.sort();
        labels
    }
}

pub fn read(text: &str) -> Result<Config, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| format!("invalid YAML: {error}"))?;
    let map = documents.first().and_then(Yaml::as_mapping);
    let map = map.ok_or("expected lines of the form `key: value`")?;
    let mut config = Config::default();
    for (key, value) in map {
        let key = key.as_str().unwrap_or_default();
        match key {
            "alert" => config.alert = text_of(key, value)?,
            "expr" => config.expr = text_of(key, value)?,
            "webhook" => config.webhook = text_of(key, value)?,
            "for" => config.for_ms = duration_ms(&text_of(key, value)?)?,
            "labels" => {
                let map = value.as_mapping().ok_or("labels: expected names and values")?;
                for (name, value) in map {
                    let name = name.as_str().ok_or("labels: expected a string as name")?;
                    config.labels.push((name.to_owned(), text_of(name, value)?));
                }
            }
            _ => return Err(format!("unknown key {key:?}")),
        }
    }
    if config.alert.is_empty() || config.expr.is_empty() {
        return Err("alert and expr are required".to_owned());
    }
    Ok(config)
}

fn text_of(key: &str, value: &Yaml<'_>) -> Result<String, String> {
    let number = value.as_integer().map(|number| number.to_string());
    let text = value.as_str().map(str::to_owned).or(number);
    text.ok_or_else(|| format!("{key}: expected a string"))
}

fn duration_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a duration such as 30s, 5m or 1h");
    let unit = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    number.parse::<i64>().ok().and_then(|number| number.checked_mul(unit_ms)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_mistakes_named() {
        let text = "alert: A\nexpr: m < -1.5\nfor: 5m\nwebhook: http://127.0.0.1:1/\n\
                    labels: {severity: page, tier: 1}\n";
        let config = read(text).expect("a configuration");
        assert_eq!((config.expr.as_str(), config.for_ms), ("m < -1.5", 300_000));
        let series = [("room", "a"), ("severity", "none")];
        let series = series.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let labels = config.labels_of(&series.to_vec());
        let expected = [("alertname", "A"), ("room", "a"), ("severity", "page"), ("tier", "1")];
        assert_eq!(labels, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for (text, why) in [
            ("", "`key: value`"),
            ("alert: A\n", "alert and expr"),
            ("alert: A\nexpr: [m]\n", "a string"),
            ("alert: A\nexpr: m\nfor: long\n", "is not a duration"),
            ("alarm: A\n", "unknown key \"alarm\""),
        ] {
            let found = read(text);
            assert!(found.as_ref().is_err_and(|error| error.contains(why)), "{text}: {found:?}");
        }
    }
}
