//! Scraping against a store in memory: single scrapes, cycles under a paused clock, and targets
//! over loopback HTTP that misbehave.

mod append;
mod cycle;
mod histograms;
mod http;
mod places;
mod pool;
mod refused;
mod reload;
mod store;
mod trial;
