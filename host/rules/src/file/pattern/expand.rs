//! Finds the files that patterns match. A name may be any bytes: what is not UTF-8 in it counts as
//! a letter for each byte.

use super::{Part, Pattern, Sign};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Maximum number of files that all patterns together may match, and of folders that are listed.
pub const FILES_MAX: usize = 10_000;

/// Returns the files that the patterns match now, each once, in the order of the patterns and
/// by name. Relative patterns begin at a directory. What is missing has no files; a directory that
/// cannot be listed is an error.
pub fn expand(patterns: &[Pattern], directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut is_found = HashSet::new();
    let mut listed = 0;
    for pattern in patterns {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{pattern}: {error}"));
        for path in matching(pattern, directory, &mut listed).map_err(failed)? {
            if !is_found.insert(path.clone()) {
                continue;
            }
            if found.len() == FILES_MAX {
                return Err(io::Error::other(format!("{pattern}: more than {FILES_MAX} files")));
            }
            found.push(path);
        }
    }
    Ok(found)
}

fn matching(pattern: &Pattern, directory: &Path, listed: &mut usize) -> io::Result<Vec<PathBuf>> {
    if pattern.text.is_empty() {
        return Ok(Vec::new());
    }
    let is_absolute = pattern.text.starts_with('/');
    let mut found = vec![if is_absolute { PathBuf::from("/") } else { directory.to_owned() }];
    for (number, part) in pattern.parts.iter().enumerate() {
        let is_last = number + 1 == pattern.parts.len();
        let mut next = Vec::new();
        for folder in found {
            match part {
                // Two slashes are one; in Go, nothing matches a pattern that ends with one.
                Part::Name(name) if name.is_empty() && pattern.parts.len() > 1 => {
                    if !is_last {
                        next.push(folder);
                    }
                }
                Part::Name(name) => next.push(folder.join(name)),
                Part::Signs(signs) => list(&folder, signs, listed, &mut next)?,
            }
        }
        found = next;
    }
    // A file that is there and cannot be reached counts: reading it says why.
    let is_there = |path: &PathBuf| match std::fs::symlink_metadata(path) {
        Err(error) => !is_missing(&error),
        Ok(_) => true,
    };
    found.retain(is_there);
    Ok(found)
}

/// Adds the entries of a folder that match.
fn list(
    folder: &Path,
    signs: &[Sign],
    listed: &mut usize,
    found: &mut Vec<PathBuf>,
) -> io::Result<()> {
    *listed += 1;
    if *listed > FILES_MAX {
        return Err(io::Error::other(format!("more than {FILES_MAX} folders")));
    }
    let shown = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let entries = match std::fs::read_dir(shown) {
        Err(error) if is_missing(&error) => return Ok(()),
        entries => entries?,
    };
    let first = found.len();
    for entry in entries {
        let name = entry?.file_name();
        if matches(signs, &name) {
            // More than all patterns may match, with the entries of other folders.
            if found.len() > FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files")));
            }
            found.push(folder.join(name));
        }
    }
    // The system lists a folder in any order.
    found[first..].sort();
    Ok(())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a name matches. Goes back to the last `*` only, so the time is at most the product of
/// both lengths.
fn matches(signs: &[Sign], name: &OsStr) -> bool {
    // What is not UTF-8 becomes a letter that stands for nothing else.
    let letters: Vec<char> = name.as_bytes().utf8_chunks().flat_map(letters).collect();
    let (mut sign, mut letter) = (0, 0);
    // The sign after the last star, and where its match begins.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (signs.get(sign), letters.get(letter)) {
            (None, None) => return true,
            (Some(Sign::Any), _) => {
                star = Some((sign + 1, letter));
                sign += 1;
            }
            (Some(wanted), Some(found)) if wanted.is(*found) => {
                sign += 1;
                letter += 1;
            }
            (_, _) => match star {
                Some((after, begin)) if begin < letters.len() => {
                    star = Some((after, begin + 1));
                    (sign, letter) = (after, begin + 1);
                }
                _ => return false,
            },
        }
    }
}

fn letters(chunk: std::str::Utf8Chunk<'_>) -> impl Iterator<Item = char> + '_ {
    let invalid = chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER);
    chunk.valid().chars().chain(invalid)
}

impl Sign {
    fn is(&self, found: char) -> bool {
        match self {
            Sign::Letter(letter) => *letter == found,
            Sign::One => true,
            Sign::Any => false,
            Sign::Class { is_negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&found)) != *is_negated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::part;
    use super::*;

    /// What `filepath.Glob` of Go 1.26 finds among the files of the test below, with the regular
    /// expression that upstream checks patterns by.
    const FOUND: [(&str, &[&str]); 32] = [
        ("a.yml", &["a.yml"]),
        ("none.yml", &[]),
        ("*.yml", &[".hidden.yml", "a.yml", "ab.yml", "sp ace.yml", "x[1].yml", "ä.yml"]),
        ("a*.yml", &["a.yml", "ab.yml"]),
        ("*b*", &["a*b", "ab.yml"]),
        ("d?/x.yml", &["d1/x.yml", "d2/x.yml"]),
        ("d[12]/x.yml", &["d1/x.yml", "d2/x.yml"]),
        ("d[^1]/*", &["d2/sub", "d2/x.yml", "d2/y.yaml"]),
        ("d1/*.yml", &["d1/x.yml"]),
        (
            "**",
            &[
                ".hidden.yml",
                "a*b",
                "a.yml",
                "ab.yml",
                "d1",
                "d2",
                "sp ace.yml",
                "x[1].yml",
                "ä.yml",
            ],
        ),
        ("d2/*", &["d2/sub", "d2/x.yml", "d2/y.yaml"]),
        ("d2//*.yml", &["d2/x.yml"]),
        ("./a*.yml", &["a.yml", "ab.yml"]),
        ("d1/../a.yml", &["d1/../a.yml"]),
        ("x[1].yml", &[]),
        ("x\\[1\\].yml", &["x[1].yml"]),
        ("x\\[1].yml", &["x[1].yml"]),
        ("?.yml", &["a.yml", "ä.yml"]),
        ("none/*.yml", &[]),
        ("a.yml/*.yml", &[]),
        ("a.yml/x", &[]),
        ("d1", &["d1"]),
        ("d1/", &["d1/"]),
        ("?1/", &[]),
        ("", &[]),
        ("sp*", &["sp ace.yml"]),
        ("[a-c]*.yml", &["a.yml", "ab.yml"]),
        ("[^a]*.yml", &[".hidden.yml", "sp ace.yml", "x[1].yml", "ä.yml"]),
        ("a\\*b", &["a*b"]),
        ("*.y?ml", &[]),
        ("d?/sub/z.yml", &["d2/sub/z.yml"]),
        ("d?/sub/*", &["d2/sub/z.yml"]),
    ];

    #[test]
    fn files_are_those_of_go() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir_all(folder.path().join("d1"))?;
        std::fs::create_dir_all(folder.path().join("d2/sub"))?;
        for name in [
            "a.yml",
            "ab.yml",
            ".hidden.yml",
            "d1/x.yml",
            "d2/x.yml",
            "d2/y.yaml",
            "sp ace.yml",
            "x[1].yml",
            "d2/sub/z.yml",
            "ä.yml",
            "a*b",
        ] {
            std::fs::write(folder.path().join(name), "")?;
        }
        for (text, expected) in FOUND {
            let pattern: Pattern = text.parse()?;
            assert_eq!(pattern.to_string(), text);
            let expected: Vec<PathBuf> =
                expected.iter().map(|name| folder.path().join(name)).collect();
            assert_eq!(expand(&[pattern], folder.path())?, expected, "{text}");
            let absolute: Pattern = folder.path().join(text).display().to_string().parse()?;
            if !text.is_empty() {
                assert_eq!(expand(&[absolute], Path::new("/none"))?, expected, "{text}");
            }
        }
        let patterns: [Pattern; 2] = ["ab.yml".parse()?, "a*.yml".parse()?];
        let both = expand(&patterns, folder.path())?;
        assert_eq!(both, [folder.path().join("ab.yml"), folder.path().join("a.yml")]);
        Ok(())
    }

    /// Go: `matchTests` in `path/filepath/match_test.go`.
    #[test]
    fn names_match_as_in_go() {
        for (text, name, expected) in [
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a☺b", true),
            ("a[^a]b", "a☺b", true),
            ("a???b", "a☺b", false),
            ("a[^a][^a][^a]b", "a☺b", false),
            ("[a-ζ]*", "α", true),
            ("*[a-ζ]", "A", false),
            ("[\\]a]", "]", true),
            ("[\\-]", "-", true),
            ("[x\\-]", "x", true),
            ("[x\\-]", "-", true),
            ("[x\\-]", "z", false),
            ("[\\-x]", "x", true),
            ("[\\-x]", "a", false),
            ("*x", "xxx", true),
        ] {
            let Ok(Part::Signs(signs)) = part(text) else { panic!("{text} is no pattern") };
            assert_eq!(matches(&signs, OsStr::new(name)), expected, "{text} {name}");
        }
        let stars = "a*".repeat(1000) + "b";
        let Ok(Part::Signs(signs)) = part(&stars) else { panic!("no pattern") };
        assert!(!matches(&signs, OsStr::new(&"a".repeat(255))));
        // One letter for each byte that is not UTF-8.
        let Ok(Part::Signs(signs)) = part("a??b") else { panic!("no pattern") };
        assert!(matches(&signs, OsStr::from_bytes(b"a\xff\xfeb")));
    }
}
