package manager

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
)

// check is one line of a health report. With neither problem nor note all is well.
type check struct {
	name    string
	problem string // what is missing: the process is not ready
	note    string // what a person may want to know all the same
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

// Ready is nil when this process does its work, or could at once if it led. Else the error says in words what is missing, one
// line each.
func (m *Manager) Ready() error {
	var missing []error
	for _, c := range m.checks() {
		if c.problem != "" {
			missing = append(missing, fmt.Errorf("%s: %s", c.name, c.problem))
		}
	}
	return errors.Join(missing...)
}

// checks asks everything that has a say in readiness.
func (m *Manager) checks() []check {
	checks := []check{m.checkStage()}
	said := map[string]bool{}
	for _, h := range m.informers.Health() {
		c := checkInformer(h)
		if h.Err != nil {
			said[h.Err.Error()] = true
		}
		checks = append(checks, c)
	}
	if m.election != nil {
		checks = append(checks, m.election.check())
	}
	for _, e := range m.runnables.active() {
		if c, ok := checkRunnable(e, said); ok {
			checks = append(checks, c)
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

// checkInformer: a cache that was never filled is a problem, and so is a server that refuses. A server that does not answer is
// its own problem, not one of this process: the cache serves on.
func checkInformer(h informer.Health) check {
	c := check{name: "informer " + h.Resource}
	if h.Namespace != "" {
		c.name += " in " + h.Namespace
	}
	status := apierrors.APIStatus(nil)
	switch {
	case h.Err != nil && (!h.Synced || errors.As(h.Err, &status) && refuses(h.Err)):
		c.problem = h.Err.Error()
	case h.Err != nil:
		c.note = h.Err.Error()
	case !h.Synced:
		c.problem = "the first list has not been read yet"
	case h.IndexErr != nil:
		c.problem = fmt.Sprintf("%d objects are missing from an index: %v", h.Unindexed, h.IndexErr)
	}
	return c
}

// refuses says that the server answered, and that asking again will not help until somebody changes something.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func (e *election) check() check {
	c := check{name: "leader"}
	switch s := e.elector.Status(); {
	case s.Leading:
		c.note = "this process, " + e.options.Identity
	case s.Err != nil:
		c.problem = s.Err.Error()
	case !s.Seen:
		c.problem = "waiting, the lease was not read yet"
	case s.Holder == "":
		c.note = "waiting, held by nobody"
	default:
		c.note = "waiting, held by " + s.Holder
	}
	return c
}

// mostReasons is how many reasons of one runnable are told: the garbage collector without permissions has one for each resource.
const mostReasons = 5

// checkRunnable asks a runnable that was started and has something to say. What an informer has said already is not repeated.
func checkRunnable(e *entry, said map[string]bool) (check, bool) {
	h, ok := as[interface{ Health() error }](e.runnable)
	if !ok || e.isDone() {
		return check{}, false
	}
	c := check{name: e.name}
	if err := h.Health(); err != nil {
		var news []string
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !said[line] {
				news = append(news, line)
			}
		}
		if more := len(news) - mostReasons; more > 0 {
			news = append(news[:mostReasons], fmt.Sprintf("and %d more", more))
		}
		c.problem = strings.Join(news, "; ")
		if len(news) == 0 {
			c.note = "waiting for its informers"
		}
	}
	return c, true
}

// HealthHandler serves /livez, /healthz and /readyz, all with ?verbose, and /healthz/NAME for one runnable.
func (m *Manager) HealthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", m.serveLive)
	mux.HandleFunc("GET /healthz", m.serveLive)
	mux.HandleFunc("GET /healthz/{name}", m.serveOne)
	mux.HandleFunc("GET /readyz", m.serveReady)
	return mux
}

// serveLive answers as long as this process can answer. With verbose it tells what serveReady would, but stays green.
func (m *Manager) serveLive(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("verbose") {
		answer(w, http.StatusOK, "ok")
		return
	}
	answer(w, http.StatusOK, report(m.checks()), "livez check passed")
}

func (m *Manager) serveReady(w http.ResponseWriter, r *http.Request) {
	checks := m.checks()
	var missing, notes []check
	for _, c := range checks {
		if c.problem != "" {
			missing = append(missing, c)
		} else if c.note != "" {
			notes = append(notes, c)
		}
	}
	verbose := r.URL.Query().Has("verbose")
	switch {
	case len(missing) > 0 && verbose:
		answer(w, http.StatusServiceUnavailable, report(checks), "readyz check failed")
	case len(missing) > 0:
		answer(w, http.StatusServiceUnavailable, report(missing))
	case verbose:
		answer(w, http.StatusOK, report(checks), "readyz check passed")
	case len(notes) > 0:
		answer(w, http.StatusOK, "ok", report(notes))
	default:
		answer(w, http.StatusOK, "ok")
	}
}

func (m *Manager) serveOne(w http.ResponseWriter, r *http.Request) {
	e, started := m.runnables.find(r.PathValue("name"))
	switch {
	case e == nil:
		answer(w, http.StatusNotFound, "unknown; known are: "+strings.Join(m.runnables.names(), ", "))
		return
	case !started:
		answer(w, http.StatusOK, "[+]"+e.name+": waiting for the leader lease")
		return
	}
	c, _ := checkRunnable(e, nil)
	c.name = e.name
	if c.problem != "" {
		answer(w, http.StatusInternalServerError, c.String())
		return
	}
	answer(w, http.StatusOK, c.String())
}

func report(checks []check) string {
	lines := make([]string, 0, len(checks))
	for _, c := range checks {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

func answer(w http.ResponseWriter, code int, paragraphs ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, strings.Join(paragraphs, "\n"))
}
