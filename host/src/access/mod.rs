//! Who may connect and ask: TLS and credentials, read from files and read again when they change.
//! No HTTP.

mod credentials;
mod error;
mod host;
mod origin;
mod reload;
mod tls;

pub use credentials::{Credentials, Kinds};
pub use error::AccessError;
pub use host::{AllowedHost, is_known as is_known_host, machine_name};
pub use origin::CorsOrigin;

use crate::shutdown::Shutdown;
use credentials::{Attempt, Verified};
use reload::Reloaded;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// How often files are looked at.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// How long a password waits for its turn to be hashed.
const HASH_WAIT: Duration = Duration::from_secs(10);

/// The files. What has none is open to everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    config: AccessConfig,
    tls: Option<Arc<Reloaded<TlsAcceptor>>>,
    write: Option<Arc<Reloaded<Credentials>>>,
    read: Option<Arc<Reloaded<Credentials>>>,
    admin: Option<Arc<Reloaded<Credentials>>>,
    /// One password is hashed at a time, so that wrong ones cannot take all cores.
    hashing: Arc<Semaphore>,
}

impl Access {
    /// Reads the files.
    pub fn open(config: &AccessConfig) -> Result<Access, AccessError> {
        let hashing = Arc::new(Semaphore::new(1));
        let none = Access {
            config: AccessConfig::default(),
            tls: None,
            write: None,
            read: None,
            admin: None,
            hashing,
        };
        none.reopen(config)
    }

    /// Reads the files that another configuration names, and this one goes on as it is. Files that
    /// both name are read again, and passwords that were verified stay known.
    pub fn reopen(&self, config: &AccessConfig) -> Result<Access, AccessError> {
        let tls = match &config.tls {
            None => None,
            Some(files) => {
                let known = self.tls.as_ref().filter(|_| self.config.tls.as_ref() == Some(files));
                let opened = again(known, || tls::open(files));
                Some(opened.map_err(AccessError::by_tls_flag(files))?)
            }
        };
        type Known = Option<Arc<Reloaded<Credentials>>>;
        let credentials = |flag, file: &Option<PathBuf>, known: &Known| {
            let open = |file: &Path| {
                let known = known.as_ref().filter(|known| known.files() == [file]);
                again(known, || credentials::open(file))
            };
            let opened = file.as_deref().map(open).transpose();
            opened.map_err(AccessError::by_flag(flag))
        };
        Ok(Access {
            config: config.clone(),
            tls,
            write: credentials("--write-credentials-file", &config.write_credentials, &self.write)?,
            read: credentials("--read-credentials-file", &config.read_credentials, &self.read)?,
            admin: credentials("--admin-credentials-file", &config.admin_credentials, &self.admin)?,
            hashing: Arc::clone(&self.hashing),
        })
    }

    /// What makes connections secure, unless they come in the clear.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|tls| (*tls.current()).clone())
    }

    /// Whether a credential lets somebody do something. It is given as the value of HTTP's
    /// `Authorization`.
    pub async fn check(&self, scope: Scope, credential: Option<&[u8]>) -> Result<(), Denied> {
        let Some(file) = self.credentials(scope) else { return Ok(()) };
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

    fn credentials(&self, scope: Scope) -> Option<&Reloaded<Credentials>> {
        let file = match scope {
            Scope::Write => &self.write,
            Scope::Read => &self.read,
            Scope::Admin => &self.admin,
        };
        file.as_deref()
    }

    /// Whether what somebody wants to do needs nothing that a stranger cannot have: then a page in
    /// the browser of somebody who can connect could do it, too.
    pub fn is_open(&self, scope: Scope) -> bool {
        self.credentials(scope).is_none() && self.tls.is_none()
    }

    /// Looks at the files that are in use every few seconds until the stop signal.
    pub async fn watch(current: impl Fn() -> Arc<Access>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(RELOAD_EVERY) => {}
            }
            let access = current();
            // A refresh that panics has changed nothing.
            let _ = tokio::task::spawn_blocking(move || access.refresh()).await;
        }
    }

    /// Looks at the files now.
    fn refresh(&self) {
        if let Some(tls) = &self.tls {
            tls.refresh();
        }
        for credentials in [&self.write, &self.read, &self.admin].into_iter().flatten() {
            credentials.refresh();
        }
    }
}

/// What is known of files, brought up to date, or what they hold at the first reading.
fn again<T>(
    known: Option<&Arc<Reloaded<T>>>,
    open: impl FnOnce() -> Result<Reloaded<T>, AccessError>,
) -> Result<Arc<Reloaded<T>>, AccessError> {
    match known {
        None => open().map(Arc::new),
        Some(known) => known.read_again().map(|()| Arc::clone(known)),
    }
}
