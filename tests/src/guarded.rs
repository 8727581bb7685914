//! A tidepool that demands credentials, and TLS if asked to; and curl's answers from it.
//!
//! The functions here are assertions: they panic if the server under test fails.

use crate::authority::Authority;
use crate::process::{Launch, Server};
use crate::tidepool::Config;
use crate::wait;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Timeout of every wait here.
pub const TIMEOUT: Duration = Duration::from_secs(60);
const WRITERS: &str = "# who may write\nbasic writer:$HASH\nbearer wr1te-token\n";
const READERS: &str = "basic reader:re4d:secret\nbearer re4d-token\n";
const ADMINS: &str = "bearer adm1n-token\n";

/// A directory with files of secrets and certificates, and a tidepool that uses them.
#[derive(Debug)]
pub struct Node {
    directory: TempDir,
    pub flags: Vec<String>,
}

impl Node {
    /// Makes a node that is open to all, with an empty directory.
    pub fn open_to_all() -> Node {
        Node { directory: tempfile::tempdir().expect("a temporary directory"), flags: Vec::new() }
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file in the directory and returns its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).expect("the file can be written");
        self.path(name).display().to_string()
    }

    pub fn flag(mut self, flag: &str, value: &str) -> Node {
        self.flags.push(format!("{flag}={value}"));
        self
    }

    /// Adds credentials of all three kinds.
    pub fn with_credentials(self) -> Node {
        let writers = self.file("writers", &WRITERS.replace("$HASH", &write_hash()));
        let (readers, admins) = (self.file("readers", READERS), self.file("admins", ADMINS));
        self.flag("--write-credentials-file", &writers)
            .flag("--read-credentials-file", &readers)
            .flag("--admin-credentials-file", &admins)
    }

    /// Adds a certificate that this authority issued.
    pub fn with_tls(self, authority: &Authority) -> Node {
        let (certificate, key) = authority.issue("127.0.0.1");
        let certificate = self.file("server.crt", &certificate);
        let key = self.file("server.key", &key);
        self.flag("--tls-cert-file", &certificate).flag("--tls-key-file", &key)
    }

    /// Returns the launch of the server.
    pub fn launch(&self) -> Launch {
        let config = Config::new(self.directory.path());
        let config = self.flags.iter().fold(config, |config, flag| config.flag(flag));
        config.launch().expect("a free port")
    }

    pub fn start(&self) -> Server {
        self.launch().start().expect("tidepool starts")
    }

    /// Starts a server that accepts only TLS.
    pub fn start_secure(&self, authority: &str) -> Server {
        let server = self.launch().spawn().expect("tidepool starts");
        let is_ready = || {
            (curl(&server, "https", "/-/ready", &["--cacert", authority]).0 == 200).then_some(())
        };
        wait::until("readiness", TIMEOUT, is_ready)
            .unwrap_or_else(|e| panic!("{e}\n{}", server.log()));
        server
    }
}

/// Returns a hash as `htpasswd -nBC 10` prints it.
fn write_hash() -> String {
    let hash = bcrypt::hash_with_result("wr1te-secret", 10).expect("a password that can be hashed");
    hash.format_for_version(bcrypt::Version::TwoY)
}

/// Returns status and head that curl gets; without an answer 0 and curl's error.
pub fn curl(server: &Server, scheme: &str, path: &str, arguments: &[&str]) -> (u16, String) {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20", "--dump-header", "-"])
        .args(["--output", "/dev/null"])
        .args(arguments)
        .arg(format!("{scheme}://{}{path}", server.address()))
        .output()
        .expect("curl is installed");
    let head = String::from_utf8_lossy(&output.stdout).into_owned();
    // After `100 Continue` there is another head. With TLS, curl asks for HTTP/2.
    let last = head.rsplit("HTTP/").next().unwrap_or_default();
    let status = last.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    if status == 0 {
        return (0, String::from_utf8_lossy(&output.stderr).into_owned());
    }
    (status, last.to_lowercase())
}
