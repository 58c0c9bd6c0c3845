package manager_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// TestRedirectsAreRefusedOnce: a manager's config already refuses redirects, so a client made from it does not add a
// second check.
func TestRedirectsAreRefusedOnce(t *testing.T) {
	m, err := manager.New(&rest.Config{Host: "https://cluster.example"}, manager.Options{Metrics: metrics.New()})
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(m.GetConfig())
	if err != nil {
		t.Fatal(err)
	}
	if redirect.Refuse(transport) != transport {
		t.Errorf("%T is wrapped again", transport)
	}
}
