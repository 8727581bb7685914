//! One value by a verb and its flags.

use super::quote::{can_be_raw, quoted_within};
use super::sink::Sink;
use crate::template::data::{Data, Sample};
use crate::template::notification::{PAIRS, labels_text, pairs_text};
use crate::template::time::{MONTHS, WEEKDAYS, duration_text};
use crate::template::value::{DATA_TYPE, List, Struct, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    pub width: Option<i64>,
    pub precision: Option<i64>,
    pub minus: bool,
    pub plus: bool,
    pub sharp: bool,
    pub space: bool,
    pub zero: bool,
    /// `%+v`, and `%#v`.
    pub plus_v: bool,
    pub sharp_v: bool,
}

pub struct Printer<'s> {
    pub(super) sink: &'s mut Sink,
    pub(super) flags: Flags,
    /// Within the text of a wrong verb, where values have no texts of their own.
    is_wrong: bool,
    /// Whether a sample is printed without the sign of a pointer.
    is_bare: bool,
}

const LABELS_TYPE: &str = "map[string]string";

/// What Go prints is the address of a value that has none here.
const ADDRESS: u64 = 0xc0_0000_0000;

/// Appends values; a space stands between two that are no texts.
pub fn print(values: &[Value], sink: &mut Sink) {
    print_as(values, false, sink);
}

/// Appends values as actions print them: what a pointer leads to, and a text for no value.
pub fn print_bare(values: &[Value], sink: &mut Sink) {
    print_as(values, true, sink);
}

fn print_as(values: &[Value], is_bare: bool, sink: &mut Sink) {
    let mut is_text = true;
    for value in values {
        let is_nothing = is_bare && matches!(value, Value::None);
        let is_next_text = is_nothing || matches!(value, Value::Html(_) | Value::Text(_));
        sink.push(if is_text || is_next_text { "" } else { " " });
        match is_nothing {
            true => sink.push("<no value>"),
            false => {
                let flags = Flags::default();
                Printer { is_bare, ..Printer::new(sink, flags) }.argument(value, 'v');
            }
        }
        is_text = is_next_text;
    }
}

/// Appends values with spaces between them, and the end of a line.
pub fn println(values: &[Value], sink: &mut Sink) {
    for (place, value) in values.iter().enumerate() {
        sink.push(if place > 0 { " " } else { "" });
        Printer::new(sink, Flags::default()).argument(value, 'v');
    }
    sink.push("\n");
}

impl<'s> Printer<'s> {
    pub fn new(sink: &'s mut Sink, flags: Flags) -> Printer<'s> {
        Printer { sink, flags, is_wrong: false, is_bare: false }
    }

    pub fn argument(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::None, 'T' | 'v') => self.padded("<nil>"),
            (_, 'T') => self.text(value.type_name(), 's'),
            _ => self.value(value, verb),
        }
    }

    fn value(&mut self, value: &Value, verb: char) {
        if self.sink.is_full() {
            return;
        }
        if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && !self.is_wrong
            && (!self.flags.sharp_v || value.integer().is_none())
            && let Some(text) = own_text(value)
        {
            let verb = if verb == 'v' { 's' } else { verb };
            return self.text(&text, verb);
        }
        match value {
            Value::None if verb == 'v' => self.sink.push("<nil>"),
            Value::None => self.wrong(value, verb),
            Value::Bool(truth) if matches!(verb, 't' | 'v') => {
                self.padded(if *truth { "true" } else { "false" });
            }
            Value::Float(number) if matches!(verb, 'b' | 'e'..='g' | 'x' | 'v' | 'E'..='G' | 'X') =>
            {
                self.float(*number, verb);
            }
            Value::Html(text) | Value::Text(text)
                if matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') =>
            {
                self.text(text, verb);
            }
            Value::Kv(labels) | Value::Labels(labels) => {
                self.labels(value.type_name(), labels, verb);
            }
            Value::List(list) => self.list(list, verb),
            Value::Struct(value) => self.structure(value, verb),
            Value::Map(map) => {
                let name = value.type_name();
                self.map(name, map.values.iter(), |printer, (key, value)| {
                    printer.entry(key, value, verb);
                });
            }
            Value::Sample(sample) => self.sample(sample, verb),
            Value::Samples(samples) => {
                self.push_sharp("template.queryResult");
                self.sink.push(if self.flags.sharp_v { "{" } else { "[" });
                for (place, sample) in samples.iter().enumerate() {
                    self.separate(place);
                    self.sample(sample, verb);
                    if self.sink.is_full() {
                        return;
                    }
                }
                self.sink.push(if self.flags.sharp_v { "}" } else { "]" });
            }
            Value::Data(data) => self.data(data, verb),
            Value::Duration { is_pointer: true, .. } | Value::Histogram(_) | Value::Time { .. } => {
                match verb {
                    'v' | 'b' | 'o' | 'd' | 'x' | 'X' | 'p' => {
                        let sharp = !self.flags.sharp && matches!(verb, 'v' | 'p');
                        let flags = std::mem::replace(&mut self.flags.sharp, sharp);
                        self.integer(false, ADDRESS, if verb == 'v' { 'x' } else { verb }, value);
                        self.flags.sharp = flags;
                    }
                    _ => self.wrong(value, verb),
                }
            }
            _ => match value.integer() {
                Some(number) => self.integer(number < 0, number.unsigned_abs(), verb, value),
                None => self.wrong(value, verb),
            },
        }
    }

    /// Writes what a verb gives that a value does not have.
    pub(super) fn wrong(&mut self, value: &Value, verb: char) {
        self.sink.push("%!");
        self.sink.push_char(verb);
        self.sink.push("(");
        if matches!(value, Value::None) {
            self.sink.push("<nil>");
        } else {
            self.sink.push(value.type_name());
            self.sink.push("=");
            let was_wrong = std::mem::replace(&mut self.is_wrong, true);
            self.value(value, 'v');
            self.is_wrong = was_wrong;
        }
        self.sink.push(")");
    }

    fn labels(&mut self, name: &str, labels: &BTreeMap<String, String>, verb: char) {
        self.map(name, labels.iter(), |printer, (name, value)| {
            printer.any_text(name, verb);
            printer.sink.push(":");
            printer.any_text(value, verb);
        });
    }

    fn entry(&mut self, key: &str, value: &Value, verb: char) {
        self.any_text(key, verb);
        self.sink.push(":");
        self.item(value, verb);
    }

    fn item(&mut self, value: &Value, verb: char) {
        match value {
            Value::None if self.flags.sharp_v => self.sink.push("interface {}(nil)"),
            // An empty interface prints so whatever the verb is.
            Value::None => self.sink.push("<nil>"),
            _ => self.value(value, verb),
        }
    }

    fn map<T>(
        &mut self,
        name: &str,
        entries: impl Iterator<Item = T>,
        mut print: impl FnMut(&mut Printer<'s>, T),
    ) {
        self.push_sharp(name);
        self.sink.push(if self.flags.sharp_v { "{" } else { "map[" });
        for (place, entry) in entries.enumerate() {
            self.separate(place);
            print(self, entry);
            if self.sink.is_full() {
                return;
            }
        }
        self.sink.push(if self.flags.sharp_v { "}" } else { "]" });
    }

    fn list(&mut self, list: &List, verb: char) {
        self.push_sharp(list.type_name);
        self.sink.push(if self.flags.sharp_v { "{" } else { "[" });
        for (place, item) in list.items.iter().enumerate() {
            self.separate(place);
            self.item(item, verb);
            if self.sink.is_full() {
                return;
            }
        }
        self.sink.push(if self.flags.sharp_v { "}" } else { "]" });
    }

    fn structure(&mut self, value: &Struct, verb: char) {
        self.push_sharp(value.shape.type_name);
        self.sink.push("{");
        for (place, ((name, _), value)) in value.shape.fields.iter().zip(&value.values).enumerate()
        {
            self.field(place, name);
            self.value(value, verb);
            if self.sink.is_full() {
                return;
            }
        }
        self.sink.push("}");
    }

    fn sample(&mut self, sample: &Sample, verb: char) {
        self.sink.push(if self.is_bare { "" } else { "&" });
        self.push_sharp("template.sample");
        self.sink.push("{");
        self.field(0, "Labels");
        self.labels(LABELS_TYPE, &sample.labels, verb);
        self.field(1, "Value");
        self.value(&sample.value.value(), verb);
        self.sink.push("}");
    }

    fn data(&mut self, data: &Data, verb: char) {
        self.push_sharp(DATA_TYPE);
        self.sink.push("{");
        self.field(0, "Labels");
        self.labels(LABELS_TYPE, &data.labels, verb);
        self.field(1, "ExternalLabels");
        self.labels(LABELS_TYPE, &data.external_labels, verb);
        self.field(2, "ExternalURL");
        self.any_text(&data.external_url, verb);
        self.field(3, "Value");
        self.value(&data.value.value(), verb);
        self.sink.push("}");
    }

    fn field(&mut self, place: usize, name: &str) {
        self.separate(place);
        if self.flags.plus_v || self.flags.sharp_v {
            self.sink.push(name);
            self.sink.push(":");
        }
    }

    fn separate(&mut self, place: usize) {
        if place > 0 {
            self.sink.push(if self.flags.sharp_v { ", " } else { " " });
        }
    }

    fn push_sharp(&mut self, name: &str) {
        if self.flags.sharp_v {
            self.sink.push(name);
        }
    }

    /// Writes a text by any verb.
    fn any_text(&mut self, text: &str, verb: char) {
        match verb {
            'v' | 's' | 'x' | 'X' | 'q' => self.text(text, verb),
            _ => self.wrong(&Value::text(text), verb),
        }
    }

    fn text(&mut self, text: &str, verb: char) {
        let precision = self.flags.precision.and_then(|precision| usize::try_from(precision).ok());
        if matches!(verb, 'x' | 'X') {
            return self.hexadecimal(text, precision, verb);
        }
        let cut = precision.and_then(|precision| text.char_indices().nth(precision));
        let text = &text[..cut.map_or(text.len(), |(at, _)| at)];
        match verb {
            'q' if self.flags.sharp && can_be_raw(text) => self.padded(&format!("`{text}`")),
            'q' => self.padded(&quoted_within(text, '"', self.flags.plus)),
            'v' if self.flags.sharp_v => self.padded(&quoted_within(text, '"', false)),
            _ => self.padded(text),
        }
    }

    fn hexadecimal(&mut self, text: &str, precision: Option<usize>, verb: char) {
        let bytes = &text.as_bytes()[..precision.map_or(text.len(), |most| most.min(text.len()))];
        let prefix = if verb == 'x' { "0x" } else { "0X" };
        let mut out = String::new();
        for (place, byte) in bytes.iter().enumerate() {
            let is_apart = self.flags.space && place > 0;
            out.push_str(if is_apart { " " } else { "" });
            out.push_str(if self.flags.sharp && (is_apart || place == 0) { prefix } else { "" });
            // Writing to a text does not fail.
            let _ = match verb {
                'x' => write!(out, "{byte:02x}"),
                _ => write!(out, "{byte:02X}"),
            };
        }
        self.padded(&out);
    }

    pub(super) fn padded(&mut self, text: &str) {
        let missing = match self.flags.width {
            Some(width) => width.saturating_sub(text.chars().count() as i64).max(0) as usize,
            None => 0,
        };
        let letter = if self.flags.zero && !self.flags.minus { '0' } else { ' ' };
        if !self.flags.minus {
            self.sink.pad(letter, missing);
        }
        self.sink.push(text);
        if self.flags.minus {
            self.sink.pad(letter, missing);
        }
    }
}

/// Returns the text of a type that has a method for it.
fn own_text(value: &Value) -> Option<String> {
    match value {
        Value::Duration { nanos, .. } => Some(duration_text(*nanos)),
        Value::Histogram(text) => Some(text.to_string()),
        Value::Kv(labels) => Some(labels_text(labels)),
        Value::List(list) if list.type_name == PAIRS => Some(pairs_text(&list.items)),
        Value::Month(month) => Some(match MONTHS.get(usize::from(*month).wrapping_sub(1)) {
            Some(name) => (*name).to_owned(),
            None => format!("%!Month({month})"),
        }),
        Value::Time { time, .. } => Some(time.to_string()),
        Value::Weekday(day) => WEEKDAYS.get(usize::from(*day)).map(|name| (*name).to_owned()),
        _ => None,
    }
}
