package manager

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// check is one line of a health report. A check with neither a problem nor a note passes without comment.
type check struct {
	name    string
	problem string // why the process is not ready
	note    string // useful for people, although the process is ready
	// refused means that the problem is a request that the API server rejects. It would be rejected whether or not this
	// process serves its webhooks, so asNote does not apply.
	refused bool
}

// asNote returns the check with its problem turned into a note, unless the API server rejects a request.
func (c check) asNote() check {
	if c.problem != "" && !c.refused {
		c.note, c.problem = c.problem, ""
	}
	return c
}

func (c check) String() string {
	switch {
	case c.problem != "":
		return "[-]" + c.name + ": " + c.problem
	case c.note != "":
		return "[+]" + c.name + ": " + c.note
	}
	return "[+]" + c.name + " ok"
}

// Ready returns nil if this process works, or could work at once if it became the leader. Otherwise the error has a
// line for each thing that is missing.
//
// A process that serves a conversion webhook is ready as soon as it can serve the webhook. Caches that are not filled,
// and work that fails, then show only in /readyz?verbose, because they may depend on the webhook. A request that the
// API server rejects, for example because a permission is missing, still counts.
func (m *Manager) Ready() error {
	var missing []error
	for _, c := range failed(m.checks(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/readyz"}})) {
		missing = append(missing, fmt.Errorf("%s: %s", c.name, c.problem))
	}
	return errors.Join(missing...)
}

// converts reports whether this process serves a conversion webhook. The API server reaches the webhook through a
// Service, which has only the ready Pods. If readiness waited for something that needs conversions, such as the first
// list of the kind, the two would wait for each other.
func (m *Manager) converts() bool {
	return slices.Contains(m.hooks.Registered(), webhook.ConvertPath) ||
		m.options.ServesConversion != nil && m.options.ServesConversion()
}

// checks returns the checks that decide about readiness. r is the request of the probe.
func (m *Manager) checks(r *http.Request) []check {
	checks := append([]check{m.checkStage()}, m.checkWork()...)
	if len(m.hooks.Registered()) > 0 {
		checks = append(checks, m.checkWebhooks())
	}
	return append(checks, m.ready.check(r)...)
}

// checkWork returns the checks of informers, of the election and of runnables.
func (m *Manager) checkWork() (checks []check) {
	reported := map[string]bool{}
	informers := m.informers.Health()
	for _, h := range informers {
		c := checkInformer(h)
		if c.problem == "" && m.isAlone(h, informers) {
			c.problem, c.note = fmt.Sprintf("%s, for %v", c.note, time.Since(h.Since).Round(time.Second)), ""
		}
		if h.Err != nil {
			reported[h.Err.Error()] = true
		}
		checks = append(checks, c)
	}
	checks = append(checks, m.checkStuck()...)
	if m.election != nil {
		checks = append(checks, m.election.check())
	}
	for _, e := range append(m.runnables.active(), m.runnables.warming()...) {
		if c, ok := checkRunnable(e, reported); ok {
			checks = append(checks, c)
		}
	}
	if m.converts() {
		for i := range checks {
			checks[i] = checks[i].asNote()
		}
	}
	return checks
}

func (m *Manager) checkStage() check {
	c := check{name: "manager"}
	switch now, err := m.state.get(); {
	case now == created:
		c.problem = "not started"
	case now == reaching && err != nil:
		c.problem = err.Error()
	case now == reaching:
		c.problem = "waiting for the API server"
	case now >= stopping:
		c.problem = "stopping"
	}
	return c
}

// checkInformer reports a problem if the cache was never filled, if it contradicts the server, if an index lacks
// objects, or if the server rejects the requests. If the server does not answer, that is not a problem of this process,
// because reads from the cache still work.
func checkInformer(h informer.Health) check {
	c := check{name: "informer " + h.Resource}
	if h.Namespace != "" {
		c.name += " in " + h.Namespace
	}
	status := apierrors.APIStatus(nil)
	switch {
	case h.Err != nil && (!h.Synced || errors.As(h.Err, &status) && refuses(h.Err)):
		c.problem, c.refused = h.Err.Error(), refuses(h.Err)
	case h.Inconsistent != nil:
		c.problem = h.Inconsistent.Error()
	case h.Err != nil:
		c.note = h.Err.Error()
	case !h.Synced:
		c.problem = "waiting for the initial list"
	case h.IndexErr != nil:
		c.problem = fmt.Sprintf("%d objects are missing from an index: %v", h.Unindexed, h.IndexErr)
	case h.UnreadableErr != nil:
		c.note = fmt.Sprintf("%d objects cannot be read: %v", h.Unreadable, h.UnreadableErr)
	}
	return c
}

// isAlone reports whether an informer has been failing for a long time while another one works. The server can then be
// reached, so the informer has a problem of its own.
func (m *Manager) isAlone(h informer.Health, all []informer.Health) bool {
	if h.Err == nil || m.options.StuckAfter < 0 || time.Since(h.Since) < m.options.StuckAfter {
		return false
	}
	return slices.ContainsFunc(all, func(other informer.Health) bool { return other.Synced && other.Err == nil })
}

// refuses reports whether the server answered with an error that stays until a person changes something.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func (e *election) check() check {
	c := check{name: "leader"}
	switch s := e.elector.Status(); {
	case s.Leading:
		c.note = "this process, " + e.lock.Identity()
	case s.Err != nil && (!s.Seen || refuses(s.Err)):
		c.problem, c.refused = s.Err.Error(), refuses(s.Err)
	case s.Err != nil: // As with informers, an unreachable server does not make this process unready.
		c.note = "waiting, " + s.Err.Error()
	case !e.campaigns.Load():
		c.problem = "waiting for the caches before this process becomes a candidate"
	case !s.Seen:
		c.problem = "waiting, the lease was not read yet"
	case s.Holder == "":
		c.note = "waiting, the lease is free"
	case s.Patience > e.options.Duration():
		c.note = fmt.Sprintf("waiting, held by %s, whose lease ends in %v unless renewed", s.Holder,
			s.Patience.Round(time.Second))
	default:
		c.note = "waiting, held by " + s.Holder
	}
	return c
}

// maxReasons is the maximum number of reasons listed for one runnable. A garbage collector without permissions has one
// for each resource.
const maxReasons = 5

// checkRunnable returns the check of a runnable that has the method Health and has not ended. It leaves out errors that
// an informer has already reported.
func checkRunnable(e *entry, reported map[string]bool) (check, bool) {
	h, ok := as[interface{ Health() error }](e.runnable)
	if !ok || e.isDone() {
		return check{}, false
	}
	c := check{name: e.name}
	if err := h.Health(); err != nil {
		var lines []string
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !reported[line] {
				lines = append(lines, strings.TrimPrefix(line, e.name+": "))
			}
		}
		if more := len(lines) - maxReasons; more > 0 {
			lines = append(lines[:maxReasons], fmt.Sprintf("and %d more", more))
		}
		c.problem = strings.Join(lines, "; ")
		if len(lines) == 0 {
			c.note = "waiting for its informers"
		}
	}
	if n, ok := as[interface{ Note() string }](e.runnable); ok && c.problem == "" && c.note == "" {
		c.note = n.Note()
	}
	return c, true
}

// defaultStuckAfter is longer than ten minutes, because every watch is reopened after at most that time.
const defaultStuckAfter = 15 * time.Minute

// progress detects counters that do not rise although there is something to do. It compares them only when it is
// called, which readiness probes do every few seconds.
type progress struct {
	mu sync.Mutex
	// marks holds the last seen value of each counter. Invariant: it holds only counters that had something to do at
	// the last call.
	marks map[string]mark
}

// mark is a counter's value and the time at which it reached that value.
type mark struct {
	count int64
	since time.Time
}

// counter is a counter that should rise while there is something to do.
type counter struct {
	owner    string // the part that the counter belongs to, in words for people
	name     string // unique within owner
	count    int64
	hasWork  bool // there is something to do
	describe func(d time.Duration) string
}

// stalled returns a check for each counter that has not risen for the duration after, although it has work.
func (p *progress) stalled(counters []counter, after time.Duration) (found []check) {
	p.mu.Lock()
	defer p.mu.Unlock()
	marks := make(map[string]mark, len(counters))
	for _, c := range counters {
		if !c.hasWork {
			continue
		}
		key := c.owner + "\n" + c.name
		now, ok := p.marks[key]
		if !ok || now.count != c.count {
			now = mark{c.count, time.Now()}
		}
		marks[key] = now
		if stalledFor := time.Since(now.since); stalledFor >= after {
			found = append(found, check{name: c.owner, problem: c.describe(stalledFor.Round(time.Second))})
		}
	}
	p.marks = marks
	return found
}

// checkStuck finds informers that make no progress. The cause is a handler, transform or index function that does not
// return, or a server that sends nothing, not even the end of a watch. checkInformer reports a server that answers with
// errors.
func (m *Manager) checkStuck() []check {
	if m.options.StuckAfter < 0 {
		return nil
	}
	failing := map[string]bool{}
	for _, h := range m.informers.Health() {
		if h.Err != nil || !h.Synced {
			failing[h.Resource] = true // already reported
		}
	}
	var counters []counter
	for name, s := range m.informers.Stats() {
		resource, _, _ := strings.Cut(name, " (")
		counters = append(counters, countersOf(name, s, !failing[resource])...)
	}
	slices.SortFunc(counters, func(a, b counter) int { return strings.Compare(a.owner+a.name, b.owner+b.name) })
	return m.progress.stalled(counters, m.options.StuckAfter)
}

func countersOf(name string, s informer.Stats, well bool) []counter {
	owner := "informer " + name
	counters := []counter{{
		owner: owner, name: "server", count: s.Events + s.Bookmarks + s.Lists + s.Watches, hasWork: well,
		describe: func(d time.Duration) string { return fmt.Sprintf("the server has sent nothing for %v", d) },
	}, {
		owner: owner, name: "cache", count: s.Batches, hasWork: s.Queued > 0,
		describe: func(d time.Duration) string {
			return fmt.Sprintf(
				"%d changes have not been taken into the cache for %v: does a transform or an index function hang?",
				s.Queued, d,
			)
		},
	}}
	for i, h := range s.Handlers {
		counters = append(counters, counter{
			owner: owner, name: fmt.Sprintf("handler %d %s", i, h.Name), count: h.Delivered, hasWork: h.Running > 0,
			describe: func(d time.Duration) string {
				return fmt.Sprintf("handler %s has not returned for %v, %d changes wait", h.Name, d, h.Pending)
			},
		})
	}
	return counters
}
