//! Store and forward to foreign receivers: samples stored by a tidepool arrive there.

mod other_receivers;
mod receivers;
mod secure;
