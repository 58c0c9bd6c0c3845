package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/multicluster/shard"
	shardmetrics "github.com/flyball-dev/flyball/multicluster/shard/metrics"
)

func ExampleNew() {
	local, err := localapi.New(localapi.Options{})
	if err != nil {
		panic(err)
	}
	defer local.Close()
	owner, err := shard.New(local.RESTConfig(), shard.Options{Identity: "replica-0"})
	if err != nil {
		panic(err)
	}
	registry := metrics.New()
	registry.Registerer().MustRegister(shardmetrics.New(owner))

	w := httptest.NewRecorder()
	registry.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "fleet_shard_member") || strings.HasPrefix(line, "fleet_shard_tenures") {
			fmt.Print(line)
		}
	}
	// Output:
	// fleet_shard_member 0
	// fleet_shard_tenures_total{end="handed over"} 0
	// fleet_shard_tenures_total{end="lost"} 0
	// fleet_shard_tenures_total{end="released"} 0
}
