//! The HTTP API: whatever is long comes in pages; while the log is replayed nothing is answered;
//! browsers are content.

mod duplicates;
mod hostile;
mod lists;
mod pages;
mod queries;
mod repeated;
mod threads;
mod tools;
