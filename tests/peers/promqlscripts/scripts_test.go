// Package promqlscripts runs Prometheus' own test scripts of PromQL against a tidepool server: its
// harness loads series by remote write 2.0 and asks the HTTP API, in the format that carries native
// histograms whole.
//
//	TIDEPOOL_BIN=…/tidepool promql-scripts -test.v
package promqlscripts

import (
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

func TestScripts(t *testing.T) {
	promqltest.RunBuiltinTestsWithStorage(t, engine{}, func(t testing.TB) storage.Storage {
		return start(t)
	})
}
