package leader

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A hall runs electors and records when each of them led.
type hall struct {
	t      *testing.T
	server *Server
	began  time.Time
	wg     sync.WaitGroup

	mu  sync.Mutex
	log []string
	// leads counts the processes that lead.
	leads int
}

func (h *hall) note(what string) { h.log = append(h.log, time.Since(h.began).String()+" "+what) }

// candidate is a process that leads until the test stops it.
type candidate struct {
	*hall
	name string
	ctx  context.Context
	stop context.CancelFunc
	err  error
	// after is how long the work continues after the stop, or after the lease is lost.
	after time.Duration
	// works reports whether the work has begun and not returned.
	works bool
}

type nameKey struct{}

// enter starts a process.
func (h *hall) enter(name string) *candidate {
	c := &candidate{hall: h, name: name}
	c.ctx, c.stop = context.WithCancel(context.WithValue(context.Background(), nameKey{}, name))
	h.wg.Go(func() {
		c.err = New(name, h.server).Run(c.ctx, c.work)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.works {
			c.note("Run of " + name + " returns before its work")
		}
	})
	synctest.Wait()
	return c
}

func (c *candidate) work(tenure context.Context) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.works = false
	}()
	c.mu.Lock()
	c.note(c.name + " leads")
	if c.works = true; tenure.Value(nameKey{}) != c.name {
		c.note("the context of the work lacks the values of that of Run")
	}
	if c.leads++; c.leads > 1 {
		c.note("two lead")
	}
	c.mu.Unlock()
	why := " ends"
	select {
	case <-tenure.Done():
		if why = " loses the lease"; !errors.Is(context.Cause(tenure), ErrLost) {
			why = " is cancelled without the cause ErrLost"
		}
		defer time.Sleep(c.after)
	case <-c.ctx.Done():
		time.Sleep(c.after)
		if tenure.Err() != nil {
			why = " loses the lease while it stops"
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(c.name + why)
	c.leads--
}

// hang makes the requests of a process hang, or lets them continue.
func (h *hall) hang(name string, hangs bool) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	if hangs {
		h.server.hangs[name] = make(chan struct{})
		return
	}
	close(h.server.hangs[name])
	delete(h.server.hangs, name)
}

// slow delays the answers to writes, which the server carries out at once.
func (h *hall) slow(d time.Duration) {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.server.slow = d
}

// run runs a test in virtual time.
func run(t *testing.T, test func(t *testing.T, h *hall)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &hall{t: t, server: &Server{hangs: map[string]chan struct{}{}}, began: time.Now()}
		test(t, h)
		h.wg.Wait()
	})
}

// want compares the events with the expected ones.
func (h *hall) want(why string, want ...string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.log, want) {
		h.t.Errorf("This happened:\n  %s\nThis should have:\n  %s\n%s", strings.Join(h.log, "\n  "),
			strings.Join(want, "\n  "), why)
	}
}

func Test1WhoMayTakeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New("b", &Server{})
		if e.look(Lease{}); !e.mayTake() {
			t.Error("The lease has no holder. Anybody may take it.")
		}
		e.look(Lease{Holder: "a", Version: 7})
		if e.mayTake() {
			t.Error("The lease is held by a, and b sees it for the first time. Perhaps a has just renewed it.")
		}
		time.Sleep(LeaseDuration - time.Second)
		e.look(Lease{Holder: "a", Version: 8})
		time.Sleep(LeaseDuration - time.Second)
		if e.look(Lease{Holder: "a", Version: 8}); e.mayTake() {
			t.Error("The lease has changed 14s ago. Its holder may lead for some time yet.")
		}
		time.Sleep(time.Second)
		if e.look(Lease{Holder: "a", Version: 8}); !e.mayTake() {
			t.Error("The lease has not changed for 15s. Its holder leads no longer, whatever has become of it.")
		}
	})
}

func Test2OneCandidateLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		held, sent, ok := New("a", s).campaign(t.Context())
		if !ok || held != (Lease{Holder: "a", Version: 1}) || sent.IsZero() {
			t.Fatalf("Nobody holds the lease, and a asks for it. campaign returned %+v, %v, %v.", held, sent, ok)
		}
	})
}

func Test3ACandidateThatIsStoppedGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{lease: Lease{Holder: "a", Version: 1}}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if _, _, ok := New("b", s).campaign(ctx); ok {
			t.Fatal("The lease is held, and its holder may be at work. campaign took it within 5s.")
		}
		if s.lease.Holder != "a" {
			t.Fatalf("The lease is held by %q now.", s.lease.Holder)
		}
	})
}

func Test4TheLeaderRenewsWhileItWorks(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		a := h.enter("a")
		time.Sleep(100 * time.Millisecond)
		b := h.enter("b")
		time.Sleep(2 * time.Minute)
		h.want("The leader has to write the lease every 2s, or others take it.", "0s a leads")
		b.stop()
		synctest.Wait()
		a.stop()
		h.wg.Wait()
		if a.err != nil || b.err != nil {
			t.Errorf("Both were asked to stop. Their Run returned %v and %v, instead of nil.", a.err, b.err)
		}
		if h.server.lease.Holder != "" {
			t.Errorf("The work has returned, and the lease is still held by %q. The next leader has to wait for it.",
				h.server.lease.Holder)
		}
	})
}

func Test5AnotherTakesOver(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		a := h.enter("a")
		time.Sleep(100 * time.Millisecond)
		b := h.enter("b")
		a.stop()
		time.Sleep(5 * time.Second)
		h.want("a has ended in good order: it gave the lease back, and b sees that at its next look.",
			"0s a leads", "100ms a ends", "2.1s b leads")
		b.stop()
	})
}

func Test6TheLeaseIsGivenBackLast(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		a := h.enter("a")
		a.after = 29 * time.Second // It ends between two looks of b.
		time.Sleep(100 * time.Millisecond)
		b := h.enter("b")
		a.stop()
		time.Sleep(40 * time.Second)
		h.want("a was asked to stop, and its work took 29s more. All that time it has to hold and to renew the lease.",
			"0s a leads", "29.1s a ends", "30.1s b leads")
		b.stop()
	})
}

func Test7ALeaderThatIsCutOffStopsInTime(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		a := h.enter("a")
		time.Sleep(100 * time.Millisecond)
		b := h.enter("b")
		a.after = 3 * time.Second
		time.Sleep(20 * time.Second)
		h.hang("a", true)
		time.Sleep(time.Minute)
		h.want("The renewals of a hang from 20.1s on; it sent the last one that was accepted at 20s. It has to stop "+
			"10s after that, although no answer tells it to. b may begin 15s after it saw the lease change.",
			"0s a leads", "30s a loses the lease", "36.1s b leads")
		h.hang("a", false)
		b.stop()
		h.wg.Wait()
		if !errors.Is(a.err, ErrLost) {
			t.Errorf("a lost the lease. Its Run returned %v, and should have returned ErrLost.", a.err)
		}
	})
}

func Test8AShortOutageIsNotTheEnd(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		a := h.enter("a")
		time.Sleep(3 * time.Second)
		h.hang("a", true)
		time.Sleep(5 * time.Second)
		h.hang("a", false)
		time.Sleep(time.Minute)
		h.want("The renewals of a hung for 5s only. The one that was answered in the end counts.", "0s a leads")
		a.stop()
	})
}

func Test9AnAnswerThatIsLate(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		a := h.enter("a")
		time.Sleep(100 * time.Millisecond)
		b := h.enter("b")
		h.slow(7 * time.Second)
		time.Sleep(3 * time.Second)
		h.slow(0)
		h.hang("a", true)
		time.Sleep(time.Minute)
		h.want("The server stored what a sent after 2s at once, and took 7s to answer. All later requests of a hang. "+
			"b counts from 2.1s, when it saw the lease change, and not from 9s, when a had its answer. So a has to "+
			"stop 10s after it sent the write.", "0s a leads", "12s a loses the lease", "18.1s b leads")
		h.hang("a", false)
		b.stop()
		h.wg.Wait()
		if !errors.Is(a.err, ErrLost) {
			t.Errorf("a lost the lease. Its Run returned %v, and should have returned ErrLost.", a.err)
		}
	})
}

func Test10NeverTwo(t *testing.T) {
	run(t, func(t *testing.T, h *hall) {
		var all []*candidate
		for _, name := range []string{"a", "b", "c", "d"} {
			all = append(all, h.enter(name))
		}
		for round := range 40 {
			time.Sleep(time.Duration(round%7) * 3100 * time.Millisecond)
			c := all[round%len(all)]
			h.hang(c.name, true)
			time.Sleep(time.Duration(round%5) * 4300 * time.Millisecond)
			h.hang(c.name, false)
			c.stop()
			synctest.Wait()
			all[round%len(all)] = h.enter(c.name)
		}
		for _, c := range all {
			c.stop()
		}
		h.wg.Wait()
		if slices.ContainsFunc(h.log, func(line string) bool { return strings.Contains(line, "two lead") }) {
			t.Errorf("Two led at once:\n  %s", strings.Join(h.log, "\n  "))
		}
		if len(h.log) < 20 {
			t.Errorf("In 40 rounds, only %d things happened: %q", len(h.log), h.log)
		}
	})
}
