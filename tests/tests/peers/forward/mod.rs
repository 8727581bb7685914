//! Store and forward to foreign receivers: samples stored by a tidepool arrive there.

mod others;
mod receivers;
mod secure;
