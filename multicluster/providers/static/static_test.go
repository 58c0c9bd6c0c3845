package static_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/fleettest"
	"github.com/flyball-dev/flyball/multicluster/providers/static"
)

func ExampleNew() {
	provider := static.New(
		multicluster.Announcement{Name: "eu", Config: &rest.Config{Host: "https://eu.example"}},
		multicluster.Announcement{Name: "us", Config: &rest.Config{Host: "https://us.example"}},
	)
	fleet := &fleettest.Fleet{} // takes the place of a multicluster.Manager's
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(provider.Run(ctx, fleet), fleet.Names())
	// Output: <nil> eu us
}

func TestHealthListsRejectedClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := &fleettest.Fleet{}
		fleet.Take("b")
		p := static.New(multicluster.Announcement{Name: "a"}, multicluster.Announcement{Name: "b"},
			multicluster.Announcement{Name: "a"})
		go func() { _ = p.Run(t.Context(), fleet) }()
		synctest.Wait()
		if log := fleet.Log(); log != "join a; synced" {
			t.Errorf("the fleet heard %q", log)
		}
		const want = "the list: two clusters are named \"a\"\ncluster \"b\": another provider has " +
			"announced a cluster of that name"
		if err := p.Health(); err == nil || err.Error() != want {
			t.Errorf("health is %v, want %s", err, want)
		}
	})
}
