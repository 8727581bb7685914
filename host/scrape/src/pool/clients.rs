//! The HTTP clients of a job: one for addresses, and one per Unix socket, so that a connection to
//! one socket is never used for another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tidepool_client::{Client, ClientError, HttpClientConfig};

pub struct Clients {
    client: Client,
    by_socket: BTreeMap<String, Client>,
}

impl Clients {
    pub fn new(config: &HttpClientConfig) -> Result<Clients, ClientError> {
        Ok(Clients { client: Client::open(config)?, by_socket: BTreeMap::new() })
    }

    /// Returns the client of a target; creates the client of a Unix socket at its first use.
    pub fn of(
        &mut self,
        config: &HttpClientConfig,
        unix_socket: Option<&str>,
    ) -> Result<Client, ClientError> {
        let Some(socket) = unix_socket else { return Ok(self.client.clone()) };
        if let Some(client) = self.by_socket.get(socket) {
            return Ok(client.clone());
        }
        let client = Client::open_unix(config, Path::new(socket))?;
        self.by_socket.insert(socket.to_owned(), client.clone());
        Ok(client)
    }

    /// Drops the clients of sockets that no target uses any more.
    pub fn keep_sockets<'a>(&mut self, used: impl Iterator<Item = &'a str>) {
        let used: BTreeSet<&str> = used.collect();
        self.by_socket.retain(|socket, _| used.contains(socket.as_str()));
    }
}
