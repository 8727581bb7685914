//! Reads nodes, and collects what is wrong with them.

use super::error::{cut, quoted};
use super::nearest::nearest;
use super::{
    Cause, Checks, Labels, MISTAKES_MAX, Mistake, Options, Position, RuleFileError, duration,
};
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tidepool_settings::yaml::{self, Data, Entry, Node};

/// Maximum number of bytes of all texts that are kept, with those of aliases and with the labels
/// of its group for each rule.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;

/// Maximum number of characters of a key in the path of keys.
const KEY_CHARS_MAX: usize = 60;

/// What may still be read, of one or of several files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub rules_max: usize,
    pub rule_count: usize,
    pub text_bytes: usize,
}

impl Budget {
    pub fn new(rules_max: usize) -> Budget {
        Budget { rules_max, rule_count: 0, text_bytes: 0 }
    }
}

/// A bound was passed and reported; nothing else is read.
pub(crate) struct Stop;

/// Kinds of pairs, which differ in what their names may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pairs {
    Labels,
    Annotations,
    /// Of which any name is good.
    Any,
}

pub(crate) struct Reader<'a> {
    pub options: &'a Options,
    pub checks: &'a dyn Checks,
    pub budget: &'a mut Budget,
    pub mistakes: Vec<Mistake>,
    /// Number of mistakes that were not kept.
    pub more: usize,
    /// Keys around what is read.
    path: String,
}

impl<'a> Reader<'a> {
    pub fn new(options: &'a Options, checks: &'a dyn Checks, budget: &'a mut Budget) -> Reader<'a> {
        Reader { options, checks, budget, mistakes: Vec::new(), more: 0, path: String::new() }
    }

    pub fn report(&mut self, place: Position, cause: Cause) {
        let key = self.path.clone();
        self.report_at(place, key, cause);
    }

    pub fn report_at(&mut self, place: Position, key: String, cause: Cause) {
        match self.mistakes.len() < MISTAKES_MAX {
            true => self.mistakes.push(Mistake { place, key, cause }),
            false => self.more += 1,
        }
    }

    /// Reports the keys that a document has twice.
    pub fn report_repeated(&mut self, repeated: &[yaml::Error]) {
        for error in repeated {
            let cause = Cause::Yaml(cut(error.what().to_owned()));
            self.report_at(error.place(), error.key().to_owned(), cause);
        }
    }

    /// Returns what was reported as an error, in the order of the file.
    pub fn finish(self, path: &Path) -> Result<(), RuleFileError> {
        let Reader { mut mistakes, more, .. } = self;
        if mistakes.is_empty() {
            return Ok(());
        }
        // What is missing is found after the keys that are there.
        mistakes.sort_by_key(|mistake| (mistake.place.line, mistake.place.column));
        Err(RuleFileError { path: path.to_owned(), mistakes, more })
    }

    /// Keys around what is read.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads what a key has, with the key in the path.
    pub fn at_key<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.path.len();
        if outer > 0 {
            self.path.push('.');
        }
        match key.char_indices().nth(KEY_CHARS_MAX) {
            Some((end, _)) => {
                self.path.push_str(&key[..end]);
                self.path.push('…');
            }
            None => self.path.push_str(key),
        }
        let read = read(self);
        self.path.truncate(outer);
        read
    }

    /// Reads an item of a list, with its number in the path.
    pub fn at_item<T>(&mut self, number: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.path.len();
        // Writing to a text does not fail.
        let _ = write!(self.path, "[{number}]");
        let read = read(self);
        self.path.truncate(outer);
        read
    }

    pub fn take_text(&mut self, place: Position, bytes: usize) -> Result<(), Stop> {
        self.budget.text_bytes = self.budget.text_bytes.saturating_add(bytes);
        match self.budget.text_bytes > TEXT_BYTES_MAX {
            true => Err(self.stop(place, Cause::Texts(TEXT_BYTES_MAX))),
            false => Ok(()),
        }
    }

    pub fn take_rule(&mut self, place: Position) -> Result<(), Stop> {
        self.budget.rule_count += 1;
        match self.budget.rule_count > self.budget.rules_max {
            true => Err(self.stop(place, Cause::Rules(self.budget.rules_max))),
            false => Ok(()),
        }
    }

    fn stop(&mut self, place: Position, cause: Cause) -> Stop {
        self.report(place, cause);
        Stop
    }

    /// Entries of a mapping; `None` for a value of another type.
    pub fn entries<'n>(&mut self, node: &'n Node, place: Position) -> Option<&'n [Entry]> {
        match &node.data {
            Data::Nothing => Some(&[]),
            Data::Map(entries) => Some(entries),
            _ => {
                self.report(place, Cause::Type("lines of the form `key: value`"));
                None
            }
        }
    }

    /// Items of a list without those that have no value, which upstream leaves out; with their
    /// numbers.
    pub fn items<'n>(
        &mut self,
        entry: &'n Entry,
    ) -> impl Iterator<Item = (usize, &'n Node)> + use<'n> {
        let items: &[Rc<Node>] = match &entry.value.data {
            Data::List(items) => items,
            Data::Nothing => &[],
            _ => {
                self.report(place(entry), Cause::Type("a list"));
                &[]
            }
        };
        let items = items.iter().map(AsRef::as_ref).enumerate();
        items.filter(|(_, node)| !matches!(node.data, Data::Nothing))
    }

    /// A plain value as text, empty if there is none; `None` for a list or mapping.
    pub fn text<'n>(&mut self, entry: &'n Entry) -> Result<Option<&'n str>, Stop> {
        match entry.value.text() {
            Some(text) => self.take_text(place(entry), text.len()).map(|()| Some(text)),
            None => {
                self.report(place(entry), Cause::Type("one plain value"));
                Ok(None)
            }
        }
    }

    /// A whole number; a fraction is cut off, as in upstream.
    pub fn number(&mut self, entry: &Entry) -> i64 {
        self.plain(entry, "a whole number of at most 64 bits")
    }

    /// A value of another plain type, which the report names.
    pub fn plain<T: DeserializeOwned + Default>(&mut self, entry: &Entry, of: &'static str) -> T {
        yaml::read("", &entry.value).unwrap_or_else(|_| {
            self.report(place(entry), Cause::Type(of));
            T::default()
        })
    }

    /// A duration; `None` without a value or with a wrong one.
    pub fn duration(&mut self, entry: &Entry) -> Result<Option<Duration>, Stop> {
        if matches!(entry.value.data, Data::Nothing) {
            return Ok(None);
        }
        let Some(text) = self.text(entry)? else { return Ok(None) };
        let read = duration::parse(text).map_err(|cause| self.report(place(entry), cause));
        Ok(read.ok())
    }

    pub fn pairs(&mut self, entry: &Entry, kind: Pairs) -> Result<Labels, Stop> {
        let mut pairs = Labels::new();
        for pair in self.entries(&entry.value, place(entry)).unwrap_or_default() {
            let text = self.at_key(&pair.key, |reader| {
                reader.take_text(pair.place, pair.key.len())?;
                reader.name(pair, kind);
                reader.text(pair)
            })?;
            pairs.insert(pair.key.clone(), text.unwrap_or_default().to_owned());
        }
        Ok(pairs)
    }

    fn name(&mut self, pair: &Entry, kind: Pairs) {
        if kind == Pairs::Any {
            return;
        }
        let is_valid = self.options.validation.is_label_name(&pair.key);
        // The name of the series is given by the rule.
        if !is_valid || kind == Pairs::Labels && pair.key == "__name__" {
            let name = quoted(&pair.key);
            let cause = match kind {
                Pairs::Labels => Cause::LabelName(name),
                _ => Cause::AnnotationName(name),
            };
            self.report(pair.place, cause);
        }
    }

    pub fn unknown(&mut self, entry: &Entry, known: &'static [&'static str]) {
        if !self.options.ignore_unknown_fields {
            let nearest = nearest(&entry.key, known);
            self.at_key(&entry.key, |reader| {
                reader.report(entry.place, Cause::UnknownKey { nearest, known });
            });
        }
    }
}

/// Place of an entry's value; that of the key if the value is an alias, whose node lies elsewhere.
pub(crate) fn place(entry: &Entry) -> Position {
    let line_and_column = |place: Position| (place.line, place.column);
    match line_and_column(entry.value.place) < line_and_column(entry.place) {
        true => entry.place,
        false => entry.value.place,
    }
}
