package manager_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// A rollout keeps the old replica until the new one is ready. The old replica leads, and is of a version without
// certificates. So the new one must not wait for the leader.
func TestRotationDoesNotWaitForTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		old := live(t, w.manager(t, o))
		configure(t, clientset(old))
		time.Sleep(time.Second)
		o.LeaderElection.Identity = "new"
		l, at := w.replica(t, o)
		time.Sleep(time.Second)
		if err := l.Ready(); err != nil {
			t.Errorf("beside a leader without certificates: %v", err)
		}
		(&caller{t: t, client: clientset(l)}).every(5*time.Minute, 4*time.Hour, at)
		l.mustEnd()
		old.mustEnd()
	})
}

// The new version has another name. The certificate gets both names, and neither replica signs again and again.
func TestRotationToOtherNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		first, at := w.replica(t, o, func(c *webhook.Certificates) { c.DNSNames = []string{"old.example"} })
		configure(t, clientset(first))
		time.Sleep(time.Second)
		o.LeaderElection.Identity = "new"
		second, other := w.replica(t, o, func(c *webhook.Certificates) { c.DNSNames = []string{"new.example"} })
		time.Sleep(time.Second)
		if err := second.Ready(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"hooks.default.svc", "old.example", "new.example"} {
			for i, replica := range []*pipes{at, other} {
				c := &caller{t: t, client: clientset(first), bundle: bundleOf(t, clientset(first)), name: name}
				if err := c.call(replica); err != nil {
					t.Errorf("replica %d by the name %s: %v", i, name, err)
				}
			}
		}
		(&caller{t: t, client: clientset(first)}).every(time.Minute, 15*time.Minute, at, other)
		if n := len(w.writes("secrets")); n > 2 {
			t.Errorf("%d writes of the Secret, want one by each version", n)
		}
		c := &caller{t: t, client: clientset(first)}
		c.every(time.Minute, 35*time.Minute, at, other) // The certificate is renewed after 20 and 40 minutes.
		if n := len(w.writes("secrets")); n > 6 {
			t.Errorf("%d writes of the Secret after two renewals, want two more by each version", n)
		}
		first.mustEnd()
		c.client = clientset(second)
		c.every(5*time.Minute, 2*time.Hour, other)
		leaf, err := tls.X509KeyPair(secretOf(t, clientset(second)).Data["tls.crt"],
			secretOf(t, clientset(second)).Data["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Leaf.VerifyHostname("old.example") == nil {
			t.Error("the former name was never dropped")
		}
		second.mustEnd()
	})
}

// If a webhook prevents the write of its own Secret, the log says how to exclude the Secret.
func TestRotationBehindItsOwnWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Verb != "create" || r.Resource != "secrets" {
				return gate.Verdict{}
			}
			return gate.FailWith(apierrors.NewInternalError(errors.New(`failed calling webhook "a.example": refused`)))
		})
		l, _ := w.replica(t, manager.Options{})
		time.Sleep(time.Second)
		if len(l.logs.with("exclude the namespace by its namespaceSelector")) == 0 {
			t.Errorf("logs: %q", l.logs.with("Secret"))
		}
		l.mustEnd()
	})
}

// This test follows the procedure in docs/webhooks.md for an authority whose key was stolen.
func TestRotationAfterACompromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, _ := w.replica(t, manager.Options{})
		configure(t, clientset(l))
		time.Sleep(time.Second)
		former := string(bundleOf(t, clientset(l)))
		l.mustEnd()
		if err := errors.Join(deleteSecret(l), setBundle("")(l)); err != nil {
			t.Fatal(err)
		}
		l, at := w.replica(t, manager.Options{})
		time.Sleep(time.Second)
		(&caller{t: t, client: clientset(l)}).every(3*time.Second, time.Minute, at)
		if strings.Contains(string(bundleOf(t, clientset(l))), former) {
			t.Error("the former authority is still trusted")
		}
		l.mustEnd()
	})
}
