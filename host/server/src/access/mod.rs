//! Access control: TLS and credentials, read from files and read again when they change. No HTTP.

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

/// How often files are looked at.
const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// How long a password waits for its turn to be hashed.
const HASH_WAIT: Duration = Duration::from_secs(10);

/// The files. What none of them protects is open to everyone.
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
    /// Prometheus' web configuration: TLS, users for all endpoints, HTTP.
    pub web: Option<PathBuf>,
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

/// What a client wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Write samples.
    Write,
    /// Read whatever there is.
    Read,
    /// Delete and copy.
    Admin,
}

/// Why a client may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No credential, or a wrong one; these kinds are taken.
    Unauthorized(Kinds),
    /// Too many passwords wait to be hashed.
    Busy,
}

/// What is known of files that are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesState {
    /// The flag that names them.
    pub flag: &'static str,
    /// Whether their present content is in use.
    pub is_used: bool,
    /// When their certificate expires, in seconds since the epoch.
    pub expires: Option<i64>,
}

/// The content of the files.
pub struct Access {
    config: AccessConfig,
    tls: Option<Arc<Reloaded<Tls>>>,
    write: Option<Arc<Reloaded<Credentials>>>,
    read: Option<Arc<Reloaded<Credentials>>>,
    admin: Option<Arc<Reloaded<Credentials>>>,
    web: Option<Arc<Reloaded<Web>>>,
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
            web: None,
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
            // What the flags say decides what the file may say.
            let known = self.web.as_ref().filter(|_| *config == self.config);
            again(known, || web::open(path, config))
        });
        let web = web.transpose().map_err(AccessError::by_flag("--web-config-file"))?;
        let hashing = Arc::clone(&self.hashing);
        Ok(Access { config: config.clone(), tls, write, read, admin, web, hashing })
    }

    /// What makes connections secure, unless they come in the clear.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        let of_web =
            self.web().and_then(|web| web.tls.as_ref().map(|web| web.tls.acceptor.clone()));
        of_web.or_else(|| self.tls.as_ref().map(|tls| tls.current().acceptor.clone()))
    }

    /// The files that are read again, by the flag that names them, with when their certificate
    /// expires.
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

    /// Whether each client must show a certificate.
    pub fn asks_clients(&self) -> bool {
        let of_web = self.web().and_then(|web| web.tls.as_ref().map(|tls| tls.asks_clients));
        let by_flags = || self.config.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        of_web.unwrap_or_else(by_flags)
    }

    /// Whether connections may speak HTTP/2.
    pub fn allows_http2(&self) -> bool {
        self.web().is_none_or(|web| web.http2)
    }

    /// Whether every path needs a credential, even those that are open otherwise.
    pub fn guards_all(&self) -> bool {
        self.web().is_some_and(|web| web.users.is_some())
    }

    /// Headers that every answer gets.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in self.web().iter().flat_map(|web| &web.headers) {
            headers.insert(name, value.clone());
        }
    }

    fn web(&self) -> Option<Arc<Web>> {
        self.web.as_ref().map(|web| web.current())
    }

    /// Whether a credential allows an action. It is given as the value of HTTP's `Authorization`.
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
        // Hashing is meant to be slow.
        let hashed = tokio::task::spawn_blocking(move || credentials.verify_hashed(&attempt)).await;
        if hashed.unwrap_or(false) { Ok(()) } else { Err(unauthorized) }
    }

    fn credentials(&self, scope: Scope) -> Option<Arc<Credentials>> {
        let file = match scope {
            Scope::Write => &self.write,
            Scope::Read => &self.read,
            Scope::Admin => &self.admin,
        };
        let of_web = self.web().and_then(|web| web.users.clone());
        of_web.or_else(|| file.as_ref().map(|file| file.current()))
    }

    /// Whether an action needs a credential.
    pub fn asks_for_credentials(&self, scope: Scope) -> bool {
        self.credentials(scope).is_some()
    }

    /// Whether an action needs neither credentials nor TLS: then a page in the browser of a user
    /// who can connect could do it, too.
    pub fn is_open(&self, scope: Scope) -> bool {
        !self.asks_for_credentials(scope) && self.tls().is_none()
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
            tls.refresh(|_, _| Ok(()));
        }
        for credentials in [&self.write, &self.read, &self.admin].into_iter().flatten() {
            credentials.refresh(|_, _| Ok(()));
        }
        if let Some(web) = &self.web {
            web.refresh(Web::may_follow);
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
