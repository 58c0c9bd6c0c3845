package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

// restless is a manager whose reconciler writes at every run.
func restless(t *testing.T, server *localapi.Server) *manager.Manager {
	t.Helper()
	m, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var cm corev1.ConfigMap
			if err := m.GetClient().Get(ctx, r.NamespacedName, &cm); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			cm.Data = map[string]string{"seen": cm.ResourceVersion}
			return ctrl.Result{}, m.GetClient().Update(ctx, &cm, client.FieldOwner("greeter"))
		}))
	if err == nil {
		_, err = clientset(m).CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const itsOwnUpdate = "was triggered again each time by its own update of configmaps default/x (field manager greeter)"

// In a bubble the clock stands still while a reconciler answers each of its own writes with another.
func TestSelfTriggeringReconcileEndsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := restless(t, newWorld(t).server)
		l := live(t, m)
		err := <-l.done
		if loop := (*reconcile.SelfTriggeredError)(nil); !errors.As(err, &loop) || loop.Key != "default/x" ||
			!strings.Contains(err.Error(), itsOwnUpdate) {
			t.Errorf("ended with %v", err)
		}
		if lines := l.logs.with("Reconcile triggers itself"); len(lines) != 1 ||
			!strings.Contains(lines[0], itsOwnUpdate) {
			t.Errorf("logged %q", lines)
		}
	})
}

// RunUntilIdle returns an error that names a key whose reconciles trigger each other, because the manager would never
// be idle. This test uses the real clock.
func TestRunUntilIdleNamesRestlessKeys(t *testing.T) {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	config := server.RESTConfig()
	config.QPS = -1
	_, err = restless(t, server).RunUntilIdle(ctx, manager.IdleOptions{})
	if loop := (*reconcile.SelfTriggeredError)(nil); !errors.As(err, &loop) ||
		!strings.Contains(err.Error(), itsOwnUpdate) {
		t.Errorf("ended with %v", err)
	}
}
