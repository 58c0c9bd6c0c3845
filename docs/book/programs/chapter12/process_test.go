package chapter12

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/leader"
)

// A copier sees to it that each object "web" has one copy.
type copier struct {
	client.Client
	name  string
	diary *diary
}

func (c *copier) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	if r.Name != "web" {
		return ctrl.Result{}, nil
	}
	var copies corev1.ConfigMapList
	of := client.MatchingLabels{"copy-of": r.Name}
	if err := c.List(ctx, &copies, client.InNamespace(r.Namespace), of); err != nil {
		return ctrl.Result{}, err
	}
	if len(copies.Items) > 0 {
		return ctrl.Result{}, nil
	}
	c.diary.note("%s sees no copy of web, and creates one", c.name)
	fresh := &corev1.ConfigMap{}
	fresh.Namespace, fresh.GenerateName, fresh.Labels = r.Namespace, "web-", map[string]string{"copy-of": r.Name}
	return ctrl.Result{}, c.Create(ctx, fresh)
}

// TestChapter12Two runs a controller in two processes, without a lease and with one.
func TestChapter12Two(t *testing.T) {
	text, counts := "", []int{}
	for _, elected := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.lag["a"], w.lag["b"] = time.Second, 1200*time.Millisecond
			for _, name := range names {
				m := w.manager(t, name, elected)
				c := &copier{Client: m.GetClient(), name: name, diary: w.diary}
				if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(c); err != nil {
					t.Fatal(err)
				}
				stop := w.start(t, m, nil)
				defer func() {
					if err := stop(); err != nil {
						t.Error(err)
					}
				}()
			}
			time.Sleep(3 * time.Second)
			w.diary.note("somebody creates web")
			w.create(t, named("web"))
			time.Sleep(10 * time.Second)
			var copies corev1.ConfigMapList
			reader := w.manager(t, "test", false).GetAPIReader()
			if err := reader.List(t.Context(), &copies, client.MatchingLabels{"copy-of": "web"}); err != nil {
				t.Fatal(err)
			}
			w.diary.note("copies of web: %d", len(copies.Items))
			counts = append(counts, len(copies.Items))
			title := map[bool]string{false: "two processes", true: "two processes and a lease"}[elected]
			text += fmt.Sprintf("%s\n%s\n", title, w.diary)
		})
	}
	if counts[0] != 2 || counts[1] != 1 {
		t.Errorf("%v copies", counts)
	}
	book.Trace(t, page, text)
}

// onWeb adds a controller that calls work for the object "web", and does nothing with others.
func onWeb(t *testing.T, m ctrl.Manager, work func(context.Context) error) {
	t.Helper()
	r := ctrl.ReconcilerFunc(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		if r.Name != "web" {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, work(ctx)
	})
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Named("web").Complete(r); err != nil {
		t.Fatal(err)
	}
}

// TestChapter12Fence lets a reconcile hang while its process loses the lease.
func TestChapter12Fence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var refused error
		a, b := w.manager(t, "a", true), w.manager(t, "b", true)
		onWeb(t, a, func(ctx context.Context) error {
			w.diary.note("a begins with web, and waits for an answer")
			<-ctx.Done()
			w.diary.note("a's context ends")
			time.Sleep(7 * time.Second) // The code does not look at its context.
			refused = a.GetClient().Create(context.WithoutCancel(ctx), named2("late"))
			w.diary.note("a writes all the same: %v", causeOf(refused))
			return refused
		})
		onWeb(t, b, func(context.Context) error { w.diary.note("b leads, and begins with web"); return nil })
		w.create(t, named("web"))
		stopA := w.start(t, a, nil)
		time.Sleep(700 * time.Millisecond)
		stopB := w.start(t, b, nil)
		time.Sleep(troubleAt - time.Since(w.diary.began))
		w.diary.note("a's requests to the lease get no answer")
		w.setAway("a", true)
		time.Sleep(time.Minute)
		if err := stopA(); !errors.Is(err, leader.ErrLost) {
			t.Errorf("a ended with %v", err)
		}
		if err := stopB(); err != nil {
			t.Error(err)
		}
		synctest.Wait() // The manager of a did not wait for the reconcile.
		if !errors.Is(refused, leader.ErrLost) {
			t.Errorf("the late write: %v", refused)
		}
		book.Trace(t, page, w.diary.String())
	})
}

// causeOf leaves out the address of a request.
func causeOf(err error) error {
	if wire := (*url.Error)(nil); errors.As(err, &wire) {
		return wire.Err
	}
	return err
}

func named2(name string) *corev1.ConfigMap {
	cm := named(name)
	cm.Namespace = "default"
	return cm
}

// TestChapter12Stop shows the log of two processes, of which the leader is asked to stop in the middle of a reconcile.
func TestChapter12Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.manager(t, "a", true), w.manager(t, "b", true)
		onWeb(t, a, func(ctx context.Context) error {
			w.diary.note("a                                      web: first of two writes")
			time.Sleep(5 * time.Second)
			err := a.GetClient().Create(ctx, named2("second"))
			w.diary.note("a                                      web: second write: %v", err)
			return err
		})
		onWeb(t, b, func(context.Context) error {
			w.diary.note("b                                      web: looks whether all is well")
			return nil
		})
		log := func(name string) func(string) {
			return func(message string) {
				for _, shown := range []string{"Became leader", "Manager stopping", "Released", "Waiting for work"} {
					if strings.HasPrefix(message, shown) {
						w.diary.note("%s log: %s", name, message)
					}
				}
			}
		}
		w.create(t, named("web"))
		stopA := w.start(t, a, log("a"))
		time.Sleep(700 * time.Millisecond)
		stopB := w.start(t, b, log("b"))
		time.Sleep(2300 * time.Millisecond)
		w.diary.note("a gets the signal to stop")
		err := stopA()
		w.diary.note("a ends: %v", err)
		time.Sleep(10 * time.Second)
		book.Trace(t, page, w.diary.String())
		if err := stopB(); err != nil {
			t.Error(err)
		}
	})
}

// TestChapter12Health asks two processes for their health in the situations of their lives.
func TestChapter12Health(t *testing.T) {
	table := "| situation | `/livez` | `/readyz` |\n|---|---|---|\n"
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.manager(t, "a", true), w.manager(t, "b", true)
		const longest = 50 // letters of a line
		ask := func(m http.Handler, path string) string {
			answer := httptest.NewRecorder()
			m.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			var lines []string
			for line := range strings.Lines(answer.Body.String()) {
				line = strings.TrimSpace(line)
				if reason, found := strings.CutPrefix(line, "[-]"); found {
					lines = append(lines, reason)
				} else if note, found := strings.CutPrefix(line, "[+]"); found && answer.Code == http.StatusOK {
					lines = append(lines, note)
				}
			}
			for i, line := range lines {
				if len(line) > longest {
					lines[i] = line[:longest] + "…"
				}
			}
			return fmt.Sprintf("%d %s", answer.Code, strings.Join(lines, "; "))
		}
		codes := map[string]string{}
		row := func(situation string, m ctrl.Manager) {
			h := m.HealthHandler()
			live, ready := ask(h, "/livez"), ask(h, "/readyz")
			codes[situation] = live[:3] + ready[:3]
			table += fmt.Sprintf("| %s | %s | %s |\n", situation, strings.TrimSpace(live), strings.TrimSpace(ready))
		}
		hang := make(chan struct{})
		onWeb(t, a, func(context.Context) error { <-hang; return nil })
		onWeb(t, b, func(context.Context) error { return nil })
		row("before it runs", a)
		w.setAway("*", true)
		stopA := w.start(t, a, nil)
		time.Sleep(time.Second)
		row("the server is not there yet", a)
		w.setAway("*", false)
		time.Sleep(2 * time.Second)
		row("it leads", a)
		stopB := w.start(t, b, nil)
		time.Sleep(5 * time.Second)
		row("it follows", b)
		w.create(t, named("web"))
		time.Sleep(11 * time.Minute)
		row("a reconcile hangs", a)
		close(hang)
		time.Sleep(time.Second)
		w.setAway("watches", true)
		w.create(t, named("other")) // A watch sees at its next change that the server is down.
		synctest.Wait()
		w.setAway("*", true)
		time.Sleep(30 * time.Second)
		row("the server is down: the one that follows", b)
		row("the server is down: the one that led", a)
		if err := stopA(); !errors.Is(err, leader.ErrLost) {
			t.Errorf("a ended with %v", err)
		}
		w.setAway("*", false)
		w.setAway("watches", false)
		time.Sleep(2 * time.Minute)
		if err := stopB(); err != nil {
			t.Error(err)
		}
		if codes["the server is down: the one that follows"] != "200200" || codes["a reconcile hangs"] != "200503" {
			t.Errorf("codes %v", codes)
		}
	})
	book.Block(t, page, table)
}
