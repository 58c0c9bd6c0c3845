package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// mayNotList answers like an API server whose RBAC does not allow listing and watching Secrets.
func mayNotList(r *gate.Request) gate.Verdict {
	if r.Resource != "secrets" {
		return gate.Verdict{}
	}
	return gate.FailWith(apierrors.NewForbidden(corev1.Resource("secrets"), "",
		errors.New(`User "intern" cannot `+r.Verb+` resource "secrets" in API group "" at the cluster scope`)))
}

// TestForbiddenKindFailsInWords: reads of a kind that may not be listed fail with the missing permission: the first as
// soon as the server has refused the list, the others at once. They succeed once the permission is granted.
func TestForbiddenKindFailsInWords(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.before = mayNotList })
		const says = `fill the cache of secrets: cannot list secrets at the cluster scope: forbidden: ` +
			`User "intern" cannot list resource "secrets" in API group "" at the cluster scope`
		fails := func(err error, began time.Time) {
			t.Helper()
			if err == nil || err.Error() != says || !apierrors.IsForbidden(err) ||
				!errors.Is(err, informer.ErrForbidden) {
				t.Errorf("read: %v", err)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("it took %v", took)
			}
		}
		for range 2 {
			fails(w.List(w.ctx, &corev1.SecretList{}), time.Now())
			fails(w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Secret{}), time.Now())
		}
		w.set(func() { w.before = nil })
		time.Sleep(2 * time.Minute) // The informer asks once a minute, at the least.
		w.must(w.List(w.ctx, &corev1.SecretList{}))
	})
}

// TestKindWithoutAListFailsInWords: a read of a kind that can only be created fails at once, because no cache of it can
// be filled. It waited for ever.
func TestKindWithoutAListFailsInWords(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		err := w.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "b"}, &corev1.Binding{})
		if !apierrors.IsMethodNotSupported(err) || !errors.Is(err, informer.ErrForbidden) ||
			!strings.Contains(err.Error(), "cannot list bindings") {
			t.Errorf("read: %v", err)
		}
	})
}

// TestOutageIsWaitedFor: a server that does not answer has refused nothing. A read waits for the first list.
func TestOutageIsWaitedFor(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() {
			w.before = func(r *gate.Request) gate.Verdict {
				if r.Resource == "secrets" {
					return gate.Verdict{Action: gate.Drop}
				}
				return gate.Verdict{}
			}
		})
		ctx, cancel := context.WithTimeout(w.ctx, time.Hour)
		defer cancel()
		if err := w.List(ctx, &corev1.SecretList{}); err == nil ||
			!strings.Contains(err.Error(), "cannot list secrets") || ctx.Err() == nil {
			t.Errorf("read: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- w.List(w.ctx, &corev1.SecretList{}) }()
		synctest.Wait()
		w.set(func() { w.before = nil })
		w.must(<-done)
	})
}
