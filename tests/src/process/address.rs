//! Addresses for servers: unique free ones, and those in a log.

use super::{ProcessError, system};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports below those that the kernel gives to outgoing connections and to servers that ask for any.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Locks on the files of the ports that this process uses.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Returns a loopback address that nothing listens on, that no outgoing connection takes meanwhile,
/// and that no test of another process gets while this one runs.
///
/// For programs that cannot report their port, and for those that must return at the same one. Each
/// port has a file in the directory for temporary files, which is locked.
pub fn free_address() -> Result<SocketAddr, ProcessError> {
    let folder = std::env::temp_dir().join("tidepool-test-ports");
    std::fs::create_dir_all(&folder).map_err(system("making the folder of the ports"))?;
    // A lock belongs to the open file: this process does not get the same port twice either.
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut last_error = None;
    // Processes that begin at different ports seldom collide.
    let count = PORTS.end - PORTS.start;
    let first = (std::process::id().wrapping_mul(97) % u32::from(count)) as u16;
    for offset in 0..count {
        let port = PORTS.start + (first + offset) % count;
        match free_port(&folder.join(port.to_string()), port) {
            Ok((lock, address)) => {
                taken.push(lock);
                return Ok(address);
            }
            Err(error) => last_error = Some(error),
        }
    }
    let source = last_error.unwrap_or_else(|| io::Error::other("no port was tried"));
    Err(system("finding a free port")(source))
}

fn free_port(file: &std::path::Path, port: u16) -> io::Result<(File, SocketAddr)> {
    let lock = File::options().create(true).append(true).open(file)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok((lock, listener.local_addr()?))
}

/// Returns the address at which the server of a log listens, in any format of tidepool's log.
pub(super) fn logged(log: &str) -> Option<SocketAddr> {
    let line = |line: &str| {
        let rest = match line.split_once("listening address=") {
            Some((_, rest)) => rest,
            None => line.split_once(r#""message":"listening","address":""#)?.1,
        };
        let end = rest.find([' ', '"']).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    // A line without its end may contain half an address.
    log.split_inclusive('\n')
        .filter(|text| text.ends_with('\n'))
        .find_map(|text| line(text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_once() {
        let all: Vec<_> = (0..50).map(|_| free_address().expect("an address")).collect();
        let mut different = all.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn all_formats_of_a_log_tell_the_address() {
        let expected = Some(SocketAddr::from(([127, 0, 0, 1], 45647)));
        let logfmt =
            "a\ntime=x level=INFO source=tidepool msg=listening address=127.0.0.1:45647\nb\n";
        assert_eq!(logged(logfmt), expected);
        let plain = "a\n2026-01-02  INFO tidepool: listening address=127.0.0.1:45647\n";
        assert_eq!(logged(plain), expected);
        let json = r#"{"fields":{"message":"listening","address":"127.0.0.1:45647"},"target":"t"}"#;
        assert_eq!(logged(&format!("{json}\n")), expected);
        assert_eq!(logged(&logfmt[..60]), None);
        assert_eq!(logged("msg=listening address=127.0.0.1:45"), None);
    }
}
