package manager

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// probe is a check that the program added.
type probe struct {
	name string
	do   func(*http.Request) error
}

// probes are the checks that the program added to liveness or to readiness, in order of addition.
type probes struct {
	mu  sync.Mutex
	all []probe // Added to, but never changed.
}

// AddHealthzCheck adds a check to liveness: /livez and /healthz fail while do returns an error. The kubelet then
// restarts the container, so do should fail only if that helps. It is called for every probe, with the probe's request,
// possibly several times at once, and must return when the request's context ends. A panic counts as an error. Checks
// can be added at any time.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddHealthzCheck(name string, do func(*http.Request) error) error {
	return m.live.add("liveness", name, do)
}

// AddReadyzCheck adds a check to readiness: /readyz fails while do returns an error, and [Manager.Ready] returns it.
// For do, see [Manager.AddHealthzCheck]. It must not call Ready, which calls it with a request that has no headers and
// no deadline.
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

// check runs all of them.
func (p *probes) check(r *http.Request) (checks []check) {
	for _, each := range p.list() {
		checks = append(checks, each.check(r))
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
