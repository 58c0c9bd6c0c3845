package manager_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// TestTenMinutesOfTooManyRequests (case 49): a server answers every request with 429 and a Retry-After of five seconds.
// Each kind of request is then sent at most about once in five seconds. The process stays alive, and works again soon
// after the outage.
func TestTenMinutesOfTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{})
		var mu sync.Mutex
		var succeeded time.Time
		onConfigMaps(t, m, "worker", func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			maps := clientset(m).CoreV1().ConfigMaps(r.Namespace)
			cm, err := maps.Get(ctx, r.Name, metav1.GetOptions{})
			if err == nil && r.Name == "work" {
				cm.Labels = map[string]string{"at": time.Now().Format("15-04-05")}
				_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
			}
			if err == nil {
				mu.Lock()
				succeeded = time.Now()
				mu.Unlock()
			}
			return reconcile.Result{RequeueAfter: time.Second}, err
		})
		w.create(t, m, "work")
		l := live(t, m)
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil {
			t.Fatal(err)
		}

		asked := map[string]int{}
		w.refuse(func(r *gate.Request) gate.Verdict {
			mu.Lock()
			asked[r.Verb+" "+r.Resource]++
			mu.Unlock()
			return gate.FailWith(apierrors.NewTooManyRequests("slow down", 5))
		})
		const outage = 10 * time.Minute
		time.Sleep(outage)
		w.refuse(nil)
		over := time.Now()
		mu.Lock()
		total := 0
		for what, n := range asked {
			if total += n; n > int(outage/(5*time.Second))+10 {
				t.Errorf("%s: %d requests in %v", what, n, outage)
			}
		}
		mu.Unlock()
		if total == 0 {
			t.Error("nobody asked for anything: the test shows nothing")
		}
		if code, _ := get(m, "/livez"); code != 200 {
			t.Errorf("livez: %d", code)
		}
		if lines := l.logs.with("too many requests"); len(lines) > 10 {
			t.Errorf("%d log lines in ten minutes", len(lines))
		}
		time.Sleep(30 * time.Second)
		mu.Lock()
		if succeeded.Before(over) {
			t.Errorf("nothing succeeded within 30 s of the end of the outage; last at %v before", over.Sub(succeeded))
		}
		mu.Unlock()
		if err := m.Ready(); err != nil && !strings.Contains(err.Error(), "failing") {
			t.Errorf("ready: %v", err)
		}
		l.mustEnd()
	})
}
