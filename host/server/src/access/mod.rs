//! Access control without HTTP: TLS and credentials, read from files and reloaded when they change.

mod credentials;
mod error;
mod host;
mod origin;
mod reload;
mod tls;
mod web;

pub use credentials::{Credentials, Kinds};
pub use error::AccessError;
pub use host::{AllowedHost, is_known as is_known_host, machine_name, name_of as host_name_of};
pub use origin::CorsOrigin;

use credentials::{Attempt, Verified};
use hyper::header::HeaderMap;
use reload::Reloaded;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidepool_lifecycle::shutdown::Shutdown;
use tls::Tls;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use web::Web;

/// Interval at which files are checked for changes.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// Maximum time that a password waits until it can be hashed.
const HASH_WAIT: Duration = Duration::from_secs(10);

/// The files of access control. Access that no file restricts is open to everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// Certificate chain and private key, in PEM.
    pub tls: Option<TlsFiles>,
    /// Credentials of the write endpoints.
    pub write_credentials: Option<PathBuf>,
    /// Credentials of the read endpoints and of `/metrics`.
    pub read_credentials: Option<PathBuf>,
    /// Credentials of the admin API and of reloads.
    pub admin_credentials: Option<PathBuf>,
    /// Prometheus' web configuration: TLS, users for all endpoints, HTTP settings.
    pub web: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain, the server's own first.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// CA certificates that must have signed a client's certificate; `None` asks for none.
    pub client_ca: Option<PathBuf>,
}

/// The kinds of access that a credential may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Write,
    /// Queries, remote reads, metadata and metrics.
    Read,
    /// Deletion, snapshots and reloads of the configuration.
    Admin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The credential is missing or wrong. Has the kinds of credentials that are accepted.
    Unauthorized(Kinds),
    /// Too many passwords are waiting to be hashed.
    Busy,
}

/// State of a reloaded file, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesState {
    /// Flag that names the file.
    pub flag: &'static str,
    /// Whether the current content of the file is in use.
    pub is_used: bool,
    /// Expiry of the certificate in seconds since the epoch, if the file has one.
    pub expires: Option<i64>,
}

/// The loaded files, and a lock that serializes the hashing of passwords.
pub struct Access {
    config: AccessConfig,
    tls: Option<Arc<Reloaded<Tls>>>,
    write: Option<Arc<Reloaded<Credentials>>>,
    read: Option<Arc<Reloaded<Credentials>>>,
    admin: Option<Arc<Reloaded<Credentials>>>,
    web: Option<Arc<Reloaded<Web>>>,
    /// Allows one hash at a time, so that wrong passwords cannot occupy all cores.
    hashing: Arc<Semaphore>,
}

impl Access {
    pub fn open(config: &AccessConfig) -> Result<Access, AccessError> {
        let hashing = Arc::new(Semaphore::new(1));
        let none = Access {
            config: AccessConfig::default(),
            tls: None,
            write: None,
            read: None,
            admin: None,
            web: None,
            hashing,
        };
        none.reopen(config)
    }

    /// Loads a new configuration. Files of both are read again, verified passwords stay verified.
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
        let credentials = |flag, file: fn(&AccessConfig) -> &Option<PathBuf>, known: &Known| {
            let is_same = file(config) == file(&self.config);
            let open =
                |path: &Path| again(known.as_ref().filter(|_| is_same), || credentials::open(path));
            let opened = file(config).as_deref().map(open).transpose();
            opened.map_err(AccessError::by_flag(flag))
        };
        let write = credentials("--write-credentials-file", |c| &c.write_credentials, &self.write)?;
        let read = credentials("--read-credentials-file", |c| &c.read_credentials, &self.read)?;
        let admin = credentials("--admin-credentials-file", |c| &c.admin_credentials, &self.admin)?;
        let web = config.web.as_deref().map(|path| {
            // The flags limit what the file may contain, so it is checked again if they changed.
            let known = self.web.as_ref().filter(|_| *config == self.config);
            again(known, || web::open(path, config))
        });
        let web = web.transpose().map_err(AccessError::by_flag("--web-config-file"))?;
        // Shared with the old configuration, whose requests may still wait for their turn.
        let hashing = Arc::clone(&self.hashing);
        Ok(Access { config: config.clone(), tls, write, read, admin, web, hashing })
    }

    /// Acceptor of TLS connections; `None` without TLS.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        let of_web =
            self.web().and_then(|web| web.tls.as_ref().map(|web| web.tls.acceptor.clone()));
        of_web.or_else(|| self.tls.as_ref().map(|tls| tls.current().acceptor.clone()))
    }

    /// State of all reloaded files.
    pub fn files(&self) -> Vec<FilesState> {
        let mut all = Vec::new();
        let mut add =
            |flag, is_used: bool, expires| all.push(FilesState { flag, is_used, expires });
        if let Some(tls) = &self.tls {
            add("tls-cert-file", tls.is_used(), tls.current().expires);
        }
        for (flag, file) in [
            ("write-credentials-file", &self.write),
            ("read-credentials-file", &self.read),
            ("admin-credentials-file", &self.admin),
        ] {
            if let Some(file) = file {
                add(flag, file.is_used(), None);
            }
        }
        if let Some(web) = &self.web {
            let expires = web.current().tls.as_ref().and_then(|web| web.tls.expires);
            add("web-config-file", web.is_used(), expires);
        }
        all
    }

    /// Returns whether each client must present a certificate.
    pub fn asks_clients(&self) -> bool {
        let of_web = self.web().and_then(|web| web.tls.as_ref().map(|tls| tls.asks_clients));
        let by_flags = || self.config.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        of_web.unwrap_or_else(by_flags)
    }

    /// Returns whether connections may use HTTP/2.
    pub fn allows_http2(&self) -> bool {
        self.web().is_none_or(|web| web.http2)
    }

    /// Returns whether every path needs a credential, even paths that are usually public.
    pub fn guards_all(&self) -> bool {
        self.web().is_some_and(|web| web.users.is_some())
    }

    /// Adds the headers that the web configuration sets on every response.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in self.web().iter().flat_map(|web| &web.headers) {
            headers.insert(name, value.clone());
        }
    }

    fn web(&self) -> Option<Arc<Web>> {
        self.web.as_ref().map(|web| web.current())
    }

    /// Checks a credential, given as the value of `Authorization`, for a kind of access.
    pub async fn check(&self, scope: Scope, credential: Option<&[u8]>) -> Result<(), Denied> {
        let Some(credentials) = self.credentials(scope) else { return Ok(()) };
        let unauthorized = Denied::Unauthorized(credentials.kinds());
        let attempt = credential.and_then(Attempt::read).ok_or(unauthorized)?;
        match credentials.verify(&attempt) {
            Verified::Yes => return Ok(()),
            Verified::No => return Err(unauthorized),
            Verified::NeedsHash => {}
        }
        let turn = tokio::time::timeout(HASH_WAIT, self.hashing.acquire()).await;
        let _turn = turn.map_err(|_| Denied::Busy)?;
        // Hashing takes tens of milliseconds and would block the network thread.
        let hashed = tokio::task::spawn_blocking(move || credentials.verify_hashed(&attempt)).await;
        // A panic in bcrypt counts as a wrong password.
        if hashed.unwrap_or(false) { Ok(()) } else { Err(unauthorized) }
    }

    fn credentials(&self, scope: Scope) -> Option<Arc<Credentials>> {
        let file = match scope {
            Scope::Write => &self.write,
            Scope::Read => &self.read,
            Scope::Admin => &self.admin,
        };
        // Users of the web configuration replace the credentials files; both are an error.
        let of_web = self.web().and_then(|web| web.users.clone());
        of_web.or_else(|| file.as_ref().map(|file| file.current()))
    }

    /// Returns whether a kind of access needs a credential.
    pub fn asks_for_credentials(&self, scope: Scope) -> bool {
        self.credentials(scope).is_some()
    }

    /// Returns whether access needs neither credentials nor TLS, so that any page in a browser can
    /// make such requests.
    pub fn is_open(&self, scope: Scope) -> bool {
        !self.asks_for_credentials(scope) && self.tls().is_none()
    }

    /// Checks the files in use for changes, every few seconds until the stop signal.
    pub async fn watch(current: impl Fn() -> Arc<Access>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.wait() => return,
                () = tokio::time::sleep(RELOAD_EVERY) => {}
            }
            // Looked up each time: a reload may have replaced the files since the last check.
            let access = current();
            // A refresh that panics has changed nothing, so its result is ignored.
            let _ = tokio::task::spawn_blocking(move || access.refresh()).await;
        }
    }

    fn refresh(&self) {
        if let Some(tls) = &self.tls {
            tls.refresh(|_, _| Ok(()));
        }
        for credentials in [&self.write, &self.read, &self.admin].into_iter().flatten() {
            credentials.refresh(|_, _| Ok(()));
        }
        if let Some(web) = &self.web {
            // Unlike a certificate, a half-written configuration can be valid but unprotected.
            web.refresh(Web::may_follow);
        }
    }
}

/// Reads loaded files again, or loads them for the first time.
fn again<T>(
    known: Option<&Arc<Reloaded<T>>>,
    open: impl FnOnce() -> Result<Reloaded<T>, AccessError>,
) -> Result<Arc<Reloaded<T>>, AccessError> {
    match known {
        None => open().map(Arc::new),
        Some(known) => known.read_again().map(|()| Arc::clone(known)),
    }
}
