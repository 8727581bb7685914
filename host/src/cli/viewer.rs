//! `tidepool viewer`: writes the viewer, a page that shows a data directory without a server.

use super::{CliError, Verdict};
use flate2::read::GzDecoder;
use std::io::{self, IsTerminal as _, Write as _};

pub fn run() -> Result<Verdict, CliError> {
    let packed = tidepool_page::viewer().map_err(CliError::NoViewer)?;
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        return Err(CliError::ViewerOnTerminal);
    }
    // The page is stored compressed to keep the program small.
    io::copy(&mut GzDecoder::new(packed), &mut out)
        .and_then(|_| out.flush())
        .map_err(CliError::Output)?;
    Ok(Verdict::Fine)
}
