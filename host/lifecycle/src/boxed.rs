//! Futures that are compiled in the crate that makes them.
//!
//! The compiler generates the code of an `async fn` in every crate that awaits it. Functions with
//! much code return a [`BoxFuture`] instead: their code is generated once, and an edit of the
//! program does not compile the server again.

use std::pin::Pin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
