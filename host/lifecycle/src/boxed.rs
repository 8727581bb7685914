//! Futures whose code stays in the crate that makes them.
//!
//! The compiler makes the code of an `async fn` where it is awaited, in every crate anew. What runs
//! long or stands for much code is returned as a [`BoxFuture`]: it is compiled once, and an edit of
//! the program does not compile the server again.

use std::pin::Pin;

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
