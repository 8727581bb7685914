//! A server whose answers a test decides, on a port of its own.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto::ring::default_provider};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub method: Method,
    pub uri: Uri,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// All requests that came, in their order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<ReceivedRequest>>>);

impl Log {
    pub fn all(&self) -> Vec<ReceivedRequest> {
        self.0.lock().expect("a lock").clone()
    }

    pub fn last(&self) -> ReceivedRequest {
        self.all().pop().expect("a request")
    }
}

/// A running server, which ends with its runtime.
pub struct Server {
    pub address: SocketAddr,
    pub log: Log,
}

type Answer = Response<Full<Bytes>>;

/// An answer of a status with headers and a text.
pub fn answer(status: u16, headers: &[(&str, &str)], text: &str) -> Answer {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Full::from(text.to_owned())).expect("an answer")
}

impl Server {
    pub async fn start(
        answer: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Server {
        Server::with_tls(None, answer).await
    }

    pub async fn with_tls(
        tls: Option<ServerConfig>,
        answer: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (log, answer) = (Log::default(), Arc::new(answer));
        let server = Server { address, log: log.clone() };
        let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer, acceptor) = (log.clone(), answer.clone(), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, false, log, answer).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                            serve(stream, is_http2, log, answer).await;
                        }
                    }
                });
            }
        });
        server
    }

    /// Starts a server that listens at a path.
    pub fn on_unix_socket(
        listener: UnixListener,
        answer: impl Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
    ) -> Log {
        let (log, answer) = (Log::default(), Arc::new(answer));
        let seen = log.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, false, log.clone(), answer.clone()));
            }
        });
        seen
    }
}

async fn serve<S, A>(stream: S, is_http2: bool, log: Log, answer: Arc<A>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(&ReceivedRequest) -> Answer + Send + Sync + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (log, answer) = (log.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let (method, uri, version) = (parts.method, parts.uri, parts.version);
            let seen = ReceivedRequest { method, uri, version, headers: parts.headers, body };
            log.0.lock().expect("a lock").push(seen.clone());
            Ok::<_, Infallible>(answer(&seen))
        }
    });
    let stream = TokioIo::new(stream);
    // A client may go at any time.
    let _ = match is_http2 {
        false => hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await,
        true => {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            builder.serve_connection(stream, service).await
        }
    };
}

/// A certificate authority for one test.
pub struct Authority {
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new([]).expect("no names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, "authority");
        let certificate = parameters.self_signed(&key).expect("a certificate").pem();
        Authority { certificate, issuer: Issuer::new(parameters, key) }
    }

    /// Makes a certificate for a name, and its key.
    pub fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new([name.to_owned()]).expect("a name");
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// Returns settings with HTTP/2 that may ask for certificates of this authority's clients.
    pub fn server(&self, name: &str, asks_for_certificates: bool) -> ServerConfig {
        let (certificate, key) = self.issue(name);
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        let mut roots = RootCertStore::empty();
        roots.add(der(&self.certificate)).expect("a certificate");
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let builder = match asks_for_certificates {
            false => builder.with_no_client_auth(),
            true => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let mut config = builder.with_single_cert(vec![der(&certificate)], key).expect("a pair");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}
