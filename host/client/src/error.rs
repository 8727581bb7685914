//! Errors of the HTTP client.

use std::time::Duration;
use tidepool_settings::FileError;

/// Reason why there is no response, or only a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection could not be established.
    #[error("{0}")]
    Unreachable(String),
    /// The connection broke during the exchange.
    #[error("{0}")]
    Connection(String),
    /// The response is larger than the request allows.
    #[error("the answer has more than {bytes_max} bytes")]
    TooLarge {
        /// Maximum size that the request allows.
        bytes_max: u64,
    },
    /// The URL is not valid for a request.
    #[error("{0}")]
    Url(String),
    /// The number of redirects exceeds the maximum.
    #[error("stopped after {0} redirects")]
    Redirects(usize),
    /// A redirect leads to a URL that is not http or https.
    #[error("a redirect to {0}, which is no http or https URL")]
    RedirectTarget(String),
    /// The configured name of the server's certificate is not valid.
    #[error("tls_config.server_name {0:?} is neither a host's name nor an address")]
    ServerName(String),
    /// A text of the configuration is not a certificate or key.
    #[error("{key}: {what}")]
    Pem {
        /// Key of the configuration with the text.
        key: &'static str,
        what: String,
    },
    /// The TLS settings cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The credentials have characters that are not allowed in a header.
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
    /// Creates an error from a failure and its causes, which hyper does not print.
    pub(crate) fn broken(error: &dyn std::error::Error) -> ClientError {
        let mut text = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            // Some errors already include the text of their cause.
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            next = cause.source();
        }
        ClientError::Connection(text)
    }
}
