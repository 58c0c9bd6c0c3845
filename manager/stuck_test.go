package manager_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
)

// probe requests /readyz every ten seconds for the duration d, and returns the last response.
func probe(m *manager.Manager, d time.Duration) (last string) {
	for range int(d / (10 * time.Second)) {
		time.Sleep(10 * time.Second)
		_, last = get(m, "/readyz")
	}
	return last
}

// TestStuckInformerIsNamed: /readyz names an informer whose handler or transform does not return, after StuckAfter and
// not before. It never names a resource on which nothing happens.
func TestStuckInformerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hang := make(chan struct{})
		o := manager.Options{StuckAfter: 12 * time.Minute}
		o.Informers.Transform = func(obj informer.Object) (informer.Object, error) {
			if obj.GetName() == "hangs" {
				<-hang
			}
			return obj, nil
		}
		m := w.manager(t, o)
		podController(t, m) // quiet
		maps, err := informer.For[*corev1.ConfigMap](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := maps.AddHandler(informer.Handler[*corev1.ConfigMap]{OnAdd: func(cm *corev1.ConfigMap, _ bool) {
			if cm.Name == "deaf" {
				<-hang
			}
		}}, informer.HandlerOptions{Name: "slowpoke"}); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		if body := probe(m, time.Hour); body != "ok\n" {
			t.Errorf("an hour of quiet: %s", body)
		}
		w.create(t, m, "deaf")
		if body := probe(m, 12*time.Minute); body != "ok\n" {
			t.Errorf("before the threshold: %s", body)
		}
		if body := probe(m, time.Minute); !strings.HasPrefix(body,
			"[-]informer configmaps: handler slowpoke has not returned for 12m") {
			t.Errorf("a deaf handler: %s", body)
		}
		w.create(t, m, "hangs")
		if body := probe(m, 25*time.Minute); !strings.Contains(body, "the server has sent nothing for") &&
			!strings.Contains(body, "have not been taken into the cache") {
			t.Errorf("a transform that hangs: %s", body)
		}
		close(hang)
		if body := probe(m, time.Minute); body != "ok\n" {
			t.Errorf("once they return: %s", body)
		}
		l.mustEnd()
	})
}

// TestOneFailingResourceIsNoOutage: if the server answers for one resource and not for another, this is not an outage.
// After a while it makes the process unready.
func TestOneFailingResourceIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		podController(t, m)
		if _, err := informer.For[*corev1.ConfigMap](m.Informers()); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		time.Sleep(time.Minute)
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Resource == "pods" {
				return gate.FailWith(apierrors.NewInternalError(errors.New("conversion webhook: no endpoints")))
			}
			return gate.Verdict{}
		})
		time.Sleep(12 * time.Minute)
		if code, body := get(m, "/readyz"); code != 200 || !strings.Contains(body, "[+]informer pods: cannot") {
			t.Errorf("at first: %d %s", code, body)
		}
		time.Sleep(20 * time.Minute)
		if code, body := get(m, "/readyz"); code != 503 ||
			!strings.Contains(body, "conversion webhook: no endpoints") || !strings.Contains(body, ", for 2") {
			t.Errorf("after half an hour: %d %s", code, body)
		}
		l.mustEnd()
	})
}
