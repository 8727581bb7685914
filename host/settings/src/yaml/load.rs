//! Parses a YAML text into nodes.

use super::{Data, Entry, Error, Node, Position};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum nesting of lists and mappings.
const DEPTH_MAX: usize = 64;

/// Maximum number of values that all aliases together may expand to.
const ALIASED_VALUES_MAX: usize = 100_000;

/// Key whose value is a mapping, or mappings, merged into the mapping with this key.
const MERGE: &str = "<<";

/// Approximate memory that an allocation needs in addition to its bytes.
const ALLOCATION_BYTES: usize = 16;

/// Memory of a value besides its text: the node, its reference counts, its entry in the parent.
const NODE_BYTES: usize = size_of::<Node>() + 5 * size_of::<usize>() + ALLOCATION_BYTES;

/// Memory of a key besides its text. The text exists twice while the key's mapping is read.
const KEY_BYTES: usize = 2 * (size_of::<Entry>() + ALLOCATION_BYTES);

/// Called before memory is allocated, with its size in bytes; refuses with a reason.
pub type Take<'a> = &'a mut dyn FnMut(usize) -> Result<(), String>;

/// Parses a text with one document. An empty document is `Data::Nothing`.
pub fn load(text: &str) -> Result<Rc<Node>, Error> {
    load_counted(text, &mut |_| Ok(()))
}

/// [`load`] for a text of foreign origin. Calls `take` with the approximate memory of each value
/// before the value is made; an error of `take` becomes the error's text.
pub fn load_counted(text: &str, take: Take<'_>) -> Result<Rc<Node>, Error> {
    let mut loader = Loader::new(take, None);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| not_yaml(&error))?;
        loader.take(event, place(&span.start))?;
    }
    Ok(loader.root.unwrap_or_else(nothing))
}

/// The first document of a text.
pub struct First {
    pub root: Rc<Node>,
    /// Where something else begins after the document, which is not read.
    pub rest: Option<Position>,
    /// Keys that were there already; their values are left out.
    pub repeated: Vec<Error>,
}

/// `load_counted` for a text whose further documents are not read, and whose repeated keys are
/// listed with the errors of their values.
pub fn load_first(text: &str, take: Take<'_>) -> Result<First, Error> {
    let mut loader = Loader::new(take, Some(Vec::new()));
    let (mut is_whole, mut rest) = (false, None);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((Event::StreamEnd, _)) => {}
            Ok((_, span)) if is_whole => rest = Some(place(&span.start)),
            Err(error) if is_whole => rest = Some(place(error.marker())),
            Ok((event, span)) => {
                is_whole = matches!(event, Event::DocumentEnd);
                loader.take(event, place(&span.start))?;
            }
            Err(error) => return Err(not_yaml(&error)),
        }
        if rest.is_some() {
            break;
        }
    }
    let root = loader.root.unwrap_or_else(nothing);
    Ok(First { root, rest, repeated: loader.repeated.unwrap_or_default() })
}

fn not_yaml(error: &ScanError) -> Error {
    Error::new(place(error.marker()), "", format!("this is not YAML: {}", error.info()))
}

/// The root of an empty text.
fn nothing() -> Rc<Node> {
    let place = Position { line: 1, column: 1 };
    Rc::new(Node { place, data: Data::Nothing, values: 1 })
}

fn place(marker: &Marker) -> Position {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    // The parser counts lines from 1 and columns from 0; positions count both from 1.
    Position { line: number(marker.line()), column: number(marker.col() + 1) }
}

struct Loader<'a> {
    take: Take<'a>,
    has_document: bool,
    /// Lists and mappings that have not ended, outermost first.
    open: Vec<Open>,
    /// Values with an anchor, by the parser's number of the anchor.
    anchors: HashMap<usize, Rc<Node>>,
    aliased_values: usize,
    root: Option<Rc<Node>>,
    /// Errors about repeated keys; with `None`, the first ends the reading.
    repeated: Option<Vec<Error>>,
}

struct Open {
    place: Position,
    anchor: usize,
    values: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Rc<Node>>),
    Map {
        entries: Vec<Entry>,
        /// The keys so far, each with its line.
        lines: HashMap<String, u32>,
        /// The key whose value comes next, with the key's position.
        key: Option<(Position, String)>,
        /// Whether the key is [`MERGE`] without quotes.
        is_merge: bool,
        /// Entries of merged mappings; an earlier entry overrides a later one with the same key.
        merged: Vec<Entry>,
    },
}

impl<'a> Loader<'a> {
    fn new(take: Take<'a>, repeated: Option<Vec<Error>>) -> Loader<'a> {
        let (has_document, open, anchors, aliased_values, root) = Default::default();
        Loader { take, has_document, open, anchors, aliased_values, root, repeated }
    }

    fn take(&mut self, event: Event<'_>, place: Position) -> Result<(), Error> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.has_document => {
                Err(Error::new(place, "", "a second document; only one is read"))
            }
            Event::DocumentStart(_) => {
                self.has_document = true;
                Ok(())
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).map(Rc::clone) else {
                    // The parser knows the anchor, so the alias is a part of the anchor's value.
                    return Err(self.wrong(place, "an alias stands for what it is a part of"));
                };
                // Aliases of aliases multiply, so a short text could expand to billions of values.
                self.aliased_values += node.values;
                if self.aliased_values > ALIASED_VALUES_MAX {
                    let what = format!("aliases stand for more than {ALIASED_VALUES_MAX} values");
                    return Err(self.wrong(place, &what));
                }
                self.put(place, node)
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(place, NODE_BYTES + text.len())?;
                let is_plain = match self.is_text(place, tag.as_deref())? {
                    Some(is_text) => !is_text,
                    None => style == ScalarStyle::Plain,
                };
                let data = match text.as_ref() {
                    _ if !is_plain => Data::Quoted(text.into_owned()),
                    // The spellings of null in go-yaml (`resolve.go`, version 2).
                    "" | "~" | "null" | "Null" | "NULL" => Data::Nothing,
                    _ => Data::Plain(text.into_owned()),
                };
                // The parser reports the position of the next token for a missing value, and that
                // of the text for a block, which may begin far below.
                let is_elsewhere = matches!(data, Data::Nothing)
                    || matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let place = match self.open.last().map(|open| &open.kind) {
                    Some(Kind::Map { key: Some((place, _)), .. }) if is_elsewhere => *place,
                    _ => place,
                };
                self.whole(anchor, Node { place, data, values: 1 })
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(place, anchor, tag, Kind::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let (entries, lines, is_merge, merged) = Default::default();
                let kind = Kind::Map { entries, lines, key: None, is_merge, merged };
                self.begin(place, anchor, tag, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn count(&mut self, place: Position, bytes: usize) -> Result<(), Error> {
        (self.take)(bytes).map_err(|what| self.wrong(place, &what))
    }

    fn begin(
        &mut self,
        place: Position,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        kind: Kind,
    ) -> Result<(), Error> {
        // Refuses unknown tags. The tags of YAML have no effect on a list or mapping.
        self.is_text(place, tag.as_deref())?;
        // Nodes are read and printed recursively, so their depth is limited.
        if self.open.len() == DEPTH_MAX {
            let what = format!("more than {DEPTH_MAX} lists and mappings inside of each other");
            return Err(self.wrong(place, &what));
        }
        self.count(place, NODE_BYTES)?;
        self.open.push(Open { place, anchor, values: 1, kind });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let Some(Open { place, anchor, values, kind }) = self.open.pop() else { return Ok(()) };
        let data = match kind {
            Kind::List(items) => Data::List(items),
            Kind::Map { mut entries, mut lines, merged, .. } => {
                let is_new =
                    |entry: &Entry| lines.insert(entry.key.clone(), entry.place.line).is_none();
                // Keys of the mapping itself override keys of merged mappings.
                entries.extend(merged.into_iter().filter(is_new));
                Data::Map(entries)
            }
        };
        self.whole(anchor, Node { place, data, values })
    }

    /// Stores a complete value under its anchor, if it has one, and adds it to its parent.
    fn whole(&mut self, anchor: usize, node: Node) -> Result<(), Error> {
        let (place, node) = (node.place, Rc::new(node));
        // The parser numbers anchors from 1; 0 means no anchor.
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        self.put(place, node)
    }

    /// Adds a value to the innermost open list or mapping.
    fn put(&mut self, place: Position, node: Rc<Node>) -> Result<(), Error> {
        // The value becomes a key, whose text is copied to two more places.
        if let Some(Open { kind: Kind::Map { key: None, .. }, .. }) = self.open.last() {
            self.count(place, KEY_BYTES + 2 * node.text().map_or(0, str::len))?;
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        parent.values += node.values;
        match &mut parent.kind {
            Kind::List(items) => items.push(node),
            Kind::Map { key: None, lines, .. } => {
                let Some(text) = node.text() else {
                    return Err(self.wrong(place, "a key must be plain text"));
                };
                let what = lines
                    .get(text)
                    .map(|line| format!("the key {text} is there already, in line {line}"));
                let name = Some((place, text.to_owned()));
                let merges = matches!(&node.data, Data::Plain(text) if text == MERGE);
                if let Some(what) = what {
                    self.repeat(place, &what)?;
                }
                if let Some(Open { kind: Kind::Map { key, is_merge, .. }, .. }) =
                    self.open.last_mut()
                {
                    (*key, *is_merge) = (name, merges);
                }
            }
            Kind::Map { key, is_merge, entries, lines, merged } => {
                let Some((at, key)) = key.take() else { return Ok(()) };
                if !*is_merge {
                    if !lines.contains_key(&key) {
                        lines.insert(key.clone(), at.line);
                        entries.push(Entry { place: at, key, value: node });
                    }
                } else if let Some(more) = mergeable(&node) {
                    // Two of them are a mistake since version 3 of go-yaml.
                    if self.repeated.is_some() {
                        lines.insert(key, at.line);
                    }
                    merged.extend(more.into_iter().cloned());
                } else {
                    return Err(self.wrong(place, "<< wants a mapping or a list of mappings"));
                }
            }
        }
        Ok(())
    }

    /// Refuses a repeated key, at once or after all others.
    fn repeat(&mut self, place: Position, what: &str) -> Result<(), Error> {
        let error = self.wrong(place, what);
        // The path has the keys around it, which may be long and have many repeated keys.
        self.count(place, error.bytes())?;
        match &mut self.repeated {
            Some(repeated) => repeated.push(error),
            None => return Err(error),
        }
        Ok(())
    }

    /// Returns whether a tag makes its value text; `None` without a tag. Foreign tags are errors.
    fn is_text(&self, place: Position, tag: Option<&Tag>) -> Result<Option<bool>, Error> {
        match tag {
            None => Ok(None),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix != "binary" => {
                Ok(Some(tag.suffix == "str"))
            }
            Some(tag) => Err(self.wrong(place, &format!("the tag {tag} means nothing here"))),
        }
    }

    fn wrong(&self, place: Position, what: &str) -> Error {
        let mut path = String::new();
        for open in &self.open {
            match &open.kind {
                Kind::List(items) => path += &format!("[{}]", items.len()),
                Kind::Map { key: Some((_, key)), .. } => {
                    path += if path.is_empty() { "" } else { "." };
                    path += key;
                }
                Kind::Map { .. } => {}
            }
        }
        Error::new(place, path, what)
    }
}

/// Returns the entries of a mapping, or of all mappings of a list; `None` for other values.
fn mergeable(node: &Node) -> Option<Vec<&Entry>> {
    match &node.data {
        Data::Map(entries) => Some(entries.iter().collect()),
        Data::List(items) => {
            let entries = items.iter().map(|item| match &item.data {
                Data::Map(entries) => Some(entries),
                _ => None,
            });
            let entries: Option<Vec<&Vec<Entry>>> = entries.collect();
            entries.map(|entries| entries.into_iter().flatten().collect())
        }
        _ => None,
    }
}
