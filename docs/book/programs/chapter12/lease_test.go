// Package chapter12 has the programs of the chapter about the process: three designs of a lease that fail, and what our
// elector, manager and fleet do in their place.
package chapter12

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/manager/leader"
)

// A lease is the object on the server by which processes agree who leads.
type lease struct {
	holder  string
	renewed time.Time // by the clock of the holder
	version int       // grows with each write
}

// A server keeps the lease.
type server struct {
	mu    sync.Mutex
	lease lease
	cut   map[string]bool // the processes whose requests get no answer
}

var (
	errNoAnswer = errors.New("no answer")
	errConflict = errors.New("somebody else has written the lease")
)

func (s *server) get(process string) (lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut[process] {
		return lease{}, errNoAnswer
	}
	return s.lease, nil
}

// put writes the lease if it still has the version of l.
func (s *server) put(process string, l lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cut[process]:
		return errNoAnswer
	case l.version != s.lease.version:
		return errConflict
	}
	l.version++
	s.lease = l
	return nil
}

func (s *server) setCut(process string, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut[process] = cut
}

const (
	leaseDuration = 15 * time.Second
	retryPeriod   = 2 * time.Second
)

// A process leads, or wants to.
type process struct {
	name   string
	server *server
	skew   time.Duration // how far its clock is ahead
	leads  func(bool)    // is told when it begins and ceases to lead

	seen    int       // the version that it saw last
	changed time.Time // when it saw that version first
}

func (p *process) clock() time.Time { return time.Now().Add(p.skew) }

// A design says whether a process may take a lease that somebody else holds.
type design func(p *process, l lease) bool

// nameOnly has no end: whoever holds the lease holds it until it gives it back.
func nameOnly(*process, lease) bool { return false }

// nameAndTime believes the time in the lease.
func nameAndTime(p *process, l lease) bool {
	return p.clock().Sub(l.renewed) > leaseDuration
}

// sinceItChanged believes only its own clock: it waits until it has seen the lease unchanged for long enough.
func sinceItChanged(p *process, _ lease) bool {
	return time.Since(p.changed) > leaseDuration
}

// run takes the lease when the design allows it, and renews it.
func (p *process) run(ctx context.Context, expired design) {
	look := time.NewTicker(retryPeriod)
	defer look.Stop()
	for {
		l, err := p.server.get(p.name)
		if err == nil && (l.version != p.seen || p.changed.IsZero()) {
			p.seen, p.changed = l.version, time.Now()
		}
		switch {
		case err != nil: // It knows nothing new, and goes on.
		case l.holder == p.name || l.holder == "" || expired(p, l):
			err = p.server.put(p.name, lease{p.name, p.clock(), l.version})
			p.leads(err == nil)
		default:
			p.leads(false)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

const page = "12-process"

// A diary notes what happens, and when.
type diary struct {
	began time.Time
	mu    sync.Mutex
	text  strings.Builder
}

func newDiary() *diary { return &diary{began: time.Now()} }

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(&d.text, "%6v  %s\n", time.Since(d.began).Truncate(time.Millisecond), fmt.Sprintf(format, args...))
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// trouble is what goes wrong in a run of two processes. It happens to the first one, after 20 s.
type trouble struct {
	name   string
	killed bool          // it ends, and says nothing
	cut    bool          // for 40 s its requests to the lease get no answer; its other requests do
	ahead  time.Duration // how far the clock of the second process is ahead
}

const (
	troubleAt = 20300 * time.Millisecond
	cutFor    = 40 * time.Second
	runFor    = 90 * time.Second
)

var troubles = []trouble{
	{name: "the leader is killed", killed: true},
	{name: "a clock is 20 s ahead", ahead: 20 * time.Second},
	{name: "the leader is cut off from the lease", cut: true},
}

// designNames are the rows of the table. The last one has no entry in designs: it is the framework's elector.
var (
	designNames = []string{"a name", "a name and a time", "the time since it changed", "and a deadline for the leader"}
	designs     = []design{nameOnly, nameAndTime, sinceItChanged}
)

// An interval is a time in which a process led.
type interval struct{ from, to time.Duration }

// story is what happened in one run.
type story struct {
	diary *diary
	mu    sync.Mutex
	led   [2][]interval // of each process; the last one is open while to is 0
}

// switched notes that a process begins or ceases to lead.
func (s *story) switched(process int, leads bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	led := s.led[process]
	isOpen := len(led) > 0 && led[len(led)-1].to == 0
	now := time.Since(s.diary.began)
	switch {
	case leads && !isOpen:
		s.led[process] = append(led, interval{from: now})
		s.diary.note("%s leads", names[process])
	case !leads && isOpen:
		led[len(led)-1].to = now
		s.diary.note("%s leads no longer%s", names[process], why)
	}
}

var names = [2]string{"a", "b"}

// tell runs two processes with a design for a minute and a half. The second one begins a little later.
func tell(t *testing.T, design int, trouble trouble) *story {
	t.Helper()
	s := &story{}
	synctest.Test(t, func(t *testing.T) {
		s.diary = newDiary()
		srv := &server{cut: map[string]bool{}}
		var wg sync.WaitGroup
		all, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		first, kill := context.WithCancel(all)
		defer kill()
		for i, ctx := range []context.Context{first, all} {
			skew := time.Duration(i) * trouble.ahead
			wg.Go(func() {
				if design < len(designs) {
					p := &process{name: names[i], server: srv, skew: skew, leads: func(b bool) { s.switched(i, b, "") }}
					p.run(ctx, designs[design])
				} else {
					s.elect(ctx, t, i, &lock{name: names[i], server: srv, skew: skew})
				}
			})
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(troubleAt - time.Since(s.diary.began))
		synctest.Wait()
		switch {
		case trouble.killed:
			s.diary.note("a is killed")
			s.switched(0, false, "")
			kill()
		case trouble.cut:
			s.diary.note("a's requests to the lease get no answer")
			srv.setCut("a", true)
			time.AfterFunc(cutFor, func() {
				s.diary.note("a's requests get answers again")
				srv.setCut("a", false)
			})
		}
		time.Sleep(runFor - time.Since(s.diary.began))
		for i := range names {
			s.switched(i, false, ": the run ends")
		}
		stop()
		wg.Wait()
	})
	return s
}

// elect runs a process with the framework's elector. One that is killed does not release the lease.
func (s *story) elect(ctx context.Context, t *testing.T, i int, l *lock) {
	elector, err := leader.New(ours{l}, leader.Options{Random: func() float64 { return 0 }})
	if err != nil {
		t.Error(err)
		return
	}
	for ctx.Err() == nil {
		err := elector.Run(ctx, func(tenure context.Context) error {
			s.switched(i, true, "")
			select {
			case <-tenure.Done():
				s.switched(i, false, ": "+context.Cause(tenure).Error())
				return nil
			case <-ctx.Done():
				return leader.ErrWorkRemains
			}
		})
		if err != nil && !errors.Is(err, leader.ErrLost) && !errors.Is(err, leader.ErrWorkRemains) {
			t.Error(err)
		}
	}
}

// both is how long both processes led.
func (s *story) both() (sum time.Duration) {
	for _, a := range s.led[0] {
		for _, b := range s.led[1] {
			sum += max(0, min(a.to, b.to)-max(a.from, b.from))
		}
	}
	return sum
}

// nobody is how long after the trouble nobody led, and whether that ended.
func (s *story) nobody() (gap time.Duration, ended bool) {
	for _, b := range s.led[1] {
		if b.from >= troubleAt {
			return b.from - troubleAt, true
		}
	}
	return 0, false
}

func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// TestChapter12Designs compares the designs of a lease.
func TestChapter12Designs(t *testing.T) {
	table := "| the lease holds"
	for _, trouble := range troubles {
		table += " | " + trouble.name
	}
	table += " |\n|---|---|---|---|\n"
	chart := figure.TimeChart{
		Title: "Four designs of a lease",
		Desc: "With a name only, nobody leads after the leader was killed. With a time in the lease, a process whose " +
			"clock is ahead leads beside the leader. When each process waits by its own clock, a leader that is cut " +
			"off goes on beside the next one. With a deadline for the leader, it stops before the next one begins.",
		Until: 90, Step: 10, Unit: " s",
	}
	for d, name := range designNames {
		row := "| " + name
		for _, trouble := range troubles {
			s := tell(t, d, trouble)
			gap, ended := s.nobody()
			cell, class := "two lead for "+seconds(s.both()), figure.Bad
			switch {
			case trouble.killed && !ended:
				cell = "nobody leads any more"
			case trouble.killed:
				cell, class = "nobody leads for "+seconds(gap), figure.Good
			case s.both() == 0:
				cell, class = "one leads", figure.Good
			}
			row += " | " + cell
			if shown := troubles[min(d, 2)]; shown.name == trouble.name {
				if want := d == len(designs); (class == figure.Good) != want {
					t.Errorf("%s, %s: %s", name, trouble.name, cell)
				}
				heading := fmt.Sprintf("%d  %s: %s", d+1, name, trouble.name)
				chart.Panels = append(chart.Panels, s.panel(heading, cell, class))
			}
		}
		table += row + " |\n"
	}
	book.Block(t, page, table)
	book.Figure(t, "12-leases", chart.Draw())
}

// panel draws who led when.
func (s *story) panel(heading, remark string, class figure.Class) figure.Panel {
	p := figure.Panel{Heading: heading, Remark: remark, RemarkClass: class}
	for i, name := range names {
		lane := figure.Lane{Name: name + " leads"}
		for _, own := range s.led[i] {
			cut := []figure.Span{{From: own.from.Seconds(), To: own.to.Seconds(), Class: figure.A}}
			for _, other := range s.led[1-i] {
				from, to := max(own.from, other.from), min(own.to, other.to)
				if last := &cut[len(cut)-1]; from < to {
					rest := figure.Span{From: to.Seconds(), To: last.To, Class: figure.A}
					last.To = from.Seconds()
					cut = append(cut, figure.Span{From: from.Seconds(), To: to.Seconds(), Class: figure.Bad}, rest)
				}
			}
			for _, span := range cut {
				if span.To > span.From {
					lane.Spans = append(lane.Spans, span)
				}
			}
		}
		p.Lanes = append(p.Lanes, lane)
	}
	return p
}

// TestChapter12Cut shows a leader that is cut off from the lease, with our elector.
func TestChapter12Cut(t *testing.T) {
	s := tell(t, len(designs), troubles[2])
	if s.both() > 0 {
		t.Error("two led at once")
	}
	book.Trace(t, page, s.diary.String())
}
