//! Store and forward: samples stored by one tidepool arrive at other receivers, whatever happens to
//! the connection or to either end.

mod answers;
mod conformance;
mod faults;
mod lag;
mod loading;
mod outage;
mod receivers;
mod reload;
mod secure;
