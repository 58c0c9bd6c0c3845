package manager

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/flyball-dev/flyball/manager/internal/serving"
)

// HealthHandler returns a handler for /livez, /healthz and /readyz, all with ?verbose. /livez/NAME and /healthz/NAME
// report one check of [Manager.AddHealthzCheck] or one runnable; /readyz/NAME reports one of the checks that
// /readyz?verbose lists.
func (m *Manager) HealthHandler() http.Handler { return m.healthHandler(check.String) }

// healthHandler is HealthHandler with a function that formats a check.
func (m *Manager) healthHandler(format func(check) string) http.Handler {
	h := &health{m, format}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", h.serveLive)
	mux.HandleFunc("GET /livez/{name}", h.serveOne)
	mux.HandleFunc("GET /healthz", h.serveLive)
	mux.HandleFunc("GET /healthz/{name}", h.serveOne)
	mux.HandleFunc("GET /readyz", h.serveReady)
	mux.HandleFunc("GET /readyz/{name}", h.serveOneReady)
	return mux
}

// withoutReason formats a check for unauthenticated readers: whether it passed, but not why.
//
// Source: k8s.io/apiserver v0.37.2 pkg/server/healthz, for the words.
func withoutReason(c check) string {
	if c.problem != "" {
		return "[-]" + c.name + " failed: reason withheld"
	}
	return "[+]" + c.name + " ok"
}

// health serves the probes.
type health struct {
	*Manager
	format func(check) string
}

// serveLive succeeds as long as this process can answer and the program's own checks of liveness pass. With verbose it
// also reports the checks of serveReady, which do not count here.
func (h *health) serveLive(w http.ResponseWriter, r *http.Request) {
	own := h.live.check(r)
	h.answer(w, r, "livez", http.StatusInternalServerError, own, func() []check { return append(own, h.checks(r)...) })
}

func (h *health) serveReady(w http.ResponseWriter, r *http.Request) {
	checks := h.checks(r)
	h.answer(w, r, "readyz", http.StatusServiceUnavailable, checks, func() []check { return checks })
}

// answer answers a probe, with the status failure if one of checks has failed. It reports what verbose returns if the
// request has that parameter; otherwise the checks that have failed or, if none has, the notes.
func (h *health) answer(w http.ResponseWriter, r *http.Request, probe string, failure int, checks []check,
	verbose func() []check,
) {
	missing := failed(checks)
	notes := slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.note == "" })
	code, verdict := http.StatusOK, probe+" check passed"
	if len(missing) > 0 {
		code, verdict = failure, probe+" check failed"
	}
	switch {
	case r.URL.Query().Has("verbose"):
		serving.Answer(w, code, h.report(verbose()), verdict)
	case len(missing) > 0:
		serving.Answer(w, code, h.report(missing))
	case len(notes) > 0:
		serving.Answer(w, code, "ok", h.report(notes))
	default:
		serving.Answer(w, code, "ok")
	}
}

// failed returns the checks that did not pass.
func failed(checks []check) []check {
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.problem == "" })
}

func (h *health) serveOne(w http.ResponseWriter, r *http.Request) {
	e, started := h.runnables.find(r.PathValue("name"))
	known := namesOf(h.runnables.all())
	for _, own := range h.live.list() {
		known = append(known, own.name)
		if own.name != r.PathValue("name") {
			continue
		}
		if c := own.check(r); e == nil || c.problem != "" {
			h.answerOne(w, c, http.StatusInternalServerError)
			return
		}
	}
	switch {
	case e == nil:
		serving.Answer(w, http.StatusNotFound, "unknown check; known: "+strings.Join(known, ", "))
		return
	case !started && !slices.Contains(h.runnables.warming(), e):
		serving.Answer(w, http.StatusOK, h.format(check{name: e.name, note: "waiting for the leader lease"}))
		return
	}
	c, _ := checkRunnable(e, nil)
	c.name = e.name
	if !started {
		c.note = "waiting for the leader lease"
	}
	h.answerOne(w, c, http.StatusInternalServerError)
}

func (h *health) serveOneReady(w http.ResponseWriter, r *http.Request) {
	checks := h.checks(r)
	known := make([]string, 0, len(checks))
	for _, c := range checks {
		if known = append(known, c.name); c.name != r.PathValue("name") {
			continue
		}
		h.answerOne(w, c, http.StatusServiceUnavailable)
		return
	}
	serving.Answer(w, http.StatusNotFound, "unknown check; known: "+strings.Join(known, ", "))
}

// answerOne answers with one check, and with the status failure if it has failed.
func (h *health) answerOne(w http.ResponseWriter, c check, failure int) {
	code := http.StatusOK
	if c.problem != "" {
		code = failure
	}
	serving.Answer(w, code, h.format(c))
}

func (h *health) report(checks []check) string {
	lines := make([]string, 0, len(checks))
	for _, c := range checks {
		lines = append(lines, h.format(c))
	}
	return strings.Join(lines, "\n")
}

// probe is a check that the program added.
type probe struct {
	name string
	do   func(*http.Request) error
}

// probes are the checks that the program added to liveness or to readiness, in order of addition.
type probes struct {
	mu  sync.Mutex
	all []probe // elements are appended, and never changed
}

// AddHealthzCheck adds a check to liveness: /livez and /healthz fail while do returns an error. The kubelet then
// restarts the container, so do should fail only if a restart helps. Every probe calls do with its request. The calls
// may overlap, and must return when the request's context ends. A panic counts as an error. Checks can be added at any
// time.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddHealthzCheck(name string, do func(*http.Request) error) error {
	return m.live.add("liveness", name, do)
}

// AddReadyzCheck adds a check to readiness: /readyz fails while do returns an error, and [Manager.Ready] returns that
// error. [Manager.AddHealthzCheck] describes the calls of do. Ready also calls do, with a request that has neither
// headers nor a deadline, so do must not call Ready.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddReadyzCheck(name string, do func(*http.Request) error) error {
	return m.ready.add("readiness", name, do)
}

func (p *probes) add(kind, name string, do func(*http.Request) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" || do == nil {
		return fmt.Errorf("manager: add a check of %s %q: a name and a function are required", kind, name)
	}
	if slices.ContainsFunc(p.all, func(other probe) bool { return other.name == name }) {
		return fmt.Errorf("manager: add a check of %s: there is one with the name %q", kind, name)
	}
	p.all = append(p.all, probe{name, do})
	return nil
}

func (p *probes) list() []probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// check runs all probes.
func (p *probes) check(r *http.Request) (checks []check) {
	for _, probe := range p.list() {
		checks = append(checks, probe.check(r))
	}
	return checks
}

func (p probe) check(r *http.Request) (c check) {
	c.name = p.name
	defer func() {
		if v := recover(); v != nil {
			c.problem = fmt.Sprintf("the check panicked: %v", v)
		}
	}()
	if err := p.do(r); err != nil {
		c.problem = err.Error()
	}
	return c
}
