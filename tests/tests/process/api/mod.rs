//! The HTTP API: long answers come in pages, no request is answered during the replay, and browsers
//! get the headers they need.

mod duplicates;
mod hostile;
mod lists;
mod pages;
mod queries;
mod repeated;
mod threads;
mod tools;
