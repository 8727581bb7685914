//! Reads a rule.

use super::error::{cut, quoted};
use super::reader::{Pairs, Reader, Stop, place};
use super::{Cause, Kind, Labels, Position, Rule};
use std::time::Duration;
use tidepool_settings::yaml::{Data, Entry, Node};

const KEYS: &[&str] =
    &["record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations"];

/// Maximum number of characters of an alert's name in the name of its templates.
const NAME_CHARS_MAX: usize = 100;

/// The values of a rule, before it is known what it is.
#[derive(Default)]
struct Parts<'n> {
    record: Name<'n>,
    alert: Name<'n>,
    expr: Name<'n>,
    for_: Duration,
    keep_firing_for: Duration,
    labels: Labels,
    annotations: Labels,
    /// Entries of what only alerting rules have, and is not empty.
    alerting: Vec<(&'static str, &'n Entry)>,
    /// Entries of labels and annotations.
    templates: Vec<&'n Entry>,
}

#[derive(Default)]
struct Name<'n> {
    /// `None` if the key is missing.
    place: Option<Position>,
    /// Empty if it is missing or wrong.
    text: &'n str,
    /// Whether it was reported already.
    is_wrong: bool,
}

/// Reads a rule; `None` if it is no mapping.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Result<Option<Rule>, Stop> {
    let position = node.place;
    reader.take_rule(position)?;
    let Some(entries) = reader.entries(node, position) else { return Ok(None) };
    let mut parts = Parts::default();
    for entry in entries {
        match KEYS.iter().find(|key| **key == entry.key) {
            Some(key) => reader.at_key(key, |reader| parts.read(reader, key, entry))?,
            None => reader.unknown(entry, KEYS),
        }
    }
    parts.check(reader, position);
    Ok(Some(parts.whole(position)))
}

impl<'n> Parts<'n> {
    fn read(
        &mut self,
        reader: &mut Reader<'_>,
        key: &'static str,
        entry: &'n Entry,
    ) -> Result<(), Stop> {
        let is_for_alerts = match key {
            "record" => return Name::read(reader, entry).map(|name| self.record = name),
            "alert" => return Name::read(reader, entry).map(|name| self.alert = name),
            "expr" => return Name::read(reader, entry).map(|name| self.expr = name),
            "for" => {
                self.for_ = reader.duration(entry)?.unwrap_or_default();
                !self.for_.is_zero()
            }
            "keep_firing_for" => {
                self.keep_firing_for = reader.duration(entry)?.unwrap_or_default();
                !self.keep_firing_for.is_zero()
            }
            "labels" => {
                self.labels = reader.pairs(entry, Pairs::Labels)?;
                self.templates.push(entry);
                false
            }
            _ => {
                self.annotations = reader.pairs(entry, Pairs::Annotations)?;
                self.templates.push(entry);
                !self.annotations.is_empty()
            }
        };
        if is_for_alerts {
            self.alerting.push((key, entry));
        }
        Ok(())
    }

    fn check(&self, reader: &mut Reader<'_>, position: Position) {
        let (record, alert) = (&self.record, &self.alert);
        if !record.text.is_empty() && !alert.text.is_empty() {
            let alert = alert.place.unwrap_or(position);
            let place = record.place.unwrap_or(position);
            reader.at_key("record", |reader| reader.report(place, Cause::TwoNames { alert }));
        } else if record.is_missing() && alert.is_missing() {
            reader.report(record.place.or(alert.place).unwrap_or(position), Cause::NoName);
        }
        self.check_expression(reader, position);
        if !record.text.is_empty() {
            self.check_recording(reader, record.place.unwrap_or(position));
        }
        if !alert.text.is_empty() {
            self.check_templates(reader);
        }
    }

    fn check_expression(&self, reader: &mut Reader<'_>, position: Position) {
        let place = self.expr.place.unwrap_or(position);
        let cause = match self.expr.text {
            "" if self.expr.is_missing() => Cause::NoExpression,
            "" => return,
            text => match reader.checks.expression(text) {
                Ok(()) => return,
                Err(what) => Cause::Expression(cut(what)),
            },
        };
        reader.at_key("expr", |reader| reader.report(place, cause));
    }

    /// The place is the record's, as in upstream, also where another key is too many.
    fn check_recording(&self, reader: &mut Reader<'_>, record: Position) {
        for &(key, entry) in &self.alerting {
            let cause = Cause::OnlyAlerting { key, line: entry.place.line };
            reader.at_key(key, |reader| reader.report(record, cause));
        }
        let name = self.record.text;
        reader.at_key("record", |reader| {
            if !reader.options.validation.is_metric_name(name) {
                reader.report(record, Cause::RecordName(quoted(name)));
            }
            // Valid in UTF-8, but most likely a selector.
            if name.contains(['{', '}']) {
                reader.report(record, Cause::Braces(quoted(name)));
            }
        });
    }

    fn check_templates(&self, reader: &mut Reader<'_>) {
        // Cut, because the error of each template contains the name.
        let alert: String = self.alert.text.chars().take(NAME_CHARS_MAX).collect();
        for entry in &self.templates {
            let Data::Map(pairs) = &entry.value.data else { continue };
            reader.at_key(&entry.key, |reader| {
                for pair in pairs {
                    let Some(text) = pair.value.text() else { continue };
                    if let Err(what) = reader.checks.template(&alert, text) {
                        let cause = Cause::Template(cut(what));
                        reader.at_key(&pair.key, |reader| reader.report(place(pair), cause));
                    }
                }
            });
        }
    }

    fn whole(self, position: Position) -> Rule {
        let kind = match self.alert.text {
            "" => Kind::Recording { record: self.record.text.to_owned() },
            alert => Kind::Alerting {
                alert: alert.to_owned(),
                for_: self.for_,
                keep_firing_for: self.keep_firing_for,
                annotations: self.annotations,
            },
        };
        Rule { position, kind, expr: self.expr.text.to_owned(), labels: self.labels }
    }
}

impl<'n> Name<'n> {
    fn read(reader: &mut Reader<'_>, entry: &'n Entry) -> Result<Name<'n>, Stop> {
        let text = reader.text(entry)?;
        let is_wrong = text.is_none();
        Ok(Name { place: Some(place(entry)), text: text.unwrap_or_default(), is_wrong })
    }

    fn is_missing(&self) -> bool {
        self.text.is_empty() && !self.is_wrong
    }
}
