//! Tests that measure memory, bytes on disk or time, with the component of nodes.

mod alone;
mod beside;
