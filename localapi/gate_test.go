package localapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// onWrite is a gate that gives every write's request, or its answer, the verdict.
func onWrite(before, after gate.Action) gate.Gate {
	verdict := func(r *gate.Request, a gate.Action) gate.Verdict {
		if !r.Mutates() {
			return gate.Verdict{}
		}
		verdict := gate.FailWith(apierrors.NewTooManyRequests("slow down", 7))
		verdict.Action = a
		return verdict
	}
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict { return verdict(r, before) },
		OnAnswer:  func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict { return verdict(r, after) },
	}
}

func TestGateDecidesWhatBecomesOfAWrite(t *testing.T) {
	reset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }
	throttled := func(err error) bool {
		seconds, ok := apierrors.SuggestsClientDelay(err)
		return apierrors.IsTooManyRequests(err) && ok && seconds == 7
	}
	for _, c := range []struct {
		name          string
		before, after gate.Action
		applied       bool
		want          func(error) bool
	}{
		{"pass", gate.Pass, gate.Pass, true, func(err error) bool { return err == nil }},
		{"lost request", gate.Drop, gate.Pass, false, reset},
		{"failed request", gate.Fail, gate.Pass, false, throttled},
		{"lost answer", gate.Pass, gate.Drop, true, reset},
		{"failed answer", gate.Pass, gate.Fail, true, throttled},
		{
			"cut answer", gate.Pass, gate.Truncate, true,
			func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) },
		},
		{"repeated request", gate.Repeat, gate.Pass, true, apierrors.IsAlreadyExists},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, localapi.Options{Gate: onWrite(c.before, c.after)},
				func(t *testing.T, s *localapi.Server, _ kubernetes.Interface) {
					config := s.RESTConfig()
					maps := clientset(t, config).CoreV1().ConfigMaps("default")
					ctx, cancel := context.WithTimeout(t.Context(), time.Second) // client-go waits and retries on 429
					defer cancel()
					response, err := config.Transport.RoundTrip(newRequest(t, ctx, config, request{
						method: "POST", path: "/api/v1/namespaces/default/configmaps", contentType: "application/json",
						body: `{"metadata":{"name":"a"}}`,
					}))
					if err == nil {
						err = errorOf(response)
					}
					if !c.want(err) {
						t.Errorf("create: %v", err)
					}
					_, err = maps.Get(t.Context(), "a", metav1.GetOptions{})
					if applied := err == nil; applied != c.applied {
						t.Errorf("object exists: %t, want %t", applied, c.applied)
					}
				})
		})
	}
}

func TestGateFrames(t *testing.T) {
	for _, c := range []struct {
		action gate.Action
		want   []string
	}{
		{gate.Pass, []string{"ADDED a", "ADDED b", "ADDED c"}},
		{gate.Drop, []string{"ADDED a", "ADDED c"}},
		{gate.Repeat, []string{"ADDED a", "ADDED b", "ADDED b", "ADDED c"}},
		{gate.Close, []string{"ADDED a", "closed"}},
		{gate.Truncate, []string{"ADDED a", "closed"}},
		{gate.Fail, []string{"ADDED a", "ERROR 500 InternalError", "closed"}},
		{gate.Bookmark, []string{"ADDED a", "BOOKMARK", "ADDED b", "ADDED c"}},
		{gate.Garbage, []string{"ADDED a", "ERROR 500 InternalError", "closed"}}, // client-go cannot decode it
	} {
		g := gate.Funcs{OnFrame: func(_ context.Context, _ *gate.Request, f gate.Frame) gate.Verdict {
			if f.Name == "b" {
				return gate.Verdict{Action: c.action}
			}
			return gate.Verdict{}
		}}
		inBubble(t, localapi.Options{Gate: g}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
			maps := client.CoreV1().ConfigMaps("default")
			w := watchMaps(t, maps, metav1.ListOptions{})
			for _, name := range []string{"a", "b", "c"} {
				mustCreate(t, maps, configMap(name))
			}
			wantEvents(t, w, c.want...)
		})
	}
}

// TestInitialFrames: a gate can tell objects that existed when a watch began from changes, whether the client asked for
// them or got them by default.
func TestInitialFrames(t *testing.T) {
	for _, o := range []metav1.ListOptions{{}, {ResourceVersion: "0"}, {
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}} {
		var mu sync.Mutex
		initial := map[string]bool{}
		g := gate.Funcs{OnFrame: func(_ context.Context, _ *gate.Request, f gate.Frame) gate.Verdict {
			mu.Lock()
			defer mu.Unlock()
			initial[f.Name] = f.Initial
			return gate.Verdict{}
		}}
		inBubble(t, localapi.Options{Gate: g}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
			maps := client.CoreV1().ConfigMaps("default")
			mustCreate(t, maps, configMap("a"))
			w := watchMaps(t, maps, o)
			events(t, w)
			mustCreate(t, maps, configMap("b"))
			events(t, w)
		})
		if got, seen := initial["b"]; !initial["a"] || got || !seen {
			t.Errorf("with %+v: %v", o, initial)
		}
	}
}

// TestGateParksEveryOperation does what a simulator does: every request waits in the gate; the simulator waits until
// nothing moves, picks one of those that wait, and lets it go. Here it picks in an order of its own.
func TestGateParksEveryOperation(t *testing.T) {
	var mu sync.Mutex
	parked := map[string]chan struct{}{}
	g := gate.Funcs{OnRequest: func(ctx context.Context, r *gate.Request) gate.Verdict {
		if !r.Mutates() {
			return gate.Verdict{}
		}
		release := make(chan struct{})
		mu.Lock()
		parked[r.UserAgent] = release
		mu.Unlock()
		select {
		case <-release:
		case <-ctx.Done():
		}
		return gate.Verdict{}
	}}
	log := &audit.Log{}
	inBubble(t, localapi.Options{Gate: g, Audit: log},
		func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
			var wg sync.WaitGroup
			actors := []string{"x", "y", "z"}
			for _, actor := range actors {
				wg.Go(func() {
					config := s.RESTConfig()
					config.UserAgent = actor
					mustCreate(t, clientset(t, config).CoreV1().ConfigMaps("default"), configMap(actor))
				})
			}
			for _, actor := range []string{"z", "x", "y"} {
				synctest.Wait()
				mu.Lock()
				close(parked[actor])
				mu.Unlock()
				synctest.Wait()
				if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), actor,
					metav1.GetOptions{}); err != nil {
					t.Errorf("released write of %s did not happen: %v", actor, err)
				}
			}
			wg.Wait()
			var order []string
			for _, e := range log.Writes() {
				order = append(order, e.Name)
			}
			if strings.Join(order, " ") != "z x y" {
				t.Errorf("writes happened in order %v, want z x y", order)
			}
		})
}

func TestClientThatGivesUpLeavesTheGateAtOnce(t *testing.T) {
	g := gate.Funcs{OnRequest: func(ctx context.Context, r *gate.Request) gate.Verdict {
		if r.Verb == "list" {
			<-ctx.Done()
		}
		return gate.Verdict{}
	}}
	inBubble(t, localapi.Options{Gate: g}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("held list ended after %v with %v, want the client's deadline", time.Since(begin), err)
		}
	})
}

func TestGateServesThePast(t *testing.T) {
	var asOf int64
	g := gate.Funcs{OnRequest: func(context.Context, *gate.Request) gate.Verdict { return gate.Verdict{AsOf: asOf} }}
	inBubble(t, localapi.Options{Gate: g}, func(t *testing.T, _ *localapi.Server, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		a := mustCreate(t, maps, configMap("a", "k", "old"))
		past := a.ResourceVersion
		a.Data["k"] = "new"
		mustUpdate(t, maps, a)
		mustCreate(t, maps, configMap("b"))
		asOf = parseVersion(t, past)
		if got, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || got.Data["k"] != "old" ||
			got.ResourceVersion != past {
			t.Errorf("get as of %s: %v, %+v", past, err, got)
		}
		got, list := names(t, maps, metav1.ListOptions{ResourceVersion: "0"})
		wantNames(t, got, "a")
		if list.ResourceVersion != past {
			t.Errorf("list as of %s is of version %s", past, list.ResourceVersion)
		}
		wantEvents(t, watchMaps(t, maps, metav1.ListOptions{}), "MODIFIED a", "ADDED b")
	})
}

func TestAuditLog(t *testing.T) {
	log := &audit.Log{}
	_, config := start(t, localapi.Options{Audit: log})
	config.UserAgent = "tester/1.0"
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	created := mustCreate(t, maps, configMap("a"))
	if _, err := maps.Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range log.Entries(nil) {
		lines = append(lines, e.String())
	}
	want := "create configmaps default/a 201\nget configmaps default/b 404"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("audit log:\n%s\nwant:\n%s", got, want)
	}
	writes := log.Writes()
	if len(writes) != 1 || writes[0].UserAgent != "tester/1.0" || writes[0].ResourceVersion != created.ResourceVersion {
		t.Errorf("writes are %+v", writes)
	}
	log.Reset()
	if n := len(log.Entries(nil)); n != 0 {
		t.Errorf("%d entries after a reset", n)
	}
}

// TestGateOfOtherPaths: what is no resource passes the gate too.
func TestGateOfOtherPaths(t *testing.T) {
	unavailable := gate.FailWith(apierrors.NewServiceUnavailable("not now"))
	for name, g := range map[string]gate.Funcs{
		"before": {OnRequest: func(context.Context, *gate.Request) gate.Verdict { return unavailable }},
		"after":  {OnAnswer: func(context.Context, *gate.Request, gate.Answer) gate.Verdict { return unavailable }},
	} {
		_, config := start(t, localapi.Options{Gate: g})
		if code, body := answer(t, config, request{path: "/apis"}); code != http.StatusServiceUnavailable ||
			statusOf(t, body).Message != "not now" {
			t.Errorf("discovery failed %s: %d %s", name, code, body)
		}
	}
}
