//! The page for browsers (`js/ui`), as built by the build script: compressed files in the program.
//!
//! The document has the empty path. All other files are below `ui/`. Their names have a hash of
//! their content, so that browsers may cache them forever.

#![deny(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page.
#[derive(Debug)]
pub struct File {
    /// Path without a leading slash; empty for the document.
    pub path: &'static str,
    /// Media type with the character set.
    pub content_type: &'static str,
    /// Entity tag in quotation marks (RFC 9110, section 8.8.3).
    pub etag: &'static str,
    /// The content, compressed with gzip.
    pub gzip: &'static [u8],
}

impl File {
    /// Returns whether the content at this path never changes.
    pub fn is_immutable(&self) -> bool {
        !self.path.is_empty()
    }
}

/// Returns all files of the page; empty if there is no page.
pub fn files() -> &'static [File] {
    FILES
}

/// Returns the file at a path, which has no leading slash.
pub fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// Returns the viewer, a document that shows files without a server, compressed with gzip. The
/// error is the reason why there is none.
pub fn viewer() -> Result<&'static [u8], &'static str> {
    VIEWER
}

/// Returns the reason why there is no page; `None` if there is one.
pub fn why_missing() -> Option<&'static str> {
    MISSING
}
