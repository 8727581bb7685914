//! Why there is no answer.

use std::time::Duration;
use tidepool_settings::FileError;

/// Why there is no answer, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection could not be made.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke.
    #[error("{0}")]
    Connection(String),
    /// The answer is longer than the caller wants.
    #[error("the answer has more than {bytes_max} bytes")]
    TooLarge {
        /// The bound.
        bytes_max: u64,
    },
    /// The URL is none that a request can be sent to.
    #[error("{0}")]
    Url(String),
    /// There are more redirects than a request follows.
    #[error("stopped after {0} redirects")]
    Redirects(usize),
    /// The server sends on to where no request can be sent.
    #[error("a redirect to {0}, which is no http or https URL")]
    RedirectTarget(String),
    /// The name that the server's certificate must have is none.
    #[error("tls_config.server_name {0:?} is neither a host's name nor an address")]
    ServerName(String),
    /// Text of the configuration is no certificate or key.
    #[error("{key}: {what}")]
    Pem {
        /// The key that has it.
        key: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// TLS cannot be used as it is configured.
    #[error("TLS: {0}")]
    Tls(String),
    /// The credentials have characters that no header may have.
    #[error("{0} has characters that cannot be sent in a header")]
    Credentials(&'static str),
    /// A file that the configuration names cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Files that the configuration names could not be read in time.
    #[error(
        "the files of credentials and certificates could not be read within {} s; is their file \
         system reachable?",
        .0.as_secs()
    )]
    SlowFiles(Duration),
    /// There is no token to send.
    #[error("oauth2: {0}")]
    OAuth2(Box<ClientError>),
    /// The token endpoint returned no token.
    #[error("the token server at {url} answers {what}")]
    Token {
        /// Where it was asked, without what may be secret.
        url: String,
        /// Its answer, in short.
        what: String,
    },
}

impl ClientError {
    /// A failure with its causes, which hyper keeps to itself otherwise.
    pub(crate) fn broken(error: &dyn std::error::Error) -> ClientError {
        let mut text = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            // Some print their cause themselves.
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            next = cause.source();
        }
        ClientError::Connection(text)
    }
}
