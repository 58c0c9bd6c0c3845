package simulated

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/simtest"
)

func init() {
	controllerruntime.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// expect searches the scenario and fails unless it finds just that: rule and the beginning of the subject, or nothing
// if rule is "". A search that is to find nothing takes FLYBALL_SIMULATED, or 5 s.
func expect(t *testing.T, s simtest.Scenario, rule simtest.Rule, subject string) {
	t.Helper()
	budget := time.Minute
	if rule == "" {
		var err error
		if budget, err = time.ParseDuration(cmp.Or(os.Getenv("FLYBALL_SIMULATED"), "5s")); err != nil {
			t.Fatalf("FLYBALL_SIMULATED: %v", err)
		}
	}
	f, r := simtest.Find(t, s, simtest.Options{Budget: budget})
	t.Logf("%d runs in %v", r.Runs, r.Took.Round(time.Millisecond))
	switch {
	case f == nil && rule == "":
	case f == nil:
		t.Errorf("it found nothing, and not %q of %s", rule, subject)
	case f.Rule != rule || !strings.HasPrefix(f.Subject, subject):
		t.Errorf("it found %q of %s, and not %q of %s:\n%v", f.Rule, f.Subject, rule, subject, f)
	default:
		t.Log(f)
	}
}

// newManager is controller-runtime's manager, without what needs a socket.
func newManager(e *simtest.Env, scheme *runtime.Scheme) (manager.Manager, error) {
	return manager.New(e.Config(), manager.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // The names are kept for the whole process.
	})
}

// definitions reads custom resource definitions from a module.
func definitions(t *testing.T, module string, files ...string) []runtime.Object {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("find %s: %v", module, err)
	}
	var all []runtime.Object
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
		if err != nil {
			t.Fatal(err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, definition); err != nil {
			t.Fatal(err)
		}
		trim(definition.Object)
		all = append(all, definition)
	}
	return all
}

// trim removes descriptions, which are most of a definition and cost time.
func trim(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for _, field := range v {
			trim(field)
		}
	case []any:
		for _, item := range v {
			trim(item)
		}
	}
}

// collected are the resources that the garbage collector of a scenario watches.
var collected = []string{
	"pods", "services", "statefulsets.apps", "controllerrevisions.apps", "jobs.batch",
	"leaderworkersets.leaderworkerset.x-k8s.io", "jobsets.jobset.x-k8s.io",
}

// collectGarbage is the garbage collector, for [simtest.Scenario.Others].
func collectGarbage(e *simtest.Env) (simtest.Program, error) {
	config := e.Config()
	config.QPS = -1 // A limiter serves goroutines that wait in no order.
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	sender, err := events.New(config, events.Options{})
	if err != nil {
		return nil, err
	}
	_, lists, err := server.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	var ignored []schema.GroupResource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			r := schema.GroupResource{Group: version.Group, Resource: list.APIResources[i].Name}
			if !slices.Contains(collected, r.String()) {
				ignored = append(ignored, r)
			}
		}
	}
	return garbagecollector.New(config, sender.Recorder("gc"),
		garbagecollector.Options{Workers: 1, DiscoveryPeriod: 24 * time.Hour, Ignored: ignored})
}
