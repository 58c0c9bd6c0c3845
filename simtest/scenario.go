package simtest

import (
	"context"
	"errors"
	"fmt"
	"time"
	"weak"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
)

// DefaultQuiet is the default of [Scenario.Quiet].
const DefaultQuiet = 3 * time.Minute

// DefaultBudget is the default of [Scenario.Budget].
const DefaultBudget = 10 * time.Second

// Program is a controller process. Run returns after everything that it started has ended.
type Program = manager.Runnable

// ProgramFunc is a function that is a [Program], for example the method Start of controller-runtime's manager.
type ProgramFunc func(ctx context.Context) error

// Run implements [Program].
func (f ProgramFunc) Run(ctx context.Context) error { return f(ctx) }

// Scenario is a program, what a user does to it, and what must come of it. Only Build and Script are required.
//
// Check runs the scenario many times, and some of the runs at the same time: its functions must not share mutable
// state.
type Scenario struct {
	// Objects are there at the start. Definitions of custom resources belong here.
	Objects []runtime.Object

	// Clusters are the names of further API servers, which have Objects as well. A request through [Env.Config] whose
	// host is such a name reaches that server; all others reach the first one. [User.In] and [State.In] select one.
	Clusters []string

	// Scheme has the Go types of the objects. Nil is client-go's.
	Scheme *runtime.Scheme

	// Build makes one process. It is called again for every restart.
	Build func(e *Env) (Program, error)

	// Others makes programs that belong to the cluster, as a garbage collector. They run beside the program under test,
	// are never killed, and are not judged.
	Others []func(e *Env) (Program, error)

	// Script is what a user does. When it returns, Check lets the program settle and judges the end.
	Script func(u *User)

	// Matches returns an error if the state at the end is wrong. Nil: only the comparison with the run without faults
	// decides.
	Matches func(s *State) error

	// Always has what must hold after every write, by its name. A function returns an error if the state violates it.
	// The state must not be used after the call.
	Always map[string]func(s *State) error

	// Roles are the rules that the program's requests to the first server must stay within. Nil allows everything.
	Roles []rbacv1.PolicyRule

	// Quiet is how long, in virtual time, no object may change before the program counts as settled. It must be longer
	// than every delay that the program's work depends on. 0 is DefaultQuiet, which is longer than a server works on a
	// request whose answer was lost.
	Quiet time.Duration

	// Budget is how long, in real time, Check tries. 0 is DefaultBudget. The flag -sim.budget overrides it.
	Budget time.Duration

	// Leases lets Check also run two processes of the program and pause the one that holds the lease. The program must
	// then use leader election with one lease.
	Leases bool

	// Allow are rules whose findings are not reported. See [Finding.Rule].
	Allow []Rule

	// Ignore are fields that [RuleEnd] does not compare, with all that is in them, as [Finding.Diff] names them:
	// "deployments default/web: status.conditions[type=Ready].message". They are for fields that rightly differ with
	// the way the end was reached.
	Ignore []string

	// API configures the server, for example to evaluate CEL. Check sets Gate, Rand, Scheme, Tenant and HistoryLimit
	// itself.
	API localapi.Options

	// Serial makes one run at a time. Set it if the program has package-level state.
	Serial bool
}

// validate reports a scenario that cannot be run.
func (s *Scenario) validate(o Options) error {
	if s.Build == nil || s.Script == nil {
		return errors.New("simtest: a Scenario needs Build and Script")
	}
	if s.API.Storage != nil || s.API.Audit != nil {
		return errors.New("simtest: Scenario.API.Storage and Audit must be nil: runs must not share them")
	}
	if min(o.Budget, *budgetFlag, s.Budget, s.Quiet) < 0 || o.Runs < 0 {
		return errors.New("simtest: the budget and Scenario.Quiet must not be negative: nothing would be tried")
	}
	seen := map[string]bool{"": true, localapi.DefaultTenant: true}
	for _, name := range s.Clusters {
		if seen[name] {
			return fmt.Errorf("simtest: Scenario.Clusters has %q twice, or it is reserved", name)
		}
		seen[name] = true
	}
	return nil
}

func (s *Scenario) scheme() *runtime.Scheme {
	if s.Scheme == nil {
		return clientscheme.Scheme
	}
	return s.Scheme
}

func (s *Scenario) quiet() time.Duration {
	if s.Quiet == 0 {
		return DefaultQuiet
	}
	return s.Quiet
}

// Env is what one process of the program gets.
type Env struct {
	process *process
}

// Config returns a configuration of clients of the simulated API server. Each call returns a new one.
func (e *Env) Config() *rest.Config {
	w := e.process.world
	c, t := w.servers[""].api.RESTConfig(), &transport{e.process}
	c.Transport = t
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transports = append(w.transports, weak.Make(t))
	return c
}

// Cluster is Config for a cluster of [Scenario.Clusters].
func (e *Env) Cluster(name string) *rest.Config {
	c := e.Config()
	c.Host = "http://" + name
	return c
}

// Incarnation counts the processes of a run from 1. It serves as a name where a process needs one of its own, such as
// the identity in a lease.
func (e *Env) Incarnation() int { return e.process.number }

// Workers returns how many workers to give a controller: n, or 1 when Check tries whether a finding needs more than
// one. A controller whose number of workers does not come from here always has the same.
func (e *Env) Workers(n int) int {
	if n > 1 {
		e.process.world.manyWorkers.Store(true)
	}
	if e.process.world.plan.OneWorker {
		return min(n, 1)
	}
	return n
}
