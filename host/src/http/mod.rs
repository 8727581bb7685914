//! The server: accept loop, one file per endpoint, one table from errors to status codes.

mod admin;
mod body;
mod metadata;
mod metrics;
mod read;
mod replay;
mod reply;
mod routes;
mod server;
mod status;
mod write;

pub use server::{Server, ServerConfig};
