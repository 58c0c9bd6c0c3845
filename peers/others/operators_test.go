package others

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/docblock"
)

// operator is somebody's operator with a suite.
type operator struct {
	name, module, version string

	// project is one that kubebuilder writes; "": the module itself.
	project string

	// made are the folders that the project's Makefile makes, or that its repository has and its module lacks.
	made []made

	// suite is the folder of the suite in the module, tags are what it is built with, and env is added to the
	// environment of its program.
	suite, tags string
	env         []string

	// home: the suite takes KUBECONFIG for a cluster that has its definitions. It finds the kubeconfig where kubectl
	// has it, in the home folder, and installs them.
	home bool

	// plain: the suite has tests of package testing, and no specs of ginkgo.
	plain bool

	// delay is for how long localapi holds the answer to a write back.
	delay time.Duration

	// changed are modules that are changed for the suite with our parts, and own the changes of the operator's module.
	changed []dependency
	own     []change

	// known are the specs that fail. Each fails where it says, and nowhere else.
	known []exception
}

// made is a folder of an operator that is copied from a folder of a module: its own ("") or another.
type made struct{ folder, module, version, from string }

// on is how the table names the server.
func (o operator) on(server string) string {
	if o.delay > 0 && server == embedded {
		return fmt.Sprintf("%s, %v a write", server, o.delay)
	}
	return server
}

// exception is a spec that fails, and why.
type exception struct {
	spec   string
	on     []string // the runs in which it fails, by the end of their names; nil: all
	reason string

	// sometimes: the spec itself is a race, so it may pass.
	sometimes bool
}

const (
	lwsController = "LeaderWorkerSet controller leaderWorkerSet creating or updating "

	// lwsRace: the spec changes or deletes a leader pod and then deletes its StatefulSet. The controller hears of
	// the second by another watch. If its cache has the old pod still, it makes the StatefulSet again, of the old
	// revision or of no pod, and leaves it so. The faster a server answers writes, the more often that happens:
	// localapi, which takes a tenth of a millisecond, fails six specs more than one that takes 15 ms.
	lwsRace = "the controller made a StatefulSet for a leader pod that was changed or deleted before, but not in its " +
		"cache"
)

var operators = []operator{
	{
		name: "jobset", module: "sigs.k8s.io/jobset", version: "v0.12.0", suite: "./test/integration/controller",
		known: []exception{{
			spec: "JobSet controller when the ElasticJobSet feature gate is disabled Elastic scaling behavior is " +
				"blocked " +
				"rejects updates to parallelism and completions",
			reason: "the operator's webhook would refuse the update, and the suite starts none; it only fails when " +
				"it meets a conflict",
			sometimes: true,
		}, {
			spec: "JobSet controller when the ElasticJobSet feature gate is enabled Elastic scaling behavior " +
				"dynamic horizontal pod scaling propagates parallelism and completions to child jobs",
			reason:    "reads and updates once, while the controller writes the status of the same object",
			sometimes: true,
		}},
	},
	{
		name: "lws", module: "sigs.k8s.io/lws", version: "v0.9.0", suite: "./test/integration/controllers",
		delay: 15 * time.Millisecond, // see lwsRace
		known: []exception{
			{spec: lwsController + "resize should update the size of the replicas", reason: lwsRace, sometimes: true},
			{spec: lwsController + "scale down to 0", reason: lwsRace, sometimes: true},
			{spec: lwsController + "rolling update with maxSurge set", reason: lwsRace, sometimes: true},
			{spec: lwsController + "multiple rolling update with maxSurge set", reason: lwsRace, sometimes: true},
			{
				spec: lwsController + "rolling update with replicas scaled up and maxSurge set", reason: lwsRace,
				sometimes: true,
			},
			{
				spec: lwsController + "scale up and down during rolling update with maxSurge set", reason: lwsRace,
				sometimes: true,
			},
			{
				spec: lwsController + "rolling update with maxSurge greater than replicas", reason: lwsRace,
				sometimes: true,
			},
			{spec: lwsController + "replicas decreases during rolling update", reason: lwsRace, sometimes: true},
			{
				spec: lwsController + "rolling update with replicas scaled down and maxSurge set", reason: lwsRace,
				sometimes: true,
			},
			{
				spec: lwsController +
					"Pod restart will delete the pod group when restart policy is RecreateGroupOnPodRestart",
				reason:    "looks once, without waiting; it failed once on each server, on a busy machine",
				sometimes: true,
			},
			{
				spec: lwsController +
					"leader with RecreateGroupOnPodRestart only gets restarted once during rolling update",
				reason:    "timed out once, with our parts on kube-apiserver and a busy machine; not looked into",
				sometimes: true,
			},
			{
				spec:   lwsController + "Able to get scale subResource information",
				reason: "looks once, without waiting; it failed once, on a busy machine", sometimes: true,
			},
		},
	},
	{
		name: "kubebuilder project-v4", module: kubebuilder, version: "v4.10.1", project: "project-v4",
		suite: "./internal/controller",
	},
	{
		name: "kubebuilder project-v4-with-plugins", module: kubebuilder, version: "v4.10.1",
		project: "project-v4-with-plugins", suite: "./internal/controller",
	},
	{
		name: "kro", module: "github.com/kubernetes-sigs/kro", version: "v0.9.4",
		suite: "./test/integration/suites/core",
		known: []exception{{
			spec:      "Collection Watch should not react to externally created resources after collection shrinks",
			reason:    "updates once, while the controller writes the same object",
			sometimes: true,
		}, {
			spec: "GraphRevision Integration should not issue duplicate graph revisions " +
				"for an unchanged RGD across controller restart",
			reason: "controller-runtime's manager did not stop within 30 seconds, once, on kube-apiserver and a " +
				"busy machine",
			sometimes: true,
		}, {
			spec:      "Readiness should should wait for the last node in the DAG to be ready",
			reason:    "expects a state at once that takes a while on a busy machine",
			sometimes: true,
		}},
	},
	{
		name: "kueue, jobs", module: "sigs.k8s.io/kueue", version: "v0.19.0",
		suite:   "./test/integration/singlecluster/controller/jobs/job",
		made:    []made{{folder: "config/components/crd/_output", from: "config/components/crd/bases"}},
		changed: []dependency{{trainer, "v2.2.1", trainerChange}},
	},
	{
		name: "karpenter, apis", module: "sigs.k8s.io/karpenter", version: "v1.14.1", suite: "./pkg/apis/v1",
		own: karpenterEnvironment,
	},
	{
		name: "karpenter, termination", module: "sigs.k8s.io/karpenter", version: "v1.14.1",
		suite: "./pkg/controllers/node/termination", own: karpenterEnvironment,
	},
	{
		name: "gateway-api, definitions", module: "sigs.k8s.io/gateway-api", version: "v1.4.1",
		suite: "./pkg/test/cel", tags: "experimental", env: []string{"CRD_CHANNEL=experimental"}, home: true,
		plain: true,
		known: []exception{{
			spec:   "TestHTTPRouteTimeouts/invalid_timeout_request_200ms_less_than_backendRequest_1s",
			reason: "expects a value in the message, which Kubernetes v1.37 leaves out for objects",
		}},
		own: []change{
			importOurs(gatewayMain),
			{gatewayMain, "k8sClient, err = client.New(", "k8sClient, err = flyball.NewClient("},
		},
	},
	{
		name: "cluster-api, webhooks", module: clusterAPI, version: "v1.14.2", made: clusterAPIMade,
		suite: "./core/webhooks/admission/test", plain: true,
	},
	{
		name: "cluster-api, machine sets", module: clusterAPI, version: "v1.14.2", made: clusterAPIMade,
		suite: "./core/reconcilers/machineset", plain: true,
	},
	{
		name: "trainer", module: trainer, version: "v2.2.1", made: trainerMade,
		suite: "./test/integration/controller", own: trainerChange,
		known: []exception{{
			spec: "TrainJob controller when Reconciling TrainJob Integration Tests for the Jax Runtime " +
				"Should succeed to reconcile TrainJob conditions with Complete condition",
			reason: "waits five seconds; it timed out once, on kube-apiserver and a busy machine", sometimes: true,
		}},
	},
	{
		name: "trainer, webhooks", module: trainer, version: "v2.2.1", made: trainerMade,
		suite: "./test/integration/webhooks", own: trainerChange,
	},
}

const trainer = "github.com/kubeflow/trainer/v2"

// trainerChange removes a type that Kubernetes 0.37 no longer has.
var trainerChange = []change{{
	"pkg/apis/trainer/v1alpha1/zz_generated.openapi.go",
	"\t\tcorev1.PodStatusResult{}.OpenAPIModelName():", "\t\t\"\":",
}}

// trainerMade are the definitions of other projects that trainer's Makefile copies and downloads.
var trainerMade = []made{
	{"manifests/external-crds/jobset-operator", "sigs.k8s.io/jobset", "v0.11.1", "config/components/crd/bases"},
	{
		"manifests/external-crds/scheduler-plugins", "sigs.k8s.io/scheduler-plugins", "v0.34.1-devel",
		"manifests/coscheduling",
	},
	{"manifests/external-crds/volcano", "volcano.sh/volcano", "v1.14.1", "config/crd/volcano/bases"},
}

const gatewayMain = "pkg/test/cel/main_test.go"

const clusterAPI = "sigs.k8s.io/cluster-api"

// clusterAPIMade is the module of its types, which cluster-api's go.mod expects in its folder.
var clusterAPIMade = []made{{folder: "api", module: clusterAPI + "/api", version: "v1.14.2"}}

// karpenterEnvironment puts our cache and client into the environment of karpenter's suites, which has no manager.
var karpenterEnvironment = []change{
	importOurs(karpenterEnvironmentFile),
	{karpenterEnvironmentFile, "lo.Must(cache.New(", "lo.Must(flyball.NewCache("},
	{
		karpenterEnvironmentFile, "lo.Must(client.New(environment.Config, client.Options{Scheme: scheme.Scheme, Cache",
		"lo.Must(flyball.NewClient(environment.Config, client.Options{Scheme: scheme.Scheme, Cache",
	},
	{karpenterEnvironmentFile, "c = lo.Must(client.New(", "c = lo.Must(flyball.NewClient("},
}

const karpenterEnvironmentFile = "pkg/test/environment.go"

// importOurs imports interop/controllerruntime in a file.
func importOurs(file string) change {
	return change{
		file, "import (\n", "import (\n\tflyball \"github.com/flyball-dev/flyball/interop/controllerruntime\"\n\n",
	}
}

// partsOfRuns are controller-runtime's own parts and ours, in the order of the table.
var partsOfRuns = []string{"theirs", "ours"}

// TestOperators runs each suite on both servers, as it is and with our parts. The two runs of a program, on one
// server and on the other, follow each other, so that both feel the same load; how many programs run at once is for
// -parallel to say. More than one needs care: several suites have a manager that serves metrics at :8080, and fail
// where something else does.
//
// The results replace their rows of the table in docs/localapi.md; -run TestOperators/all/kueue runs one operator only.
// FLYBALL_OPERATORS=build only builds the programs. That goes before the runs, so that no compiler takes part in what
// is measured.
func TestOperators(t *testing.T) {
	mode := os.Getenv("FLYBALL_OPERATORS")
	if mode == "" {
		t.Skip("other people's suites take over an hour: make test-operators")
	}
	var results table
	t.Run("all", func(t *testing.T) {
		for _, o := range operators {
			t.Run(o.name, func(t *testing.T) {
				folder := o.folder(t)
				t.Parallel()
				for _, parts := range partsOfRuns {
					t.Run(parts, func(t *testing.T) {
						t.Parallel()
						program := o.program(t, folder, parts)
						if mode == "build" {
							return
						}
						for _, server := range sides {
							t.Run(server.name, func(t *testing.T) {
								r := o.run(t, program, folder, parts, server)
								results.add(r)
								for _, complaint := range r.unexpected() {
									t.Error(complaint)
								}
							})
						}
					})
				}
			})
		}
	})
	if len(results.rows) == 0 {
		return
	}
	const page, block = "../../docs/localapi.md", "make test-operators"
	old, err := docblock.Read(page, block)
	if err != nil {
		t.Fatal(err)
	}
	if err := docblock.Write(page, block, results.text(old)); err != nil {
		t.Fatal(err)
	}
}

// run runs the suite on a server that is started for it.
func (o operator) run(t *testing.T, program, folder, parts string, server serverOf) row {
	before := load(t)
	s := server.start(t, o)
	result := run(t, program, filepath.Join(folder, o.suite), s.kubeconfig, o)
	return row{o, server.name, parts, before, s.start, result, s.stop()}
}

// program builds the suite with controller-runtime's parts or with ours.
func (o operator) program(t *testing.T, folder, parts string) string {
	if parts == "ours" {
		return swapped(t, folder, o)
	}
	return program(t, folder, o)
}

// load is the number of processes that wanted to run in the last minute.
func load(t *testing.T) (n float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// folder is that of the operator's module.
func (o operator) folder(t *testing.T) string {
	t.Helper()
	if o.project != "" {
		return scaffolded(t, o.project, o.version)
	}
	dir := source(t, o.module, o.version)
	for _, m := range o.made {
		to, from := filepath.Join(dir, m.folder), dir
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if m.module != "" {
			from = downloaded(t, m.module, m.version)
		}
		if err := copyTree(to, filepath.Join(from, m.from)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// unexpected returns what differs from what is known of the operator.
func (r row) unexpected() (wrong []string) {
	var listed []string
	for _, e := range r.operator.known {
		if e.on != nil &&
			!slices.ContainsFunc(e.on, func(name string) bool { return strings.HasSuffix(r.name(), name) }) {
			continue
		}
		listed = append(listed, e.spec)
		if _, failed := r.outcome.failed[e.spec]; !failed && !e.sometimes {
			wrong = append(wrong, fmt.Sprintf("it passes, and is listed as failing: %q (%s)", e.spec, e.reason))
		}
	}
	for spec, message := range r.outcome.failed {
		if !slices.Contains(listed, spec) {
			wrong = append(wrong, fmt.Sprintf("it fails, and is not listed: %q: %.1500s", spec, message))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestUnexpected: the list is checked both ways.
func TestUnexpected(t *testing.T) {
	r := row{
		operator: operator{known: []exception{
			{spec: "known everywhere"},
			{spec: "known elsewhere", on: []string{"theirs on kube-apiserver"}},
			{spec: "passes", on: []string{"on localapi"}},
			{spec: "passes today", sometimes: true},
		}},
		server: "localapi", parts: "theirs",
		outcome: outcome{failed: map[string]string{"known everywhere": "x", "known elsewhere": "x", "new": "x"}},
	}
	got := strings.Join(r.unexpected(), "\n")
	want := []string{
		`it fails, and is not listed: "known elsewhere"`, `it fails, and is not listed: "new"`,
		`it passes, and is listed as failing: "passes"`,
	}
	if strings.Count(got, "\n") != len(want)-1 {
		t.Errorf("got\n%s", got)
	}
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s is missing in\n%s", w, got)
		}
	}
}
