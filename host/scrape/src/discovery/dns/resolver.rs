//! Asks DNS servers for SRV records.
//!
//! The first candidate name that exists is used, as upstream does (`lookupWithSearchPath`). The
//! result is empty only if each candidate is known not to exist; if a candidate got no answer, the
//! result is an error.

use super::message::{self, Answer, MessageError, Service, UDP_BYTES_MAX};
use super::resolv_conf::{self, ResolvConf};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// File with the system's settings of the DNS.
const RESOLV_CONF: &str = "/etc/resolv.conf";

const PORT: u16 = 53;

/// Reasons why a name could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum DnsError {
    /// The system's settings cannot be read.
    #[error("could not read {RESOLV_CONF}: {0}")]
    Settings(io::Error),
    /// The name is not valid.
    #[error("{name:?} cannot be looked up: {source}")]
    Name {
        /// Name as configured, before search domains.
        name: String,
        source: MessageError,
    },
    /// No server has an answer.
    #[error("could not resolve {name:?}: {last}")]
    NoAnswer {
        name: String,
        /// Reason why the last server asked gave no answer.
        last: String,
    },
}

/// DNS servers, and the settings for asking them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    conf: ResolvConf,
    servers: Vec<SocketAddr>,
}

impl Resolver {
    /// Creates a resolver with the system's settings. Without a settings file, the server on this
    /// machine is asked.
    pub fn of_system() -> Result<Resolver, DnsError> {
        match std::fs::read_to_string(RESOLV_CONF) {
            Ok(text) => Ok(Resolver::parse(&text, PORT)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Resolver::parse("", PORT)),
            Err(error) => Err(DnsError::Settings(error)),
        }
    }

    /// Creates a resolver from settings in the format of `/etc/resolv.conf`, with another port.
    pub fn parse(settings: &str, port: u16) -> Resolver {
        let conf = resolv_conf::parse(settings);
        let servers = conf.servers.iter().map(|address| SocketAddr::new(*address, port)).collect();
        Resolver { conf, servers }
    }

    /// Returns the services of a name; an empty list if the name does not exist.
    pub(super) async fn services(&self, name: &str) -> Result<Vec<Service>, DnsError> {
        let mut failed = None;
        for candidate in self.conf.names(name) {
            match self.ask_any(&candidate).await {
                Ok(Some(services)) => return Ok(services),
                Ok(None) => {}
                Err(Failure::Name(source)) => {
                    return Err(DnsError::Name { name: name.to_owned(), source });
                }
                // Another candidate name may exist.
                Err(Failure::NoAnswer(why)) => failed = Some(why),
            }
        }
        match failed {
            None => Ok(Vec::new()),
            Some(last) => Err(DnsError::NoAnswer { name: name.to_owned(), last }),
        }
    }

    /// Asks the servers in turn until one answers. Returns `None` if the name does not exist.
    async fn ask_any(&self, name: &str) -> Result<Option<Vec<Service>>, Failure> {
        // Checked first, so that an invalid name fails once and not at each server.
        message::question(0, name, None).map_err(Failure::Name)?;
        let mut last = String::new();
        for _ in 0..self.conf.attempts {
            for server in &self.servers {
                let asked = timeout(self.conf.timeout, ask(*server, name)).await;
                last = match asked {
                    Ok(Ok(Answer::Found(services))) => return Ok(Some(services)),
                    Ok(Ok(Answer::NoName)) => return Ok(None),
                    Ok(Ok(Answer::Truncated)) => format!("{server} cuts its answer off"),
                    Ok(Ok(Answer::Refused(code))) => format!("{server} answers with code {code}"),
                    Ok(Err(error)) => format!("{server}: {error}"),
                    Err(_) => {
                        format!("{server}: no answer within {} s", self.conf.timeout.as_secs())
                    }
                };
            }
        }
        Err(Failure::NoAnswer(last))
    }
}

enum Failure {
    Name(MessageError),
    NoAnswer(String),
}

/// Asks by UDP, and again by TCP if the answer does not fit into UDP.
async fn ask(server: SocketAddr, name: &str) -> io::Result<Answer> {
    let id = random();
    match ask_udp(server, name, id).await? {
        Answer::Truncated => ask_tcp(server, name, id).await,
        answer => Ok(answer),
    }
}

async fn ask_udp(server: SocketAddr, name: &str, id: u16) -> io::Result<Answer> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // The system chooses an unpredictable port, and delivers only packets of this server.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    let question = message::question(id, name, Some(UDP_BYTES_MAX)).map_err(io::Error::other)?;
    socket.send(&question).await?;
    let mut buffer = vec![0; usize::from(UDP_BYTES_MAX)];
    loop {
        let bytes = socket.recv(&mut buffer).await?;
        match message::answer(buffer.get(..bytes).unwrap_or_default(), id, name) {
            // The packet is forged, or answers an earlier question.
            Err(MessageError::Other) => {}
            answer => return answer.map_err(io::Error::other),
        }
    }
}

/// Asks by TCP, where the length of a message precedes it.
async fn ask_tcp(server: SocketAddr, name: &str, id: u16) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(server).await?;
    let question = message::question(id, name, None).map_err(io::Error::other)?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &question].concat()).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await?;
    message::answer(&answer, id, name).map_err(io::Error::other)
}

/// Returns an unpredictable number, made of the random seed of hash tables.
fn random() -> u16 {
    (RandomState::new().build_hasher().finish() & 0xffff) as u16
}
