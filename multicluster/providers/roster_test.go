package providers

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flyball-dev/flyball/multicluster"
)

func cluster(name, host string) multicluster.Announcement {
	return multicluster.Announcement{Name: name, Identity: host, Config: &rest.Config{Host: host}}
}

func clusters(names ...string) (all []multicluster.Announcement) {
	for _, name := range names {
		all = append(all, cluster(name, "h"))
	}
	return all
}

func wantLog(t *testing.T, fleet *recorder, want string) {
	t.Helper()
	if got := fleet.Log(); got != want {
		t.Errorf("the fleet heard %q, want %q", got, want)
	}
}

func wantHealth(t *testing.T, r *roster, want string) {
	t.Helper()
	got := ""
	if err := r.health(); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("health is %q, want %q", got, want)
	}
}

func TestFoundClustersJoinAndMissingOnesLeave(t *testing.T) {
	var r roster
	fleet := &recorder{}
	r.begin(fleet)
	r.found(t.Context(), "x", clusters("a", "b"))
	r.found(t.Context(), "y", clusters("c"))
	r.complete(true)
	wantLog(t, fleet, "join a; join b; join c; synced")
	r.found(t.Context(), "x", clusters("b"))
	r.gone("y")
	wantLog(t, fleet, "leave a; leave c")
	wantHealth(t, &r, "")
}

func TestUnreadableSourceKeepsItsClusters(t *testing.T) {
	var log bytes.Buffer
	ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
	var r roster
	fleet := &recorder{}
	r.begin(fleet)
	r.found(ctx, "x", clusters("a", "b"))
	fleet.Log()
	for i := range 3 {
		if news := r.broken(ctx, "x", errors.New("no sense")); news != (i == 0) {
			t.Errorf("time %d: that is news: %t", i, news)
		}
	}
	if n := strings.Count(log.String(), "no sense"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, &log)
	}
	wantHealth(t, &r, "x: no sense")
	r.found(ctx, "x", clusters("b"), unusable{name: "a", err: errors.New("half of it")},
		unusable{name: "new", err: errors.New("all of it")})
	wantHealth(t, &r, "x: half of it\nall of it")
	wantLog(t, fleet, "")
	r.found(ctx, "x", clusters("a", "b"))
	wantHealth(t, &r, "")
	if !strings.Contains(log.String(), "can be read again") {
		t.Errorf("the end of it was not logged:\n%s", &log)
	}
}

func TestFirstHolderKeepsTheName(t *testing.T) {
	var r roster
	fleet := &recorder{}
	r.begin(fleet)
	r.found(t.Context(), "y", []multicluster.Announcement{cluster("a", "first")})
	r.found(t.Context(), "x", []multicluster.Announcement{cluster("a", "second")})
	wantLog(t, fleet, "join a")
	wantHealth(t, &r, `x: cluster "a": the name is taken by a cluster of y`)
	r.gone("y")
	wantLog(t, fleet, "change a: identity, host")
	wantHealth(t, &r, "")
	r.found(t.Context(), "z", clusters("b", "b"))
	wantHealth(t, &r, `z: two clusters are named "b"`)
}

func TestRejectedClustersAreAnnouncedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r roster
		fleet := &recorder{}
		fleet.Take("a")
		r.begin(fleet)
		r.found(t.Context(), "x", clusters("a", "b"))
		wantHealth(t, &r, `x: cluster "a": another provider has announced a cluster of that name`)
		go r.run(t.Context())
		time.Sleep(time.Minute)
		fleet.Take()
		time.Sleep(time.Minute)
		wantLog(t, fleet, "join b; join a")
		wantHealth(t, &r, "")
	})
}

// A new run announces the clusters of the run before it, and then drops those that it does not find again.
func TestNextRunAnnouncesKnownClusters(t *testing.T) {
	var r roster
	r.begin(&recorder{})
	r.found(t.Context(), "x", clusters("a"))
	r.found(t.Context(), "y", clusters("b"))
	r.found(t.Context(), "z", clusters("c"))

	fleet := &recorder{}
	r.begin(fleet)
	r.broken(t.Context(), "x", errors.New("no sense"))
	r.found(t.Context(), "y", clusters("b"))
	r.complete(true)
	wantLog(t, fleet, "join a; join b; join c; leave c; synced")

	blind := &recorder{}
	r.begin(blind)
	r.complete(false)
	wantLog(t, blind, "join a; join b; synced")
}
