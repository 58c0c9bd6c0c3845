package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flyball-dev/flyball/reconcile/internal/forbidden"
)

// refuse returns the error of an API server whose RBAC rules do not allow a request.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/responsewriters, ForbiddenStatusError.
func refuse(verb, resource, namespace string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "",
		fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", "system:serviceaccount:a:b",
			verb, resource, "", namespace))
}

// startLogged starts a controller and returns what it logs.
func startLogged(t *testing.T, r Reconciler[string], o Options[string]) (c *started, lines func() []string) {
	t.Helper()
	var out strings.Builder // written under the logger's lock, read when the bubble is idle
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	c = &started{engine: engineOf(New("test", r, o)), stop: stop, done: make(chan error, 1)}
	go func() { c.done <- c.Run(ctx) }()
	synctest.Wait()
	return c, func() []string {
		synctest.Wait()
		var told []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "forbidden for") || strings.Contains(line, "is forbidden,") ||
				strings.Contains(line, "no longer forbidden") || strings.Contains(line, "failed") {
				told = append(told, line)
			}
		}
		return told
	}
}

// TestMissingPermissionIsOneThing: a permission that a thousand keys in a hundred namespaces need is missing for two
// hours. The log has one line about it, and Health has one at once. Half a minute after the permission was granted, all
// keys have succeeded.
func TestMissingPermissionIsOneThing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var granted atomic.Bool
		done := map[string]bool{}
		c, lines := startLogged(t, Func[string](func(_ context.Context, key string) (Result, error) {
			if !granted.Load() {
				return Result{}, fmt.Errorf("make it: %w", refuse("create", "pods", key[:2]))
			}
			done[key] = true
			return Result{}, nil
		}), Options[string]{})
		const keys = 1000
		for i := range keys {
			c.Enqueue(fmt.Sprintf("%02d/%d", i%100, i))
		}
		time.Sleep(time.Second)
		const says = `test: 1000 keys forbidden for 1s: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""`
		if err := c.Health(); err == nil || err.Error() != says {
			t.Errorf("health: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if told := lines(); len(told) != 1 || !strings.Contains(told[0], `Reconcile is forbidden`) {
			t.Errorf("%d lines: %q", len(told), told)
		}
		if err := c.Health(); err == nil || !strings.Contains(err.Error(), "1000 keys forbidden for 2h0m1s") {
			t.Errorf("health: %v", err)
		}
		granted.Store(true)
		time.Sleep(forbidden.ProbeEvery)
		synctest.Wait()
		if err := c.Health(); len(done) != keys || err != nil {
			t.Errorf("%d keys done, health %v", len(done), err)
		}
		if told := lines(); len(told) != 2 || !strings.Contains(told[1], `Reconciles are no longer forbidden`) {
			t.Errorf("%d lines: %q", len(told), told)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
		if n := len(c.keys.entries) + len(c.checks.forbidden); n != 0 {
			t.Errorf("%d are remembered", n)
		}
	})
}

// TestProbeHasOneCause: a probe has both the delay of its backoff and that of the probe, and only one cause.
func TestProbeHasOneCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		c, _ := startLogged(t, Func[string](func(ctx context.Context, _ string) (Result, error) {
			runs++
			if causes := Causes(ctx); len(causes) != 1 {
				t.Errorf("run %d: causes %v, want one", runs, causes)
			}
			return Result{}, refuse("create", "pods", "x")
		}), Options[string]{})
		c.Enqueue("a")
		time.Sleep(time.Hour)
		if err := c.end(); err != nil || runs < 100 {
			t.Errorf("%d runs, %v", runs, err)
		}
	})
}

// TestProbesThatNeedItNoMore: one probe after another no longer needs the permission. The other keys do not all retry
// each time.
func TestProbesThatNeedItNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, needs := 0, map[string]bool{}
		c, lines := startLogged(t, Func[string](func(_ context.Context, key string) (Result, error) {
			calls++
			if needs[key] {
				return Result{}, refuse("update", "services", "x")
			}
			return Result{}, nil
		}), Options[string]{})
		const keys = 100
		for i := range keys {
			needs[fmt.Sprint(i)] = true
		}
		for key := range needs {
			c.Enqueue(key)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		before := calls
		for i := range keys - 1 {
			needs[fmt.Sprint(i)] = false
			c.Enqueue(fmt.Sprint(i))
			synctest.Wait()
		}
		if calls > before+4*keys {
			t.Errorf("%d calls for %d keys", calls-before, keys)
		}
		if err := c.Health(); err == nil || !strings.Contains(err.Error(), "test: 1 key forbidden for 2h") {
			t.Errorf("health: %v", err)
		}
		c.ForgetFunc(func(key string) bool { return key == fmt.Sprint(keys-1) })
		if err := c.Health(); err != nil {
			t.Errorf("health: %v", err)
		}
		if told := lines(); len(told) != 1 {
			t.Errorf("%d lines: %q", len(told), told)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
}

// Each missing permission is logged once, and every other failure each time. A key that was given up does not count as
// forbidden.
func TestWhatIsNoMissingPermission(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for says, err := range map[string]error{
		`User "system:serviceaccount:a:b" cannot get resource "pods" in API group ""`: errors.Join(errors.New("x"),
			refuse("get", "pods", "n")),
		`User "y" cannot get path "/x"`: apierrors.NewForbidden(schema.GroupResource{}, "",
			errors.New(`User "y" cannot get path "/x": RBAC: no such role`)),
		"": apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q, requested: pods=1")),
		" ": apierrors.NewForbidden(pods, "p",
			errors.New(`unable to create new content in namespace n because it is being terminated`)),
		"  ":  apierrors.NewConflict(pods, "p", errors.New(`User "y" cannot`)),
		"   ": errors.New(`pods is forbidden: User "y" cannot get resource "pods"`),
	} {
		if got := forbidden.Missing(err); got != strings.TrimSpace(says) {
			t.Errorf("%v: %q", err, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c, lines := startLogged(t, Func[string](func(_ context.Context, key string) (Result, error) {
			switch key {
			case "terminal":
				return Result{}, Terminal(refuse("get", "pods", "n"))
			case "quota":
				return Result{}, apierrors.NewForbidden(pods, "p", errors.New("exceeded quota"))
			}
			return Result{}, refuse(key, "pods", "n")
		}), Options[string]{MaxRetries: 2})
		for _, key := range []string{"list", "delete", "terminal", "quota"} {
			c.Enqueue(key)
		}
		time.Sleep(time.Hour)
		want := 2 + 2 + 1 + 3 // 2 permissions, 2 keys given up, 1 terminal error, the quota 3 times
		if told := lines(); len(told) != want+2 {
			t.Errorf("%d lines, want %d and that they are no longer forbidden: %q", len(told), want, told)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
		if n := len(c.checks.forbidden); n != 0 {
			t.Errorf("%d are remembered", n)
		}
	})
}
