//! The page that the build script made: it is whole, or its absence has a reason.

use flate2::read::GzDecoder;
use std::io::{self, Read};
use tidepool_page::{File, file, files, why_missing};

fn text(file: &File) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(file.gzip).read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn there_is_a_page_or_a_reason() {
    assert_eq!(files().is_empty(), why_missing().is_some());
    assert!(why_missing().is_none_or(|reason| !reason.is_empty()));
}

#[test]
fn the_document_names_files_that_are_there() -> io::Result<()> {
    let Some(document) = file("") else { return Ok(()) };
    assert_eq!(document.content_type, "text/html; charset=utf-8");
    assert!(!document.is_immutable());
    let text = text(document)?;
    let named: Vec<&str> =
        text.split('"').filter(|part| part.starts_with("ui/") && part.contains('-')).collect();
    for ending in [".js", ".css", ".txt"] {
        assert!(named.iter().any(|path| path.ends_with(ending)), "{ending}: {text}");
    }
    for path in named {
        let file = file(path).unwrap_or_else(|| panic!("{path} is missing"));
        assert!(file.is_immutable());
        let expected = match path.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            _ => "text/plain; charset=utf-8",
        };
        assert_eq!(file.content_type, expected, "{path}");
    }
    Ok(())
}

/// Views are modules that a script loads when they are opened.
#[test]
fn modules_name_modules_that_are_there() -> io::Result<()> {
    let mut modules = 0;
    for script in files().iter().filter(|file| file.path.ends_with(".js")) {
        for part in text(script)?.split('"').filter_map(|part| part.strip_prefix("./")) {
            if part.ends_with(".js") {
                assert!(file(&format!("ui/{part}")).is_some(), "{} names {part}", script.path);
                modules += 1;
            }
        }
    }
    assert!(files().is_empty() || modules > 0);
    Ok(())
}

#[test]
fn entity_tags_tell_files_apart() {
    let mut tags: Vec<&str> = files().iter().map(|file| file.etag).collect();
    assert!(tags.iter().all(|tag| tag.starts_with('"') && tag.ends_with('"') && tag.len() == 18));
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), files().len());
}

#[test]
fn other_paths_have_no_file() {
    for path in ["index.html", "ui/", "ui/app.js", "/", "../Cargo.toml"] {
        assert!(file(path).is_none(), "{path}");
    }
}
