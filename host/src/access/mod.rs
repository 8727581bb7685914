//! Who may connect and ask: TLS and credentials, read from files and read again when they change.
//! No HTTP.

mod credentials;
mod error;
mod origin;
mod reload;
mod tls;

pub use credentials::{Credentials, Kinds};
pub use error::AccessError;
pub use origin::CorsOrigin;

use crate::shutdown::Shutdown;
use credentials::{Attempt, Verified};
use reload::Reloaded;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// How often files are looked at.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// How long a password waits for its turn to be hashed.
const HASH_WAIT: Duration = Duration::from_secs(10);

/// The files. What has none is open to everyone.
#[derive(Clone, Debug, Default)]
pub struct AccessConfig {
    /// Certificate chain and private key, in PEM.
    pub tls: Option<TlsFiles>,
    /// Who may write.
    pub write_credentials: Option<PathBuf>,
    /// Who may read.
    pub read_credentials: Option<PathBuf>,
    /// Who may delete and copy.
    pub admin_credentials: Option<PathBuf>,
}

/// What TLS needs, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain, the server's own first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who signs the certificates that clients must show; `None` asks for none.
    pub client_ca: Option<PathBuf>,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Write samples.
    Write,
    /// Read whatever there is.
    Read,
    /// Delete and copy.
    Admin,
}

/// Why somebody may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No credential, or a wrong one; these kinds are taken.
    Unauthorized(Kinds),
    /// Too many passwords wait to be hashed.
    Busy,
}

/// What the files say.
pub struct Access {
    tls: Option<Reloaded<TlsAcceptor>>,
    write: Option<Reloaded<Credentials>>,
    read: Option<Reloaded<Credentials>>,
    admin: Option<Reloaded<Credentials>>,
    /// One password is hashed at a time, so that wrong ones cannot take all cores.
    hashing: Semaphore,
}

impl Access {
    /// Reads the files.
    pub fn open(config: &AccessConfig) -> Result<Access, AccessError> {
        let open_tls = |files| tls::open(files).map_err(AccessError::by_tls_flag(files));
        let tls = config.tls.as_ref().map(open_tls).transpose()?;
        let credentials = |flag, file: &Option<PathBuf>| {
            let opened = file.as_deref().map(credentials::open).transpose();
            opened.map_err(AccessError::by_flag(flag))
        };
        Ok(Access {
            tls,
            write: credentials("--write-credentials-file", &config.write_credentials)?,
            read: credentials("--read-credentials-file", &config.read_credentials)?,
            admin: credentials("--admin-credentials-file", &config.admin_credentials)?,
            hashing: Semaphore::new(1),
        })
    }

    /// What makes connections secure, unless they come in the clear.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|tls| (*tls.current()).clone())
    }

    /// Whether a credential lets somebody do something. It is given as the value of HTTP's
    /// `Authorization`.
    pub async fn check(&self, scope: Scope, credential: Option<&[u8]>) -> Result<(), Denied> {
        let file = match scope {
            Scope::Write => &self.write,
            Scope::Read => &self.read,
            Scope::Admin => &self.admin,
        };
        let Some(file) = file else { return Ok(()) };
        let credentials = file.current();
        let unauthorized = Denied::Unauthorized(credentials.kinds());
        let attempt = credential.and_then(Attempt::read).ok_or(unauthorized)?;
        match credentials.verify(&attempt) {
            Verified::Yes => return Ok(()),
            Verified::No => return Err(unauthorized),
            Verified::NeedsHash => {}
        }
        let turn = tokio::time::timeout(HASH_WAIT, self.hashing.acquire()).await;
        let _turn = turn.map_err(|_| Denied::Busy)?;
        // Hashing is meant to be slow.
        let hashed = tokio::task::spawn_blocking(move || credentials.verify_hashed(&attempt)).await;
        if hashed.unwrap_or(false) { Ok(()) } else { Err(unauthorized) }
    }

    /// Looks at the files every few seconds until the stop signal.
    pub async fn watch(self: Arc<Access>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(RELOAD_EVERY) => {}
            }
            let access = Arc::clone(&self);
            // A refresh that panics has changed nothing.
            let _ = tokio::task::spawn_blocking(move || access.refresh()).await;
        }
    }

    /// Looks at the files now.
    pub fn refresh(&self) {
        if let Some(tls) = &self.tls {
            tls.refresh();
        }
        for credentials in [&self.write, &self.read, &self.admin].into_iter().flatten() {
            credentials.refresh();
        }
    }
}
