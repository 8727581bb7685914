//! Errors of the HTTP client.

use std::time::Duration;
use tidepool_settings::FileError;

/// Reason why there is no answer, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection could not be made.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke during the exchange.
    #[error("{0}")]
    Connection(String),
    /// The answer is longer than the caller wants.
    #[error("the answer has more than {bytes_max} bytes")]
    TooLarge {
        /// Maximum size that the request allows.
        bytes_max: u64,
    },
    /// No request can be sent to the URL.
    #[error("{0}")]
    Url(String),
    /// The server redirects more often than a request follows.
    #[error("stopped after {0} redirects")]
    Redirects(usize),
    /// A redirect leads to a URL that no request can be sent to.
    #[error("a redirect to {0}, which is no http or https URL")]
    RedirectTarget(String),
    /// The configured name of the server's certificate is no name.
    #[error("tls_config.server_name {0:?} is neither a host's name nor an address")]
    ServerName(String),
    /// A text of the configuration is no certificate or key.
    #[error("{key}: {what}")]
    Pem {
        /// Key of the configuration with the text.
        key: &'static str,
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
    /// No token could be obtained.
    #[error("oauth2: {0}")]
    OAuth2(Box<ClientError>),
    /// The token endpoint returned no token.
    #[error("the token server at {url} answers {what}")]
    Token {
        /// URL of the token server, without parts that may be secret.
        url: String,
        what: String,
    },
}

impl ClientError {
    /// Makes an error of a failure and its causes, which hyper does not print.
    pub(crate) fn broken(error: &dyn std::error::Error) -> ClientError {
        let mut text = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            // Some errors print their cause themselves.
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            next = cause.source();
        }
        ClientError::Connection(text)
    }
}
