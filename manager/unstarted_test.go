package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// A cached read before the manager runs does not wait forever. It returns an error with the remedy. Live reads work,
// and the first runnable can read at once.
func TestReadBeforeTheManagerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		began, key := time.Now(), client.ObjectKey{Namespace: "default", Name: "a"}
		for what, err := range map[string]error{
			"list": m.GetClient().List(t.Context(), &corev1.ConfigMapList{}),
			"get":  m.GetClient().Get(t.Context(), key, &corev1.ConfigMap{}),
		} {
			if !errors.Is(err, informer.ErrNotStarted) || !strings.Contains(err.Error(), "start the manager first") ||
				!strings.Contains(err.Error(), "configmaps") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the reads took %v", took)
		}
		if err := m.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{}); err != nil {
			t.Errorf("live list: %v", err)
		}
		read := make(chan error, 1) // One send.
		if err := m.Add(runnable{name: "reads", run: func(ctx context.Context) error {
			read <- m.GetClient().List(ctx, &corev1.ConfigMapList{})
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		if err := <-read; err != nil {
			t.Errorf("list of the first runnable: %v", err)
		}
		l.mustEnd()
	})
}
