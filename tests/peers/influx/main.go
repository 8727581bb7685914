// Influx writes points with InfluxDB's client for Go:
//
//	go-influx URL TOKEN MILLISECONDS
//
// The points end at the time given, and go through the client's batching, compressed.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: go-influx URL TOKEN MILLISECONDS")
	}
	now, err := strconv.ParseInt(os.Args[3], 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	options := influxdb2.DefaultOptions().SetUseGZip(true).SetBatchSize(100).SetPrecision(time.Millisecond)
	client := influxdb2.NewClientWithOptions(os.Args[1], os.Args[2], options)
	defer client.Close()
	batches := client.WriteAPI("edge", "node")
	go func() {
		for err := range batches.Errors() {
			log.Fatal(err)
		}
	}()
	for i := range int64(1000) {
		at := time.UnixMilli(now - i)
		batches.WritePoint(influxdb2.NewPoint(
			"pump", map[string]string{"site": "a, b=c"}, map[string]any{"rpm": i, "on": i%2 == 0}, at,
		))
	}
	batches.Flush()
	single := client.WriteAPIBlocking("edge", "node")
	if err := single.WriteRecord(context.Background(), "pump,site=one rpm=7i "+os.Args[3]); err != nil {
		log.Fatal(err)
	}
}
