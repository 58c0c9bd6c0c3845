package manager_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/manager"
)

// measures is a metrics system; the test passes a nil pointer to one.
type measures struct {
	manager.Metrics
	http.Handler
}

func (m *measures) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.Handler.ServeHTTP(w, r) }

func TestMisuse(t *testing.T) {
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var nobody *runnable
	var metrics *measures
	rebuilt := func(build func() (manager.Runnable, error)) func() error {
		return func() error { _, err := manager.Rebuilt(build); return err }
	}
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("New", func() error { _, err := manager.New(nil, manager.Options{}); return err },
			"manager: the config is nil: GetConfig of manager/ctrl"),
		misusetest.Of("New with nil metrics",
			func() error { _, err := manager.New(m.GetConfig(), manager.Options{Metrics: metrics}); return err },
			"Options.Metrics is a nil *manager_test.measures"),
		misusetest.Of("Add", func() error { return m.Add(nil) }, "add: the runnable is nil"),
		misusetest.Of("Add typed nil", func() error { return m.Add(nobody) },
			"add: the runnable is a nil *manager_test.runnable"),
		misusetest.Of("Add without a name", func() error { return m.Add(runnable{}) },
			"the runnable manager_test.runnable has no name"),
		misusetest.Of("Rebuilt", rebuilt(nil), "the function that builds the runnable is nil"),
		misusetest.Of("Rebuilt of nothing", rebuilt(func() (manager.Runnable, error) { return nobody, nil }),
			"built no runnable"),
		misusetest.Of("Remove", func() error { return m.Remove(context.Background(), "") }, "unknown"),
	})
}

// A manager without runnables and caches logs that once. A manager with caches or a runnable does not.
func TestManagerWithNothingToDoSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		give func(*testing.T, *manager.Manager) error
		says int
	}{
		"nothing": {func(*testing.T, *manager.Manager) error { return nil }, 1},
		"a cache": {func(_ *testing.T, m *manager.Manager) error {
			_, err := informer.For[*corev1.Pod](m.Informers())
			return err
		}, 0},
		"a runnable": {func(_ *testing.T, m *manager.Manager) error {
			return m.Add(runnable{name: "r", run: untilStopped})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newWorld(t).manager(t, manager.Options{})
				if err := c.give(t, m); err != nil {
					t.Fatal(err)
				}
				l := live(t, m)
				l.mustEnd()
				if lines := l.logs.with("Nothing to do: the manager has no controller"); len(lines) != c.says {
					t.Errorf("logged %q", lines)
				}
			})
		})
	}
}
