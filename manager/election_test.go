package manager_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// If the lease had a default name, the second operator in a cluster would wait for the first one's lease forever.
func TestLeaseNeedsAName(t *testing.T) {
	_, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"},
		manager.Options{LeaderElection: manager.LeaderElection{Enabled: true}})
	if err == nil ||
		!strings.Contains(err.Error(),
			"set LeaderElection.Name to one that all replicas of this operator share and no other operator has") {
		t.Errorf("error %v", err)
	}
}

// A process that waits for the lease logs at its start which runnables wait, for which lease, and which process holds
// it. Later it logs each new holder.
func TestFollowerSaysWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		idle := func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }
		start := func(identity string) *life {
			o := elected()
			o.LeaderElection.Identity = identity
			m := w.manager(t, o)
			onConfigMaps(t, m, "greeter", idle)
			l := live(t, m)
			time.Sleep(5 * time.Second)
			return l
		}
		first, second := start("host-1"), start("host-2")
		third := start("host-3")
		if lines := third.logs.with(
			`"Runnables wait for the leader lease" lease="kube-system/flyball-manager" runnables=["greeter"]`,
		); len(lines) != 1 {
			t.Errorf("the follower does not say once what waits:\n%s", strings.Join(third.logs.with(""), ""))
		}
		if lines := third.logs.with(
			`"Another process leads" lease="kube-system/flyball-manager" holder="host-1"`,
		); len(lines) != 1 {
			t.Errorf("the follower does not say once who leads:\n%s", strings.Join(third.logs.with(""), ""))
		}
		first.mustEnd()
		time.Sleep(time.Minute)
		leader, follower := second, third
		if len(second.logs.with("Became leader")) == 0 {
			leader, follower = third, second
		}
		if lines := follower.logs.with(`"Leader changed" lease="kube-system/flyball-manager" holder="host-`); len(
			lines,
		) != 1 {
			t.Errorf("the follower does not say once that the leader changed:\n%s",
				strings.Join(follower.logs.with(""), ""))
		}
		follower.mustEnd()
		leader.mustEnd()
	})
}
