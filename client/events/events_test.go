package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// run starts the broadcaster. The returned function stops it and returns the error of Run.
func run(t *testing.T, b *Broadcaster) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- b.Run(ctx) }()
	return func() error {
		cancel()
		return <-result
	}
}

func checkBooks(t *testing.T, s Stats) {
	t.Helper()
	sum := s.Queued + s.Sent + s.Filtered + s.Rejected + s.GivenUp + s.Overflowed + s.Invalid + s.Late + s.Undelivered
	if s.Recorded != sum {
		t.Errorf("books do not add up: recorded %d, accounted for %d: %+v", s.Recorded, sum, s)
	}
}

// Source: client-go v0.37.2 tools/record/event.go makeEvent, and kube-controller-manager, whose sources have no host.
func TestEventCarriesWhatKubectlShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		b.Recorder("deployment-controller").Eventf(pod("web"), corev1.EventTypeNormal, "Scaled", "to %d", 3)
		b.Recorder("node-controller").Eventf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			corev1.EventTypeWarning, "Gone", "gone")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		got := server.list()
		if len(got) != 2 {
			t.Fatalf("got %d events, want 2", len(got))
		}
		e := got[0]
		if want := fmt.Sprintf("web.%x", now.UnixNano()); e.Name != want || e.Namespace != "default" {
			t.Errorf("name %s/%s, want default/%s", e.Namespace, e.Name, want)
		}
		wantRef := corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web",
			UID: "web-uid", ResourceVersion: "7",
		}
		if e.InvolvedObject != wantRef {
			t.Errorf("involvedObject %+v, want %+v", e.InvolvedObject, wantRef)
		}
		if e.Message != "to 3" || e.Reason != "Scaled" || e.Type != "Normal" || e.Count != 1 {
			t.Errorf("unexpected event %+v", e)
		}
		if e.Source != (corev1.EventSource{Component: "deployment-controller"}) ||
			e.ReportingController != "deployment-controller" || e.ReportingInstance != "" {
			t.Errorf("source %+v, reporting %q/%q", e.Source, e.ReportingController, e.ReportingInstance)
		}
		if !e.FirstTimestamp.Time.Equal(now) || !e.LastTimestamp.Time.Equal(now) || !e.EventTime.IsZero() {
			t.Errorf("timestamps %v %v %v", e.FirstTimestamp, e.LastTimestamp, e.EventTime)
		}
		if got[1].Namespace != "default" || got[1].InvolvedObject.Namespace != "" {
			t.Errorf("event of a cluster-scoped object in %q about %q", got[1].Namespace,
				got[1].InvolvedObject.Namespace)
		}
		checkBooks(t, b.Stats())
	})
}

// TestAnnotatedEvents changes the annotations after the call.
func TestAnnotatedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		r := b.Recorder("c")
		annotations := map[string]string{"example.com/trace": "4711"}
		r.AnnotatedEventf(pod("web"), annotations, "Normal", "Scaled", "to %d", 3)
		annotations["example.com/trace"] = "changed"
		r.Event(pod("web"), "Normal", "Full", "at 100%")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := server.list()
		if len(got) != 2 || got[0].Message != "to 3" || got[0].Annotations["example.com/trace"] != "4711" {
			t.Errorf("got %+v", got)
		}
		if len(got) == 2 && (got[1].Message != "at 100%" || got[1].Annotations != nil) {
			t.Errorf("got %+v", got[1])
		}
		checkBooks(t, b.Stats())
	})
}

func TestRepeatIsPatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		r := b.Recorder("c")
		first := time.Now()
		for range 3 {
			r.Eventf(pod("web"), "Warning", "BackOff", "again")
			time.Sleep(time.Minute)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := server.list()
		if len(got) != 1 || got[0].Count != 3 {
			t.Fatalf("got %d events, want one with count 3: %+v", len(got), got)
		}
		if e := got[0]; !e.FirstTimestamp.Time.Equal(first) || !e.LastTimestamp.Time.Equal(first.Add(2*time.Minute)) {
			t.Errorf("first %v last %v, want %v and two minutes later", e.FirstTimestamp, e.LastTimestamp, first)
		}
		want := `{"count":2,"lastTimestamp":"2000-01-01T00:01:00Z","message":"again"}`
		if server.patches[0] != want {
			t.Errorf("patch %s, want %s", server.patches[0], want)
		}
	})
}

func TestRepeatOfExpiredEventIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		b.Recorder("c").Eventf(pod("web"), "Normal", "R", "m")
		synctest.Wait()
		server.mu.Lock()
		clear(server.events) // the server forgets events after an hour
		server.mu.Unlock()
		b.Recorder("c").Eventf(pod("web"), "Normal", "R", "m")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for _, e := range server.list() {
			if e.Count != 2 {
				t.Errorf("count %d, want 2", e.Count)
			}
		}
		if s := b.Stats(); s.Sent != 2 {
			t.Errorf("sent %d, want 2", s.Sent)
		}
	})
}

// Source: client-go v0.37.2 tools/record/events_cache.go EventAggregate: the tenth different message is the first to
// be combined.
func TestSimilarEventsAreCombined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		r := b.Recorder("c")
		for i := range 12 {
			r.Eventf(pod("web"), "Normal", "R", "message %d", i)
		}
		r.Eventf(pod("web"), "Normal", "R", "message %d", 4) // known: still an event of its own
		r.Eventf(pod("web"), "Normal", "Other", "message %d", 99)
		synctest.Wait()
		got := server.list()
		if len(got) != 11 {
			t.Fatalf("got %d events, want 9 single, 1 combined, 1 other", len(got))
		}
		combined := got[9]
		if combined.Message != "(combined from similar events): message 11" || combined.Count != 3 {
			t.Errorf("combined event %q with count %d", combined.Message, combined.Count)
		}
		if got[4].Count != 2 {
			t.Errorf("known message has count %d, want 2", got[4].Count)
		}
		time.Sleep(aggregateInterval + time.Second)
		r.Eventf(pod("web"), "Normal", "R", "message afresh")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if last := server.list()[11]; last.Message != "message afresh" {
			t.Errorf("after a silence of ten minutes: %q", last.Message)
		}
		checkBooks(t, b.Stats())
	})
}

// Source: client-go v0.37.2 tools/record/events_cache.go: burst 25, one more in 300 s, per source, object and type.
func TestSpamIsFilteredPerObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		r := b.Recorder("c")
		for range 30 {
			r.Eventf(pod("noisy"), "Normal", "R", "m")
		}
		r.Eventf(pod("noisy"), "Warning", "R", "the other type has a budget of its own")
		r.Eventf(pod("quiet"), "Normal", "R", "so has the other object")
		synctest.Wait()
		if s := b.Stats(); s.Sent != 27 || s.Filtered != 5 {
			t.Errorf("sent %d filtered %d, want 27 and 5", s.Sent, s.Filtered)
		}
		time.Sleep(spamRefill)
		for range 2 {
			r.Eventf(pod("noisy"), "Normal", "R", "m")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if s := b.Stats(); s.Sent != 28 || s.Filtered != 6 {
			t.Errorf("after five minutes: sent %d filtered %d, want 28 and 6", s.Sent, s.Filtered)
		}
		if e := server.list()[0]; e.Count != 31 {
			t.Errorf("count %d, want 31: filtered repeats are counted by the next that gets through", e.Count)
		}
		checkBooks(t, b.Stats())
	})
}

// An event with a new reason is sent, however often others were, but only up to a number of new reasons.
func TestNewReasonsAreNotFiltered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		r := b.Recorder("c")
		r.Eventf(pod("a"), "Normal", "Done", "once before")
		for i := range 40 {
			r.Eventf(pod("a"), "Normal", "Progressing", "%d of 40", i)
		}
		r.Eventf(pod("a"), "Normal", "Complete", "all 40")
		r.Eventf(pod("a"), "Normal", "Done", "too soon after the first")
		time.Sleep(spamRefill)
		r.Eventf(pod("a"), "Normal", "Progressing", "takes the token that came")
		r.Eventf(pod("a"), "Normal", "Done", "in the end")
		for i := range 100 {
			r.Eventf(pod("a"), "Normal", fmt.Sprint("Reason", i), "a reason for each")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		reasons := map[string]int{}
		for _, e := range server.list() {
			reasons[e.Reason]++
		}
		if reasons["Complete"] != 1 || reasons["Done"] != 2 || reasons["Reason22"] != 1 || reasons["Reason23"] != 0 {
			t.Errorf("events by reason: %v", reasons)
		}
		if s := b.Stats(); s.Filtered != 16+1+77 {
			t.Errorf("filtered %d, want 16 progressing, one done, and 77 with reasons of their own", s.Filtered)
		}
		checkBooks(t, b.Stats())
	})
}

// Source: client-go v0.37.2 tools/record/events_cache.go, CorrelatorOptions
func TestBurstOptions(t *testing.T) {
	byNamespace := func(e *corev1.Event) string { return e.InvolvedObject.Namespace }
	for name, tt := range map[string]struct {
		o    Options
		want int // sent
	}{
		"burst":    {Options{BurstSize: 3}, 6},
		"rate":     {Options{BurstSize: 3, QPS: 1}, 8},
		"key":      {Options{BurstSize: 3, SpamKeyFunc: byNamespace}, 3},
		"no limit": {Options{BurstSize: -1}, 40},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newFakeServer()
			b := newBroadcaster(server.Events, tt.o)
			stop := run(t, b)
			send := func(times int) {
				for range times {
					b.Recorder("c").Event(pod("a"), "Normal", "R", "m")
					b.Recorder("c").Event(pod("b"), "Normal", "R", "m")
				}
				synctest.Wait()
			}
			send(10)
			time.Sleep(time.Second)
			send(10)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if s := b.Stats(); s.Sent != tt.want || s.Sent+s.Filtered != 40 {
				t.Errorf("%s: sent %d, filtered %d, want %d sent of 40", name, s.Sent, s.Filtered, tt.want)
			}
		})
	}
}

func TestOutageIsWaitedOut(t *testing.T) {
	down := map[string]error{
		"connection refused": errConnectionRefused,
		"too many requests":  apierrors.NewTooManyRequests("slow down", 1),
		"unavailable":        apierrors.NewServiceUnavailable("starting"),
		"internal":           apierrors.NewInternalError(errors.New("etcd leader changed")),
	}
	for name, failure := range down {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer()
				server.fail = func(call int) (bool, error) {
					if call <= 3 {
						return false, failure
					}
					return true, nil
				}
				b := newBroadcaster(server.Events, Options{Random: func() float64 { return 0.5 }})
				stop := run(t, b)
				start := time.Now()
				for i := range 5 {
					b.Recorder("c").Eventf(pod("web"), "Normal", "R", "m%d", i)
				}
				for b.Stats().Sent < 5 {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if took := time.Since(start); took != 25*time.Second {
					t.Errorf("took %v, want 5+10+10 s", took)
				}
				for i, e := range server.list() {
					if e.Message != fmt.Sprintf("m%d", i) {
						t.Errorf("event %d is %q", i, e.Message)
					}
				}
				if err := stop(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestRefusedIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		server.fail = func(call int) (bool, error) {
			if call == 1 {
				return false, apierrors.NewForbidden(corev1.Resource("events"), "web", errors.New("no"))
			}
			return true, nil
		}
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		b.Recorder("c").Eventf(pod("web"), "Normal", "R", "a")
		b.Recorder("c").Eventf(pod("web"), "Normal", "R", "b")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if s := b.Stats(); s.Rejected != 1 || s.Sent != 1 || server.calls != 2 {
			t.Errorf("%+v after %d calls", s, server.calls)
		}
	})
}

func TestGivesUpAfterMaxTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		server.fail = func(int) (bool, error) { return false, errConnectionRefused }
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		b.Recorder("c").Eventf(pod("web"), "Normal", "R", "a")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := b.Stats(); s.GivenUp != 1 || server.calls != 12 || s.Lost() != 1 {
			t.Errorf("%+v after %d calls, want given up after 12", s, server.calls)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLostAnswerIsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		server.fail = func(call int) (bool, error) {
			if call == 1 {
				return true, errors.New("connection reset by peer")
			}
			return true, nil
		}
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		b.Recorder("c").Eventf(pod("web"), "Normal", "R", "a")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := server.list(); len(got) != 1 || b.Stats().Sent != 1 {
			t.Errorf("got %d events, stats %+v", len(got), b.Stats())
		}
	})
}

func TestNameTakenByAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		other, ours := newBroadcaster(server.Events, Options{}), newBroadcaster(server.Events, Options{})
		stopOther, stopOurs := run(t, other), run(t, ours)
		other.Recorder("c").Eventf(pod("web"), "Normal", "R", "theirs")
		synctest.Wait()
		ours.Recorder("c").Eventf(pod("web"), "Normal", "R", "ours")
		ours.Recorder("c").Eventf(pod("web"), "Normal", "R", "ours")
		if err := errors.Join(stopOther(), stopOurs()); err != nil {
			t.Fatal(err)
		}
		got := server.list()
		if len(got) != 2 || got[0].Count != 1 || got[1].Message != "ours" || got[1].Count != 2 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroadcaster(newFakeServer().Events, Options{QueueSize: 3})
		for i := range 5 { // Run has not been called.
			b.Recorder("c").Eventf(pod(fmt.Sprint("p", i)), "Normal", "R", "m")
		}
		if s := b.Stats(); s.Queued != 3 || s.Overflowed != 2 {
			t.Errorf("%+v, want 3 queued and 2 overflowed", s)
		}
		if err := run(t, b)(); err != nil {
			t.Fatal(err)
		}
		checkBooks(t, b.Stats())
	})
}

func TestStopDrainsWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		server.fail = func(call int) (bool, error) {
			if call == 1 { // the stop comes while the sender sleeps ten seconds
				return false, errConnectionRefused
			}
			return true, nil
		}
		b := newBroadcaster(server.Events, Options{Random: func() float64 { return 1 }})
		stop := run(t, b)
		for i := range 40 {
			b.Recorder("c").Eventf(pod(fmt.Sprint("p", i)), "Normal", "R", "m")
		}
		synctest.Wait()
		start := time.Now()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(server.list()) != 40 || time.Since(start) != 0 {
			t.Errorf("%d events sent after %v, want 40 at once", len(server.list()), time.Since(start))
		}
		b.Recorder("c").Eventf(pod("late"), "Normal", "R", "m")
		if s := b.Stats(); s.Late != 1 {
			t.Errorf("late event not counted: %+v", s)
		}
		checkBooks(t, b.Stats())
	})
}

func TestStopNamesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		server.fail = func(int) (bool, error) { return false, errConnectionRefused }
		b := newBroadcaster(server.Events, Options{DrainTimeout: 3 * time.Second})
		stop := run(t, b)
		for i := range 7 {
			b.Recorder("c").Eventf(pod(fmt.Sprint("p", i)), "Normal", "Started", "m")
		}
		start := time.Now()
		err := stop()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("drain took %v, want 3s", took)
		}
		var left *undeliveredError
		if !errors.As(err, &left) || len(left.Events) != 7 || !errors.Is(err, errConnectionRefused) {
			t.Fatalf("error %v", err)
		}
		for _, part := range []string{
			"7 events not delivered: Pod default/p0 Started, ", "and 2 more",
			"connection refused",
		} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
		checkBooks(t, b.Stats())
	})
}

func TestInvalidEventIsCounted(t *testing.T) {
	b := newBroadcaster(newFakeServer().Events, Options{})
	b.Recorder("c").Eventf(pod("web"), "Alarm", "R", "m")
	b.Recorder("c").Eventf(nil, "Normal", "R", "m")
	if s := b.Stats(); s.Invalid != 2 {
		t.Errorf("%+v, want 2 invalid", s)
	}
	checkBooks(t, b.Stats())
}

func TestRunTwiceIsAnError(t *testing.T) {
	b := newBroadcaster(newFakeServer().Events, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(ctx); err == nil {
		t.Error("second Run returned nil")
	}
}
