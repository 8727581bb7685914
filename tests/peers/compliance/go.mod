module tidepool.test/peers/compliance

go 1.25.0

tool github.com/prometheus/complicance/remotewrite2

require github.com/prometheus/complicance/remotewrite2 v0.0.0-20260806071727-67b8327a2e93 // indirect

// The go.mod of the suite gives it a name that is not where it lies.
replace github.com/prometheus/complicance/remotewrite2 => github.com/prometheus/compliance/remotewrite/receiver v0.0.0-20260806071727-67b8327a2e93
