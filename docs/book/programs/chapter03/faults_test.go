package chapter03

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// A fault is something that happens to the watch of a reflector, two minutes after it began.
type fault struct {
	name string
	// frame is what happens to the next frame of the watch.
	frame gate.Verdict
	// silent lets the connection die without a word.
	silent bool
	// watches and lists are what happens to the next requests.
	watches, lists []gate.Verdict
}

// tooLarge is the answer of a server that has not got so far.
func tooLarge() gate.Verdict {
	err := apierrors.NewTimeoutError("Too large resource version: 99, current: 12", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return gate.FailWith(err)
}

func faults() []fault {
	pods := corev1.Resource("pods")
	gone := gate.FailWith(apierrors.NewResourceExpired("too old resource version"))
	refused := gate.FailWith(apierrors.NewForbidden(pods, "", errors.New("you may not watch")))
	return []fault{
		{name: "it ends when its time is up"},
		{name: "it ends earlier, in good order", frame: gate.Verdict{Action: gate.Close}},
		{name: "the connection breaks", frame: gate.Verdict{Action: gate.Truncate}},
		{name: "nothing comes any more", silent: true},
		{name: "410", frame: gone},
		{name: "410, and the list gets \"too large resource version\"", frame: gone, lists: []gate.Verdict{tooLarge()}},
		{name: "410, and the next watch gets 410 again", frame: gone, watches: []gate.Verdict{gone}},
		{name: "429 with `Retry-After: 7`", frame: gate.FailWith(apierrors.NewTooManyRequests("busy", 7))},
		{name: "500", frame: gate.FailWith(apierrors.NewInternalError(errors.New("etcd has no leader")))},
		{name: "503", frame: gate.FailWith(apierrors.NewServiceUnavailable("no server behind the balancer"))},
		{name: "403, and the list as well", frame: refused, lists: []gate.Verdict{refused, refused}},
	}
}

// next takes the first verdict.
func next(queue *[]gate.Verdict) gate.Verdict {
	if len(*queue) == 0 {
		return gate.Verdict{}
	}
	v := (*queue)[0]
	*queue = (*queue)[1:]
	return v
}

// TestChapter03Faults shows what a reflector asks for after each fault.
func TestChapter03Faults(t *testing.T) {
	const at = 2 * time.Minute
	table := "| what happens to the watch | the reflector asks for |\n|---|---|\n"
	for _, f := range faults() {
		inWorld(t, func(w *world) {
			var failed time.Duration // when the fault showed
			w.verdict = func(a *ask) gate.Verdict {
				switch {
				case a.at < at:
					return gate.Verdict{}
				case a.verb == "watch":
					return next(&f.watches)
				case a.what == "one object of the newest list":
					return gate.Verdict{}
				default:
					return next(&f.lists)
				}
			}
			var once sync.Once
			w.frame = func(ctx context.Context, a *ask) (v gate.Verdict) {
				if a.at >= at || w.since() < at {
					return v
				}
				once.Do(func() {
					if v = f.frame; f.silent || v.Action != gate.Pass {
						failed = w.since()
					}
				})
				if f.silent {
					<-ctx.Done()
				}
				return v
			}
			ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
			done := make(chan struct{}) // closed when the reflector has ended
			go func() {
				defer close(done)
				reflect(ctx, lister(t, w.RESTConfig(), nil), func() float64 { return 0 }, w.copy())
			}()
			time.Sleep(time.Minute)
			w.write()
			time.Sleep(time.Minute)
			w.write()
			time.Sleep(20 * time.Minute)
			cancel()
			<-done
			synctest.Wait()
			table += "| " + f.name + " | " + w.after(at, failed) + " |\n"
		})
	}
	for _, want := range []string{
		"up | `watch", "breaks | after 800ms `one object", "410 | `list, not older",
		"after 7s `watch", "`list, newest`",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no row has %q", want)
		}
	}
	book.Block(t, page, table)
}

// after words the requests from a time on, until a watch lasts.
func (w *world) after(at, failed time.Duration) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := ""
	last := failed
	if first := w.asks[1]; failed == 0 {
		last = first.ended
	}
	for _, a := range w.asks {
		if a.at < at {
			continue
		}
		if text != "" {
			text += ", "
		}
		if pause := (a.at - last - latency).Round(10 * time.Millisecond); pause > 50*time.Millisecond {
			text += fmt.Sprintf("after %v ", pause)
		}
		text += "`" + a.what + "`"
		last = a.at
		if a.ended-a.opened > time.Minute {
			break
		}
	}
	return text
}

// A switchboard leads requests to one of two servers.
type switchboard struct {
	to [2]http.RoundTripper
	at atomic.Int32
}

func (s *switchboard) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.to[s.at.Load()].RoundTrip(r)
}

// TestChapter03Restored: the server is restored from a backup, and its history goes back.
func TestChapter03Restored(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"watch from where it was", "the reflector"} {
		synctest.Test(t, func(t *testing.T) {
			create := func(s *localapi.Test, names ...string) (version string) {
				for _, name := range names {
					pods := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().Pods("default")
					pod, err := pods.Create(t.Context(), &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{Name: name},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
					}, metav1.CreateOptions{})
					if err != nil {
						t.Fatal(err)
					}
					version = pod.ResourceVersion
				}
				return version
			}
			before, backup := localapi.NewTest(t), localapi.NewTest(t)
			create(before, "web-1", "web-2")
			saved := create(backup, "web-1", "web-2")
			newest := create(before, "web-3", "web-4", "web-5")

			board := &switchboard{to: [2]http.RoundTripper{
				before.RESTConfig().Transport, backup.RESTConfig().Transport,
			}}
			server, to := lister(t, before.RESTConfig(), board), &copied{}
			ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
			done := make(chan struct{}) // closed when the follower has ended
			go func() {
				defer close(done)
				if name == "the reflector" {
					reflect(ctx, server, seeded(1), to)
				} else {
					r := &resuming{naive: naive{server: server, pause: time.Second}}
					r.mirror = positioned{to, &r.position}
					r.run(ctx)
				}
			}()
			time.Sleep(time.Minute)
			fmt.Fprintf(&b, "%s\n", name)
			names, version := to.has()
			fmt.Fprintf(&b, "  the copy has   %s at version %s\n", names, version)
			if version != newest {
				t.Errorf("the copy is at version %s, the server at %s", version, newest)
			}
			board.at.Store(1)
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  the server is restored from a backup of version %s\n", saved)
			time.Sleep(10 * time.Second)
			created := create(backup, "web-6")
			fmt.Fprintf(&b, "  web-6 is created, with version %s\n", created)
			time.Sleep(time.Hour)
			names, version = to.has()
			fmt.Fprintf(&b, "  an hour later the copy has %s at version %s\n", names, version)
			if right := names == "web-1 web-2 web-6"; right != (name == "the reflector") {
				t.Errorf("%s: the copy has %s", name, names)
			}
			cancel()
			<-done
		})
	}
	book.Trace(t, page, b.String())
}

// TestChapter03Herd: many reflectors lose one server at one moment.
func TestChapter03Herd(t *testing.T) {
	const reflectors, away = 100, 20 * time.Second
	table := "| a hundred reflectors lose their server for 20 s | requests meanwhile | most within 100 ms, once it " +
		"is back |\n|---|---|---|\n"
	var most []int
	for _, random := range []bool{false, true} {
		inWorld(t, func(w *world) {
			from := 2 * time.Minute
			w.verdict = func(a *ask) gate.Verdict {
				if a.at >= from && a.at < from+away {
					return gate.Verdict{Action: gate.Drop}
				}
				return gate.Verdict{}
			}
			w.frame = func(_ context.Context, a *ask) gate.Verdict {
				if a.at < from && w.since() >= from {
					return gate.Verdict{Action: gate.Truncate}
				}
				return gate.Verdict{}
			}
			ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
			var all sync.WaitGroup
			for n := range reflectors {
				rand := func() float64 { return 0 }
				if random {
					rand = seeded(uint64(n))
				}
				all.Go(func() { reflect(ctx, lister(t, w.RESTConfig(), nil), rand, w.copy()) })
			}
			time.Sleep(from)
			w.write() // Their connections break at it.
			time.Sleep(2 * time.Minute)
			cancel()
			all.Wait()
			meanwhile, buckets, peak := 0, map[int]int{}, 0
			for _, a := range w.asks {
				switch {
				case a.at >= from && a.at < from+away:
					meanwhile++
				case a.at >= from+away:
					n := int(a.at / (100 * time.Millisecond))
					buckets[n]++
					peak = max(peak, buckets[n])
				}
			}
			most = append(most, peak)
			name := "each waits for the same times"
			if random {
				name = "each waits for a random time"
			}
			table += fmt.Sprintf("| %s | %d | %d |\n", name, meanwhile, peak)
		})
	}
	if most[0] < reflectors || most[1] > reflectors/2 {
		t.Errorf("at most %d requests in 100 ms without chance, %d with", most[0], most[1])
	}
	book.Block(t, page, table)
}
