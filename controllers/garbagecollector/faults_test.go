package garbagecollector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// A new collector finds what happened while none was running: owners that were deleted, and deletions that wait for
// dependents. It leaves dependents alone if an owner remains.
func TestStartCatchesUp(t *testing.T) {
	before := func(c *cluster) {
		owner, kept := c.owned("owner", false), c.owned("kept", false)
		c.owned("child", true, owner)
		c.owned("shared", true, owner, kept)
		c.owned("content", true, kept)
		c.delete("owner", metav1.DeletePropagationBackground)
		c.owned("blocker", true, c.owned("waiting", false))
		c.delete("waiting", metav1.DeletePropagationForeground)
		c.owned("left-behind", true, c.owned("leaving", false))
		c.delete("leaving", metav1.DeletePropagationOrphan)
	}
	inClusterBehind(t, gate.Funcs{}, before, func(c *cluster) {
		c.want("content<kept", "kept", "left-behind", "shared<kept")
		if reads := c.log.Entries(func(e audit.Entry) bool { return e.Verb == "get" && e.Name == "content" }); len(
			reads,
		) != 0 {
			t.Errorf("an object whose owner is known was read: %v", reads)
		}
	})
}

// A restart of the collector costs only lists and watches if nothing is left to collect.
func TestRestartWithNothingToCollect(t *testing.T) {
	before := func(c *cluster) {
		owner := c.owned("owner", false)
		c.owned("grandchild", true, c.owned("child", true, owner))
	}
	inClusterBehind(t, gate.Funcs{}, before, func(c *cluster) {
		c.settle()
		if reads := c.log.Entries(func(e audit.Entry) bool { return e.Verb == "get" && e.Resource != "" }); len(
			reads,
		) != 0 {
			t.Errorf("needless: %v", reads)
		}
		if s := c.gc.Stats(); s.Deleted != 0 || s.Deletes.Errors != 0 {
			t.Errorf("stats %+v", s)
		}
		c.log.Reset()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if busy := c.log.Entries(
			func(e audit.Entry) bool { return e.Resource != "" && e.Verb != "watch" && e.Verb != "list" },
		); len(busy) != 0 {
			t.Errorf("requests while nothing happens: %v", busy)
		}
	})
}

// secret returns a Secret owned by owner.
func (c *cluster) secret(name string, owner *corev1.ConfigMap) {
	c.t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{ownerRef(owner, false)}},
	}
	if _, err := c.client.CoreV1().Secrets("default").Create(c.ctx, s, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) hasSecret(name string) bool {
	c.t.Helper()
	_, err := c.client.CoreV1().Secrets("default").Get(c.ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return err == nil
}

// The watch of the owners is a minute late. A dependent stays if its owner exists, even if no watch has shown the
// owner. If its owner was created and deleted in that minute, the dependent is deleted before the watch catches up.
//
// Source: kubernetes issue 56121; garbagecollector.go v1.37.2, attemptToDeleteWorker
func TestOwnerNotSeenYet(t *testing.T) {
	late := gate.Funcs{OnFrame: func(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if r.Resource == "configmaps" {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
		}
		return gate.Verdict{}
	}}
	inClusterBehind(t, late, func(*cluster) {}, func(c *cluster) {
		c.secret("of-one-who-stays", c.owned("stays", false))
		c.secret("of-one-who-goes", c.owned("goes", false))
		time.Sleep(10 * time.Second)
		if !c.hasSecret("of-one-who-stays") || !c.hasSecret("of-one-who-goes") {
			t.Fatal("deleted though the owner exists")
		}
		c.delete("goes", metav1.DeletePropagationBackground)
		time.Sleep(20 * time.Second)
		if !c.hasSecret("of-one-who-stays") || c.hasSecret("of-one-who-goes") {
			t.Errorf("left: %v and %v, want the first only", c.hasSecret("of-one-who-stays"),
				c.hasSecret("of-one-who-goes"))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if s := c.gc.Stats(); s.Virtual != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// Requests that fail are retried until they succeed.
func TestServerFails(t *testing.T) {
	var failures atomic.Int32
	flaky := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if r.Resource == "secrets" && (r.Verb == "get" || r.Verb == "delete") && failures.Add(-1) >= 0 {
			return gate.FailWith(apierrors.NewInternalError(errors.New("broken")))
		}
		return gate.Verdict{}
	}}
	inClusterBehind(t, flaky, func(*cluster) {}, func(c *cluster) {
		owner := c.owned("owner", false)
		c.secret("child", owner)
		c.settle()
		failures.Store(5)
		c.delete("owner", metav1.DeletePropagationBackground)
		c.settle()
		if c.hasSecret("child") {
			t.Error("still there")
		}
		if s := c.gc.Stats(); s.Deletes.Errors != 5 || s.Deletes.Dropped != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}
