package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
)

func TestParsePodRef(t *testing.T) {
	for ref, want := range map[string]string{
		"a/b": "a/b", "": "", "a": "", "a/": "", "/b": "", "/": "", "a/b/c": "", "a/..": "", "./b": "", "a/b%": "",
	} {
		key, is := parsePodRef(ref)
		if is != (want != "") || is && key.String() != want {
			t.Errorf("%q: %v, %v", ref, key, is)
		}
	}
}

func TestJudgePod(t *testing.T) {
	pod := func(phase corev1.PodPhase, reason string, c ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Reason: reason, Conditions: c}}
	}
	condition := func(status corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.DisruptionTarget, Status: status, Reason: reason}
	}
	terminating := pod(corev1.PodRunning, "")
	terminating.DeletionTimestamp = &metav1.Time{}
	cleaning := Options{CleanupTerminating: true, CleanupDisrupted: true}
	for name, c := range map[string]struct {
		pod            *corev1.Pod
		keeps, cleaned verdict
	}{
		"missing":   {nil, orphaned, orphaned},
		"running":   {pod(corev1.PodRunning, ""), inUse, inUse},
		"pending":   {pod(corev1.PodPending, ""), waiting, waiting},
		"disrupted": {pod(corev1.PodRunning, "", condition("True", "DeletionByTaintManager")), inUse, orphaned},
		"disrupted pending": {
			pod(corev1.PodPending, "", condition("True", "DeletionByTaintManager")), waiting,
			orphaned,
		},
		"not disrupted": {pod(corev1.PodRunning, "", condition("False", "DeletionByTaintManager")), inUse, inUse},
		"preempted":     {pod(corev1.PodRunning, "", condition("True", "PreemptionByScheduler")), inUse, inUse},
		"terminating":   {terminating, inUse, orphaned},
		"succeeded":     {pod(corev1.PodSucceeded, ""), orphaned, orphaned},
		"failed":        {pod(corev1.PodFailed, ""), orphaned, orphaned},
		"unknown":       {pod(corev1.PodUnknown, ""), inUse, inUse},
		"lost":          {pod(corev1.PodUnknown, "NodeLost"), orphaned, orphaned},
	} {
		if got := (Options{}).judgePod(c.pod); got != c.keeps {
			t.Errorf("%s: %d", name, got)
		}
		if got := cleaning.judgePod(c.pod); got != c.cleaned {
			t.Errorf("%s, cleaning: %d", name, got)
		}
		if c.pod == nil {
			continue
		}
		thin, err := slim(c.pod)
		if err != nil || factsOf(thin.(*corev1.Pod)) != factsOf(c.pod) {
			t.Errorf("%s: what the cache holds of the Pod is not enough, %v", name, err)
		}
	}
}

func TestJudgeNetworks(t *testing.T) {
	for annotation, want := range map[string]verdict{
		"":                                      inUse,
		" ":                                     inUse,
		"{":                                     unreadable,
		`[{"ips": "10.0.0.5"}]`:                 unreadable,
		"null":                                  unlisted,
		"[]":                                    unlisted,
		`[{"interface":"net1"}]`:                unlisted,
		`[{"ips":["10.0.0.5"]}]`:                inUse,
		`[{"ips":["10.0.0.5/24"]}]`:             inUse,
		`[{"ips":["::ffff:10.0.0.5"]}]`:         inUse,
		`[{"ips":["10.0.0.50"]}]`:               unlisted,
		`[{"ips":["10.0.0."]}]`:                 unreadable,
		`[{"ips":["x", "10.0.0.5"]}]`:           inUse,
		`[{"ips":["10.0.0.5"],"default":true}]`: unlisted,
		`[{"ips":["10.0.0.5"],"interface":"net1"}]`:                               inUse,
		`[{"ips":["10.0.0.5"],"interface":"net2"}]`:                               unlisted,
		`[{"ips":["x"],"interface":"net2"}]`:                                      unlisted,
		`[{"interface":"net2","ips":["1.1.1.1"]},{"ips":["fd00::1","10.0.0.5"]}]`: inUse,
	} {
		if got := judgeNetworks(annotation, netip.MustParseAddr("10.0.0.5"), "net1"); got != want {
			t.Errorf("%s: %d, want %d", annotation, got, want)
		}
	}
	if got := judgeNetworks(`[{"ips":["10.0.0.5"],"interface":"net2"}]`, netip.MustParseAddr("10.0.0.5"),
		""); got != inUse {
		t.Errorf("without an interface: %d", got)
	}
}

func TestAssign(t *testing.T) {
	parts, err := ranges.Cut("10.0.0.0/24", "26")
	if err != nil {
		t.Fatal(err)
	}
	slot := func(i int) string { return parts.At(i).String() }
	have := func(holders ...string) (all []v1alpha1.NodeSliceAllocation) {
		for i, h := range holders {
			all = append(all, v1alpha1.NodeSliceAllocation{NodeName: h, SliceRange: slot(i)})
		}
		return all
	}
	for name, c := range map[string]struct {
		have     []v1alpha1.NodeSliceAllocation
		nodes    string
		used     map[int]string
		want     map[int]string
		waiting  string
		kept     int
		notAsked bool
	}{
		"new": {nodes: "a b c", want: map[int]string{0: "a", 1: "b", 2: "c"}},
		"settled": {
			have: have("b", "a"), nodes: "a b", want: map[int]string{0: "b", 1: "a"},
			notAsked: true,
		},
		"one goes": {have: have("a", "b", "c"), nodes: "a c", want: map[int]string{0: "a", 2: "c"}},
		"one goes and one comes": {
			have: have("a", "b", "c"), nodes: "a c d",
			want: map[int]string{0: "a", 1: "d", 2: "c"},
		},
		"gone, but in use": {
			have: have("a", "b"), nodes: "b c", used: map[int]string{0: "a"},
			want: map[int]string{0: "a", 1: "b", 2: "c"}, kept: 1,
		},
		"gone, in use by nobody known": {
			have: have("a", "b"), nodes: "b", used: map[int]string{0: ""},
			want: map[int]string{0: "a", 1: "b"}, kept: 1,
		},
		"full": {
			nodes: "a b c d e f", want: map[int]string{0: "a", 1: "b", 2: "c", 3: "d"},
			waiting: "e f",
		},
		"full, one in use": {
			nodes: "a b c d", used: map[int]string{1: ""},
			want: map[int]string{0: "a", 2: "b", 3: "c"}, waiting: "d", kept: 1,
		},
		"lost and found": {
			nodes: "a b", used: map[int]string{2: "b", 3: "gone"},
			want: map[int]string{0: "a", 2: "b", 3: "gone"}, kept: 1,
		},
		"the user has another": {
			have: have("a"), nodes: "a b", used: map[int]string{1: "a"},
			want: map[int]string{0: "a", 2: "b"}, kept: 1,
		},
		"one node, two slices": {
			have: have("a", "a", "b"), nodes: "a b", want: map[int]string{0: "a", 2: "b"},
			notAsked: true,
		},
		"no slices of this range": {
			have: []v1alpha1.NodeSliceAllocation{
				{NodeName: "a", SliceRange: "10.9.0.0/26"},
				{NodeName: "b", SliceRange: "x"},
				{SliceRange: slot(0)},
			},
			nodes: "a b", want: map[int]string{0: "a", 1: "b"},
		},
		"one slice, two nodes": {
			have: []v1alpha1.NodeSliceAllocation{
				{NodeName: "b", SliceRange: slot(0)},
				{NodeName: "a", SliceRange: slot(0)},
			},
			nodes: "a b", want: map[int]string{0: "b", 1: "a"},
		},
	} {
		asked := false
		got, err := assign(parts, c.have, strings.Fields(c.nodes),
			func(bool) (map[int]string, error) { asked = true; return c.used, nil })
		if err != nil || !maps.Equal(got.holders, c.want) || strings.Join(got.waiting, " ") != c.waiting ||
			got.kept != c.kept || asked == c.notAsked {
			t.Errorf("%s: %+v, asked %v, %v", name, got, asked, err)
		}
	}
}

// bigPool has n allocations, half of them of Pods that do not exist.
func bigPool(n int) (*v1alpha1.IPPool, func(client.ObjectKey) *corev1.Pod) {
	pool := &v1alpha1.IPPool{
		Spec: v1alpha1.IPPoolSpec{Range: "10.0.0.0/8", Allocations: map[string]v1alpha1.IPAllocation{}},
	}
	pods := map[client.ObjectKey]*corev1.Pod{}
	for i := range n {
		key := client.ObjectKey{Namespace: "default", Name: fmt.Sprint("p", i)}
		pool.Spec.Allocations[fmt.Sprint(i+1)] = v1alpha1.IPAllocation{PodRef: key.String(), IfName: "net1"}
		if i%2 == 0 {
			pods[key] = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{UID: types.UID(key.Name)},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			}
		}
	}
	return pool, func(key client.ObjectKey) *corev1.Pod { return pods[key] }
}

// A pool of eight times the allocations costs eight times the work, not sixty-four times.
func TestPoolsAreLinear(t *testing.T) {
	cost := func(n int) float64 {
		pool, podOf := bigPool(n)
		cidr := netip.MustParsePrefix(pool.Spec.Range)
		return testing.AllocsPerRun(2, func() {
			all := allocationsOf(pool, cidr)
			found := Defaults().examine(all, podOf)
			if len(found.orphans) != n/2 {
				t.Fatalf("%d orphans of %d", len(found.orphans), n)
			}
			fill(&pool.Status, cidr, all, 0)
		})
	}
	if small, large := cost(1000), cost(8000); large > 12*small {
		t.Errorf("allocations of memory: %.0f for 1000, %.0f for 8000", small, large)
	}
}

func TestAllocationsAreInOrder(t *testing.T) {
	pool := &v1alpha1.IPPool{
		Spec: v1alpha1.IPPoolSpec{
			Allocations: map[string]v1alpha1.IPAllocation{"10": {}, "9": {}, "x": {}, "100": {}, "300": {}},
		},
	}
	var keys []string
	for _, a := range allocationsOf(pool, netip.MustParsePrefix("10.0.0.0/24")) {
		keys = append(keys, a.key)
	}
	if !slices.Equal(keys, []string{"9", "10", "100", "300", "x"}) {
		t.Errorf("%q", keys)
	}
}

func TestSlimLeavesOthersAlone(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}}
	if got, err := slim(node); err != nil || got != informer.Object(node) {
		t.Errorf("%v, %v", got, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
	pod.Annotations = map[string]string{multus.NetworkStatusAnnotation: "[]", "other": "x"}
	thin, _ := slim(pod)
	if text, _ := json.Marshal(thin); strings.Contains(string(text), "other") ||
		strings.Contains(string(text), "nodeName") || thin.GetAnnotations()[multus.NetworkStatusAnnotation] != "[]" {
		t.Errorf("%s", text)
	}
}
