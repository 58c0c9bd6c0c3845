package capstone_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	capstone "github.com/flyball-dev/flyball/exercises/13-capstone"
	"github.com/flyball-dev/flyball/localapi"
)

// TestRun runs the controller against an API server in this process, in virtual time, and logs what happens. The
// chapter shows it.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTest(t)
		user, err := client.New(server.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := rest.HTTPClientFor(server.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		c := capstone.New(h, server.RESTConfig().Host)
		var mu sync.Mutex
		var text strings.Builder
		began := time.Now()
		note := func(who, what string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&text, "%4v  %-10s  %s\n", time.Since(began).Truncate(time.Second), who, what)
		}
		c.Log, c.Random = func(line string) { note("controller", line) }, rand.Float64
		step := func(what string, act func() error) {
			note("user", what) // before the act, or the controller may be faster
			if err := act(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		create := func(obj client.Object) func() error {
			return func() error { return user.Create(t.Context(), obj) }
		}
		remove := func(obj client.Object) func() error {
			return func() error { return user.Delete(t.Context(), obj) }
		}
		status := func(n int, is corev1.ConditionStatus) func() error {
			return func() error {
				p := pod(n)
				if err := user.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
					return err
				}
				setReady(p, n, is)
				return user.Status().Update(t.Context(), p)
			}
		}
		live := func() (kill func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { c.Run(ctx) })
			return func() { cancel(); running.Wait() }
		}
		kill := live()
		step("creates the Service web", create(service("web", "web")))
		step("creates web-1, which has no address yet", create(pod(1)))
		step("web-1 is at 10.0.0.1 and ready", status(1, corev1.ConditionTrue))
		step("creates web-2", create(pod(2)))
		step("web-2 is at 10.0.0.2 and ready", status(2, corev1.ConditionTrue))
		step("web-1 does not answer any more", status(1, corev1.ConditionFalse))
		kill()
		step("stops the controller, and deletes web-1", remove(pod(1)))
		c = capstone.New(h, server.RESTConfig().Host)
		c.Log, c.Random = func(line string) { note("controller", line) }, rand.Float64
		step("starts it again", func() error { kill = live(); return nil })
		step("deletes the Service web", remove(service("web", "web")))
		kill()
		t.Log("what happens\n" + text.String())
	})
}
