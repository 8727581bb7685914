//! The server: accept loop, one file per endpoint, one table from errors to status codes.

mod admin;
mod auth;
mod body;
mod connection;
mod doors;
mod import;
mod metadata;
mod metrics;
mod otlp;
mod read;
mod replay;
mod reply;
mod routes;
mod server;
mod status;
mod stream;
mod write;

pub use server::{Server, ServerConfig};
