//! Reading a section of the configuration file: a mapping whose keys are known, with the line of
//! everything, so that an error can name it.

use super::file::{Wrong, is_nothing, line, scalar};
use saphyr::{MarkedYaml, YamlData};
use std::fmt::Display;

/// A mapping of the file. Keys are taken one by one; what is left at the end is wrong.
pub struct Section<'a, 'y> {
    /// What errors call it.
    name: String,
    line: usize,
    entries: Vec<(&'a str, usize, &'a MarkedYaml<'y>)>,
}

impl<'a, 'y> Section<'a, 'y> {
    /// A node that must be a mapping; nothing at all counts as an empty one.
    pub fn of(name: impl Into<String>, node: &'a MarkedYaml<'y>) -> Result<Section<'a, 'y>, Wrong> {
        let (name, at) = (name.into(), line(node));
        let mut entries = Vec::new();
        match &node.data {
            YamlData::Mapping(map) => {
                for (key, value) in map {
                    let text = scalar(key);
                    let text =
                        text.ok_or_else(|| (line(key), format!("{name}: a key is wanted")))?;
                    entries.push((text, line(key), value));
                }
            }
            data if is_nothing(data) => {}
            _ => return Err((at, format!("{name}: lines of the form `key: value` are wanted"))),
        }
        Ok(Section { name, line: at, entries })
    }

    /// Something wrong with the whole of it.
    pub fn wrong(&self, what: impl Display) -> Wrong {
        (self.line, format!("{}: {what}", self.name))
    }

    /// The value of a key, and its line.
    fn take(&mut self, key: &str) -> Option<(usize, &'a MarkedYaml<'y>)> {
        let at = self.entries.iter().position(|(name, ..)| *name == key)?;
        let (_, line, value) = self.entries.remove(at);
        Some((line, value))
    }

    /// A value as `read` understands its text; `None` if the key is not there.
    pub fn get<T, E: Display>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Wrong> {
        let Some((at, node)) = self.take(key) else { return Ok(None) };
        let wrong = |what: &dyn Display| (at, format!("{}.{key}: {what}", self.name));
        let text = scalar(node).ok_or_else(|| wrong(&"one plain value is wanted"))?;
        read(text).map(Some).map_err(|error| wrong(&error))
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, Wrong> {
        self.get(key, |text| Ok::<_, String>(text.to_owned()))
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &str) -> Result<Option<bool>, Wrong> {
        self.get(key, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("true or false is wanted"),
        })
    }

    /// A whole number between bounds that are included.
    pub fn number(
        &mut self,
        key: &str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Wrong> {
        self.get(key, |text| match text.parse::<u64>() {
            Ok(number) if bounds.contains(&number) => Ok(number),
            _ => Err(format!("a number from {} to {} is wanted", bounds.start(), bounds.end())),
        })
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &str) -> Result<Option<Vec<String>>, Wrong> {
        self.each(key, |text| Ok::<_, String>(text.to_owned()))
    }

    /// A list of values, each as `read` understands its text.
    pub fn each<T, E: Display>(
        &mut self,
        key: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<Vec<T>>, Wrong> {
        let Some(items) = self.list(key)? else { return Ok(None) };
        let value = |item: &MarkedYaml<'_>| {
            let wrong = |what: &dyn Display| (line(item), format!("{}.{key}: {what}", self.name));
            let text = scalar(item).ok_or_else(|| wrong(&"a list of texts is wanted"))?;
            read(text).map_err(|error| wrong(&error))
        };
        items.iter().map(value).collect::<Result<_, _>>().map(Some)
    }

    /// The items of a list.
    pub fn list(&mut self, key: &str) -> Result<Option<&'a [MarkedYaml<'y>]>, Wrong> {
        let Some((at, node)) = self.take(key) else { return Ok(None) };
        match &node.data {
            YamlData::Sequence(items) => Ok(Some(items)),
            data if is_nothing(data) => Ok(Some(&[])),
            _ => Err((at, format!("{}.{key}: a list is wanted", self.name))),
        }
    }

    /// Plain names and values, in the file's order.
    pub fn pairs(&mut self, key: &str) -> Result<Vec<(String, String)>, Wrong> {
        let Some(section) = self.section(key)? else { return Ok(Vec::new()) };
        let pair = |(name, at, value): (&str, usize, &MarkedYaml<'_>)| match scalar(value) {
            Some(text) => Ok((name.to_owned(), text.to_owned())),
            None => Err((at, format!("{}.{name}: one plain value is wanted", section.name))),
        };
        section.entries.into_iter().map(pair).collect()
    }

    /// A section inside of this one.
    pub fn section(&mut self, key: &str) -> Result<Option<Section<'a, 'y>>, Wrong> {
        let Some((_, node)) = self.take(key) else { return Ok(None) };
        Section::of(format!("{}.{key}", self.name), node).map(Some)
    }

    /// Ends the section: a key that nobody took is wrong.
    pub fn end(self) -> Result<(), Wrong> {
        match self.entries.first() {
            Some((key, at, _)) => Err((*at, format!("{}.{key}: there is no such key", self.name))),
            None => Ok(()),
        }
    }
}
