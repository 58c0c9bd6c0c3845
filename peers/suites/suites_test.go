package suites

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/peers/suites/parts"
)

// theirs names the parts of an unmodified suite.
const theirs = "theirs"

// suite is one of controller-runtime's packages of tests.
type suite struct {
	// path is the package's, below sigs.k8s.io/controller-runtime/pkg.
	path string
	// parts are the sets that it is run with, beside theirs.
	parts []string
	// swaps are the replacements in its own files; those of [defaults] come with any set of parts.
	swaps []swap
	// slow suites run with FLYBALL_SUITES=all only.
	slow bool
	// hangs has, by the set of parts, the full text of a spec that never ends with it and is not run. It counts as
	// failed.
	hangs map[string]string
	// metrics suites have managers that serve metrics at :8080. Where something else does, they hang.
	metrics bool
}

// name is the path as one part of a test's name.
func (s *suite) name() string { return strings.ReplaceAll(s.path, "/", "-") }

var (
	caches  = []string{parts.Cache, parts.Lean}
	managed = []string{parts.Cache, parts.Lean, parts.Manager}
	hooked  = []string{parts.Cache, parts.Lean, parts.Manager, parts.Webhooks}
)

// suites are those that need a server, or construct what Flyball has a part for.
var suites = []suite{
	{
		path: "builder", parts: hooked,
		swaps: []swap{{file: "controller_test.go", of: "manager"}, {file: "webhook_test.go", of: "manager"}},
	},
	{
		path: "cache", parts: caches, slow: true,
		swaps: []swap{{file: "cache_test.go", of: "cache"}, {file: "informer_cache_test.go", of: "cache"}},
	},
	{path: "client", parts: []string{parts.Cache, parts.Writes}, swaps: []swap{
		{file: "client_test.go", of: "client"},
		{file: "dryrun_test.go", of: "client"},
		{file: "fieldvalidation_test.go", of: "client"},
		{file: "namespaced_client_test.go", of: "client"},
	}},
	{path: "client/apiutil"},
	{path: "client/config"},
	{path: "cluster", parts: caches},
	{
		path: "controller", parts: managed,
		swaps: []swap{
			{file: "controller_test.go", of: "manager"},
			{file: "controller_integration_test.go", of: "manager"},
		},
	},
	{path: "controller/controllerutil"},
	{path: "envtest"},
	{path: "handler"},
	{
		path: "internal/controller", parts: managed, slow: true, metrics: true,
		swaps: []swap{{file: "controller_test.go", of: "manager"}, {file: "controller_test.go", of: "cache"}},
	},
	{
		path: "internal/recorder", parts: managed, slow: true, metrics: true,
		swaps: []swap{{file: "recorder_integration_test.go", of: "manager"}},
	},
	{path: "internal/source"},
	{
		path: "manager", parts: managed, slow: true,
		swaps: []swap{{file: "manager_test.go", of: "manager", shell: true}},
		hangs: map[string]string{
			parts.Manager: "manger.Manager New with leader election enabled should disable gracefulShutdown when " +
				"stopping to lead",
		},
	},
	{
		path: "manager/internal/integration", parts: hooked,
		swaps: []swap{{file: "manager_test.go", of: "manager", shell: true}},
	},
	{path: "metrics/filters", parts: managed, swaps: []swap{{file: "filters_test.go", of: "manager", shell: true}}},
	{path: "reconcile"},
	{path: "source", parts: caches, swaps: []swap{{file: "source_suite_test.go", of: "cache"}}},
	{
		path: "webhook", parts: hooked, slow: true, metrics: true,
		swaps: []swap{{file: "webhook_integration_test.go", of: "manager"}},
	},
	{path: "webhook/admission", parts: []string{parts.Webhooks}},
	{path: "webhook/conversion", parts: []string{parts.Webhooks}},
}

// run is a suite on a server with a set of parts.
type run struct {
	suite  *suite
	server string
	parts  string
}

func (r run) String() string { return r.suite.path + " on " + r.server + " with " + r.parts }

// runs are those to do: the baseline first, so that a failure elsewhere can be told apart.
func runs(all bool) []run {
	var out []run
	for _, set := range []string{theirs, parts.Cache, parts.Lean, parts.Writes, parts.Manager, parts.Webhooks} {
		for _, server := range []string{apiserver, local} {
			for i := range suites {
				s := &suites[i]
				if set != theirs && !slices.Contains(s.parts, set) {
					continue
				}
				if !all && (s.slow || set != theirs || server != local) {
					continue
				}
				out = append(out, run{suite: s, server: server, parts: set})
			}
		}
	}
	return out
}

// TestSuites runs the suites and compares their failures with the exceptions. It prints tables of the results; a run
// of all suites writes them to docs/localapi.md and docs/swap-in.md.
func TestSuites(t *testing.T) {
	known := readExceptions(t)
	b := newBench(t)
	var results table
	before := load(t)
	for _, r := range runs(os.Getenv("FLYBALL_SUITES") == "all") {
		t.Run(strings.Join([]string{r.parts, r.server, r.suite.name()}, "/"), func(t *testing.T) {
			got, took := b.run(t, r)
			results.add(r, got, took)
			for _, problem := range known.judge(r, got, results.baseline(r.suite)) {
				t.Error(problem)
			}
		})
	}
	heading := heading(before, load(t))
	fmt.Print(heading, results.unmodified(known), "\n", results.swapped(known))
	if len(results.rows) == len(runs(true)) {
		if err := results.write(known, heading); err != nil {
			t.Error(err)
		}
	}
}
