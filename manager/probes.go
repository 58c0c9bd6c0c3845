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

// probes are the checks that the program added, in order of addition.
type probes struct {
	mu          sync.Mutex
	live, ready []probe
}

// AddHealthzCheck adds a check to liveness: /livez and /healthz fail while do returns an error. The kubelet then
// restarts the container, so do should fail only if that helps. It is called for every probe, with the probe's request,
// possibly several times at once, and must return when the request's context ends. A panic counts as an error. Checks
// can be added at any time.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddHealthzCheck(name string, do func(*http.Request) error) error {
	return m.probes.add(&m.probes.live, "liveness", name, do)
}

// AddReadyzCheck adds a check to readiness: /readyz fails while do returns an error, and [Manager.Ready] returns it.
// For do, see [Manager.AddHealthzCheck]. It must not call Ready, which calls it with a request that has no headers and
// no deadline.
//
// Errors: an empty name, a name that is taken, no function.
func (m *Manager) AddReadyzCheck(name string, do func(*http.Request) error) error {
	return m.probes.add(&m.probes.ready, "readiness", name, do)
}

func (p *probes) add(to *[]probe, kind, name string, do func(*http.Request) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" || do == nil {
		return fmt.Errorf("manager: add a check of %s %q: a name and a function are required", kind, name)
	}
	if slices.ContainsFunc(*to, func(other probe) bool { return other.name == name }) {
		return fmt.Errorf("manager: add a check of %s: there is one with the name %q", kind, name)
	}
	*to = append(*to, probe{name, do})
	return nil
}

// checkLive runs the checks of liveness.
func (p *probes) checkLive(r *http.Request) []check { return p.check(&p.live, r) }

// checkReady runs the checks of readiness.
func (p *probes) checkReady(r *http.Request) []check { return p.check(&p.ready, r) }

func (p *probes) check(which *[]probe, r *http.Request) (checks []check) {
	p.mu.Lock()
	all := *which // Added to, but never changed.
	p.mu.Unlock()
	for _, each := range all {
		checks = append(checks, each.check(r))
	}
	return checks
}

// liveNamed returns the check of liveness with that name.
func (p *probes) liveNamed(name string) (named probe, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.live, func(other probe) bool { return other.name == name }); i >= 0 {
		return p.live[i], true
	}
	return probe{}, false
}

func (p *probes) liveNames() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, each := range p.live {
		names = append(names, each.name)
	}
	return names
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
