//! Reads `groups`, and each of them.

use super::error::quoted;
use super::reader::{Pairs, Reader, Stop, place};
use super::{Cause, Group, Labels, Rule, rule};
use std::collections::HashMap;
use tidepool_settings::yaml::{Entry, Node};

const GROUPS: &str = "groups";

const KEYS: &[&str] = &["name", "interval", "query_offset", "limit", "labels", "rules"];

/// Reads the root of a file. What is returned counts only if nothing was reported.
pub(super) fn read_all(reader: &mut Reader<'_>, root: &Node) -> Result<Vec<Group>, Stop> {
    let mut groups = Vec::new();
    // Lines of the names so far.
    let mut names = HashMap::new();
    for entry in reader.entries(root, root.place).unwrap_or_default() {
        if entry.key != GROUPS {
            reader.unknown(entry, &[GROUPS]);
            continue;
        }
        reader.at_key(GROUPS, |reader| {
            for (number, node) in reader.items(entry) {
                groups.extend(reader.at_item(number, |reader| read(reader, node, &mut names))?);
            }
            Ok(())
        })?;
    }
    Ok(groups)
}

fn read(
    reader: &mut Reader<'_>,
    node: &Node,
    names: &mut HashMap<String, u32>,
) -> Result<Option<Group>, Stop> {
    let Some(entries) = reader.entries(node, node.place) else { return Ok(None) };
    let (labels, rules) = (Labels::new(), Vec::new());
    let (position, name) = (node.place, String::new());
    let (interval, query_offset, limit) = (None, None, 0);
    let mut group = Group { position, name, interval, query_offset, limit, labels, rules };
    let mut has_name = false;
    for entry in entries {
        let key = entry.key.as_str();
        if !KEYS.contains(&key) {
            reader.unknown(entry, KEYS);
            continue;
        }
        reader.at_key(key, |reader| {
            match key {
                "name" => {
                    has_name = true;
                    group.name = read_name(reader, entry, names)?;
                }
                // Zero means the global one, as in upstream.
                "interval" => {
                    group.interval = reader.duration(entry)?.filter(|time| !time.is_zero());
                }
                "query_offset" => group.query_offset = reader.duration(entry)?,
                "limit" => group.limit = reader.number(entry),
                "labels" => group.labels = reader.pairs(entry, Pairs::Labels)?,
                _ => group.rules = read_rules(reader, entry)?,
            }
            Ok(())
        })?;
    }
    if !has_name {
        reader.report(position, Cause::GroupName);
    }
    let label_bytes: usize =
        group.labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    reader.take_text(position, label_bytes.saturating_mul(group.rules.len()))?;
    Ok(Some(group))
}

fn read_name(
    reader: &mut Reader<'_>,
    entry: &Entry,
    names: &mut HashMap<String, u32>,
) -> Result<String, Stop> {
    let place = place(entry);
    let Some(name) = reader.text(entry)? else { return Ok(String::new()) };
    if name.is_empty() {
        reader.report(place, Cause::GroupName);
    } else if let Some(&line) = names.get(name) {
        reader.report(place, Cause::RepeatedGroup { name: quoted(name), line });
    } else {
        names.insert(name.to_owned(), place.line);
    }
    Ok(name.to_owned())
}

fn read_rules(reader: &mut Reader<'_>, entry: &Entry) -> Result<Vec<Rule>, Stop> {
    let mut rules = Vec::new();
    for (number, node) in reader.items(entry) {
        rules.extend(reader.at_item(number, |reader| rule::read(reader, node))?);
    }
    Ok(rules)
}
