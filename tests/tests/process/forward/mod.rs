//! Store and forward: what one tidepool stores arrives at other receivers, whatever happens to the
//! way there or to either end.

mod answers;
mod conformance;
mod faults;
mod lag;
mod loading;
mod outage;
mod receivers;
mod reload;
mod secure;
