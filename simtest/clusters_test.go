package simtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// exporter makes a ConfigMap in the cluster east for each ConfigMap with the label "copy", once: then it writes the
// name of the copy into an annotation.
type exporter struct {
	client.Client
	east     client.Client
	generate bool // the name of the copy, which is a mistake
}

func newExporter(generate bool) func(e *Env) (Program, error) {
	return func(e *Env) (Program, error) {
		mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
		if err != nil {
			return nil, err
		}
		east, err := client.New(e.Cluster("east"), client.Options{})
		if err != nil {
			return nil, err
		}
		return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
			Complete(&exporter{mgr.GetClient(), east, generate})
	}
}

// Reconcile implements [ctrl.Reconciler].
func (x *exporter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := x.Get(ctx, r.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if source.Labels["copy"] == "" || source.Annotations["copied"] != "" {
		return ctrl.Result{}, nil
	}
	twin := &corev1.ConfigMap{Data: source.Data}
	twin.Namespace, twin.Name = source.Namespace, source.Name
	if x.generate {
		twin.Name, twin.GenerateName = "", source.Name+"-"
	}
	if err := x.east.Create(ctx, twin); client.IgnoreAlreadyExists(err) != nil {
		return ctrl.Result{}, err
	}
	source.Annotations = map[string]string{"copied": twin.Name}
	return ctrl.Result{}, x.Update(ctx, &source)
}

// exports is a scenario of two clusters beside the first one.
func exports(generate bool) Scenario {
	return Scenario{
		Clusters: []string{"east", "west"}, Build: newExporter(generate), Budget: 2 * time.Second,
		Script: func(u *User) {
			u.In("west").Create(sources()[1])
			u.Create(sources()[0])
			u.Settle()
			Update(u.In("east"), sources()[0], func(m *corev1.ConfigMap) { m.Data["seen"] = "yes" })
		},
		Always: map[string]func(s *State) error{"servers are apart": func(s *State) error {
			if _, here := Get[*corev1.ConfigMap](s, "default", sources()[1].Name); here ||
				len(List[*corev1.ConfigMap](s.In("west"), "default")) > 2 { // the other one is kube-root-ca.crt
				return fmt.Errorf("%d are in west", len(List[*corev1.ConfigMap](s.In("west"), "default")))
			}
			return nil
		}},
		Matches: func(s *State) error {
			if copied, ok := Get[*corev1.ConfigMap](s.In("east"), "default", sources()[0].Name); !ok ||
				copied.Data["seen"] != "yes" {
				return fmt.Errorf("in east there is %v", copied)
			}
			return nil
		},
	}
}

// TestClusters: a program may write to several API servers. Faults happen at the writes to each, and the ends of all
// are compared.
func TestClusters(t *testing.T) {
	s := exports(false)
	Check(t, s)
	c := &checker{t: t, s: &s}
	writes := c.perform(&runPlan{Seed: 1}, limits{}).ops[atWrite]
	want := []string{"create configmaps default in east", "update configmaps default/source-0"}
	if !slices.Equal(writes, want) {
		t.Errorf("the writes are %q, want %q", writes, want)
	}
}

// TestClustersFinding: a mistake is found whose only trace is in another cluster.
func TestClustersFinding(t *testing.T) {
	s := exports(true)
	s.Matches, s.Script = nil, func(u *User) { u.Create(sources()[0]) }
	f, _ := Find(t, s, Options{Budget: 5 * time.Second})
	if f == nil || f.Rule != RuleEnd ||
		!strings.HasPrefix(f.Diff[len(f.Diff)-1], "configmaps default/source-0-<2> in east: is there") {
		t.Errorf("found %v", f)
	}
}

// TestClustersNames: names of clusters must differ, also from that of the first one.
func TestClustersNames(t *testing.T) {
	for _, names := range [][]string{{"a", "a"}, {""}, {"default"}} {
		s := exports(false)
		s.Clusters = names
		if s.validate(Options{}) == nil {
			t.Errorf("%q are accepted", names)
		}
	}
}

// TestSettleFinding: a mistake is found that is over at the end. The story stops at the Settle that shows it.
func TestSettleFinding(t *testing.T) {
	s := exports(true)
	s.Matches, s.Script = nil, func(u *User) {
		u.Create(sources()[0])
		u.Settle()
		u.In("east").Do("delete all", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"))
		})
	}
	c := newChecker(t, &s, Options{})
	if !c.baseline() {
		t.Fatal(c.found)
	}
	r := c.try(&runPlan{Seed: 1, Faults: []runFault{{Kind: crashAfter, At: 1}}}, limits{})
	if len(r.findings) != 1 {
		t.Fatalf("found %v", r.findings)
	}
	c.fail(r.findings[0], r)
	text := c.found[0].String()
	const want = "  at Settle 1, configmaps default/source-0-<2> in east: is there, and should not be\n"
	if !strings.Contains(text, want) || strings.Contains(text, "delete all") {
		t.Error(text)
	}
}
