package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	managermetrics "github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/metrics"
	"github.com/flyball-dev/flyball/multicluster/shard"
)

// unready announces a cluster that is not ready.
type unready struct{ announced chan struct{} }

func (unready) Name() string { return "unready" }

func (unready) Health() error { return nil }

func (u unready) Run(ctx context.Context, fleet multicluster.Fleet) error {
	if err := fleet.Join(multicluster.Announcement{Name: "eu", NotReady: "being provisioned"}); err != nil {
		return err
	}
	fleet.Synced()
	close(u.announced)
	<-ctx.Done()
	return nil
}

// The metrics of a fleet are registered with those of its local manager.
func ExampleNew() {
	registry, u := managermetrics.New(), unready{make(chan struct{})}
	local, err := manager.New(localapi.NewTest(quiet{}).RESTConfig(), manager.Options{Metrics: registry})
	if err != nil {
		fmt.Println(err)
		return
	}
	fleet, err := multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{u}})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry.MustRegister(metrics.New(fleet))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- local.Run(ctx) }()
	<-u.announced
	page := httptest.NewRecorder()
	registry.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "fleet_cluster_state{") || strings.HasPrefix(line, "fleet_clusters{") {
			fmt.Print(line)
		}
	}
	stop()
	fmt.Println("run:", <-done)
	// Output:
	// fleet_cluster_state{cluster="eu",fleet="fleet",state="Waiting"} 1
	// fleet_clusters{fleet="fleet",state="Draining"} 0
	// fleet_clusters{fleet="fleet",state="Gone"} 0
	// fleet_clusters{fleet="fleet",state="Joining"} 0
	// fleet_clusters{fleet="fleet",state="Live"} 0
	// fleet_clusters{fleet="fleet",state="Waiting"} 1
	// run: <nil>
}

// The metrics of the owner of a fleet.
func ExampleNewShard() {
	owner, err := shard.New(localapi.NewTest(quiet{}).RESTConfig(), shard.Options{Identity: "replica-0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	registry := managermetrics.New()
	registry.MustRegister(metrics.NewShard(owner))

	page := httptest.NewRecorder()
	registry.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
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

// quiet is used in place of a test in an example.
type quiet struct{ localapi.TB }

func (quiet) Helper()        {}
func (quiet) Cleanup(func()) {}
