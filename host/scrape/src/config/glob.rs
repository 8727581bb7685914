//! Patterns of files with at most one `*` in the last part of the path, as upstream allows.
//!
//! The crate `glob` accepts more than upstream (`**`, classes), and does not return the directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A path, whose last part may have one `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    directory: PathBuf,
    /// Name before the `*`, and after it in `end`; the whole name if `end` is `None`.
    begin: String,
    end: Option<String>,
}

impl Pattern {
    /// Parses a pattern; returns `None` if it is not valid.
    pub(crate) fn parse(text: &str) -> Option<Pattern> {
        let (directory, name) = match text.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some(parts) => parts,
            None => ("", text),
        };
        let (begin, end) = match name.split_once('*') {
            Some((begin, end)) => (begin.to_owned(), Some(end.to_owned())),
            None => (name.to_owned(), None),
        };
        let stars = text.matches('*').count();
        let is_pattern = !name.is_empty() && stars <= 1 && (stars == 0 || end.is_some());
        is_pattern.then(|| Pattern { directory: directory.into(), begin, end })
    }

    /// Returns whether a file is in the directory of the pattern.
    pub(crate) fn is_beside(&self, path: &Path) -> bool {
        path.parent() == Some(&self.directory)
    }

    /// Resolves a relative path against a directory.
    pub(crate) fn set_directory(&mut self, directory: &Path) {
        self.directory = directory.join(&self.directory);
    }
}

/// Writes the path with its star.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.end {
            Some(end) => format!("{}*{end}", self.begin),
            None => self.begin.clone(),
        };
        self.directory.join(name).display().fmt(f)
    }
}

/// Returns the files that match now, sorted by name. A missing directory has no files.
pub(crate) fn matching(pattern: &Pattern) -> io::Result<Vec<PathBuf>> {
    let Some(end) = &pattern.end else {
        let path = pattern.directory.join(&pattern.begin);
        // An inaccessible file counts as found, so that reading it reports the error.
        return match std::fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            _ => Ok(vec![path]),
        };
    };
    let directory = match pattern.directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => &pattern.directory,
    };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let rest = name.strip_prefix(pattern.begin.as_str());
        // `end` is looked for in the rest only, so that `begin` and `end` do not overlap.
        if rest.is_some_and(|rest| rest.ends_with(end.as_str())) {
            found.push(pattern.directory.join(name));
        }
    }
    // `read_dir` lists a directory in any order.
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_star_stands_for_any_part_of_a_name() -> io::Result<()> {
        for wrong in ["", "/a/", "a*b*c", "*/a", "a*/b", "a/**"] {
            assert_eq!(Pattern::parse(wrong), None, "{wrong}");
        }
        let folder = tempfile::tempdir()?;
        for name in ["a.json", "ab.json", "aba", "b.json"] {
            std::fs::write(folder.path().join(name), "")?;
        }
        let found = |text: &str| -> io::Result<Vec<String>> {
            let mut pattern = Pattern::parse(text).ok_or(io::ErrorKind::InvalidInput)?;
            pattern.set_directory(folder.path());
            assert_eq!(pattern.to_string(), folder.path().join(text).display().to_string());
            let names = matching(&pattern)?
                .into_iter()
                .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
            Ok(names.collect())
        };
        assert_eq!(found("a*.json")?, ["a.json", "ab.json"]);
        // The parts on both sides do not overlap.
        assert_eq!(found("ab*ba")?, [""; 0]);
        assert_eq!(found("*")?.len(), 4);
        assert_eq!(found("b.json")?, ["b.json"]);
        assert_eq!(found("c.json")?, [""; 0]);
        assert_eq!(found("none/*.json")?, [""; 0]);
        Ok(())
    }
}
