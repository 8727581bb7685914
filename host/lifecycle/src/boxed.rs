//! Futures that are compiled in the crate that makes them.
//!
//! The compiler generates the code of an `async fn` again in every crate that awaits it. Large
//! functions return a [`BoxFuture`] instead: their code is generated once, and an edit of the
//! program's crate does not compile the server's code again.

use std::pin::Pin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
