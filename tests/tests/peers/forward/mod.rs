//! Store and forward to receivers of others: what one tidepool stores arrives there.

mod others;
mod receivers;
mod secure;
