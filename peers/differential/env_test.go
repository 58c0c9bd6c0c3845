package differential

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// scenario is a story that is played on both sides, in a namespace named after it.
type scenario struct {
	name  string
	steps []step
	// suffix is what its namespace has behind the name, when it is played again.
	suffix string
	// retried: something is refused and tried again until it works; how often depends on the time it takes, and so do
	// the counts of its events. They are not compared.
	retried bool
}

// step is one thing that somebody does: the user, or the kubelet. It returns what it did, for the transcript, and
// whether it wants to be called again when the side has settled. One that did nothing says "".
//
// A step may depend on the scenario and on what the side recorded, and on nothing else: both sides then do the same
// until they differ.
type step func(ctx context.Context, e *env) (said string, again bool, err error)

// env is a scenario being played on one side.
type env struct {
	side     *side
	scenario scenario
	ns       string
	rng      *rand.Rand // seeded by the scenario's name
	names    *names

	next    int    // the step
	runs    int    // how often it was taken before
	doing   string // what a step that waits has begun
	said    string // what this round's step did
	waiting time.Time
	turns   int // how often chance has had its turn in this step
	left    int // how many tasks the kubelet does before the next turn
	failed  bool
	started int // how many pods were started: their IPs

	rounds  int
	text    strings.Builder
	was     map[string][]body          // by key: the last settled state
	letters map[string][]body          // by key: bodies that were printed in full
	decided map[string]map[string]body // by key and part: the last decisions
	swung   map[string]bool            // by key: ReplicaSets that were raised and lowered again within a round
}

func newEnv(s *side, sc scenario) *env {
	h := fnv.New64a()
	h.Write([]byte(sc.name))
	return &env{
		side: s, scenario: sc, ns: sc.name + sc.suffix, rng: rand.New(rand.NewPCG(h.Sum64(), 1)), names: newNames(),
		was: map[string][]body{}, letters: map[string][]body{}, decided: map[string]map[string]body{},
		swung: map[string]bool{},
	}
}

func (e *env) open(ctx context.Context) error {
	_, err := e.side.client.CoreV1().Namespaces().Create(ctx, namespace(e.ns), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (e *env) done() bool { return e.failed || e.next == len(e.scenario.steps) }

// waitAtMost bounds a step that waits, however busy the machine.
const waitAtMost = 15 * time.Minute

// advance takes the next step that does something.
func (e *env) advance(ctx context.Context) {
	e.said = ""
	for e.next < len(e.scenario.steps) && e.said == "" {
		said, again, err := e.scenario.steps[e.next](ctx, e)
		if err == nil && said == "" && again && !e.waiting.IsZero() && time.Since(e.waiting) > waitAtMost {
			err = fmt.Errorf("step %d waited for %s", e.next, waitAtMost)
		}
		if err != nil {
			e.said, e.failed = fmt.Sprintf("FAILED: %v", err), true
			return
		}
		e.said = said
		e.runs++
		if !again {
			e.next, e.runs, e.doing = e.next+1, 0, ""
		}
		switch {
		case said != "" || !again:
			e.waiting = time.Time{}
		case e.waiting.IsZero():
			e.waiting = time.Now()
			return
		default:
			return
		}
	}
}

// note writes down what changed since the last time, if a step was taken.
func (e *env) note() {
	if e.said == "" {
		return
	}
	e.rounds++
	fmt.Fprintf(&e.text, "== %d. %s\n", e.rounds, e.said)
	log := e.side.rec.take(e.ns)
	for _, c := range log {
		e.names.learn(c.object)
	}
	now := e.settled()
	keys := map[string]bool{}
	for key := range now {
		keys[key] = true
	}
	for key := range e.was {
		keys[key] = true
	}
	via := e.via(log)
	for key := range via {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		e.noteKey(key, e.was[key], now[key], via[key])
	}
	e.was = now
}

// settled is what there is now.
func (e *env) settled() map[string][]body {
	now := map[string][]body{}
	for _, kind := range []string{"Deployment", "ReplicaSet", "Pod", "Service", "Endpoints", "ConfigMap"} {
		for _, o := range e.side.rec.list(e.ns, kind) {
			if kind == "ConfigMap" && o.GetName() == "kube-root-ca.crt" {
				continue
			}
			key := e.names.key(o)
			now[key] = append(now[key], e.names.body(o))
		}
	}
	for _, bodies := range now {
		slices.SortFunc(bodies, func(a, b body) int { return strings.Compare(a.String(), b.String()) })
	}
	return now
}

// via returns, by key, the decisions that were taken on the way: a line for each part that had several.
func (e *env) via(log []change) map[string][]string {
	steps := map[string]map[string][]string{} // by key and part
	e.noteSwings(log)
	for _, c := range log {
		if kind := c.object.GetKind(); kind != "Deployment" && kind != "ReplicaSet" {
			continue
		}
		key := e.names.key(c.object)
		if steps[key] == nil {
			steps[key] = map[string][]string{}
		}
		var now map[string]body
		if !c.gone {
			now = e.names.body(c.object).decisions()
		}
		for _, part := range slices.Sorted(maps.Keys(now)) {
			if lines := difference(e.decided[key][part], now[part]); len(lines) > 0 {
				steps[key][part] = append(steps[key][part], strings.Join(lines, ", "))
			}
		}
		e.decided[key] = now
	}
	lines := map[string][]string{}
	for key, parts := range steps {
		for _, part := range slices.Sorted(maps.Keys(parts)) {
			if len(parts[part]) > 1 {
				lines[key] = append(lines[key], "    via "+strings.Join(parts[part], "; then "))
			}
		}
	}
	return lines
}

// noteKey writes down what became of the objects of one key.
func (e *env) noteKey(key string, was, now []body, via []string) {
	lines := slices.Clone(via)
	switch {
	case len(was) == 1 && len(now) == 1 && len(e.letters[key]) == 0:
		for _, l := range difference(was[0], now[0]) {
			lines = append(lines, "    "+l)
		}
	case len(was) == 0 && len(now) == 0:
	case len(now) == 0:
		lines = append(lines, "    gone")
	case len(was) == 0 && len(now) == 1 && !strings.HasSuffix(key, "POD"):
		for _, l := range difference(body{}, now[0]) {
			lines = append(lines, "    "+l)
		}
	default:
		before, after := e.tally(key, was, &lines), e.tally(key, now, &lines)
		if before != after {
			lines = append(lines, fmt.Sprintf("    %s → %s", before, after))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(&e.text, "  %s\n%s\n", key, strings.Join(lines, "\n"))
	}
}

// tally is how many there are of each body, by a letter that stands for it. What has no letter yet is printed and
// gets one.
func (e *env) tally(key string, bodies []body, lines *[]string) string {
	counts := map[int]int{}
	for _, b := range bodies {
		i := slices.IndexFunc(e.letters[key], func(known body) bool { return maps.Equal(known, b) })
		if i < 0 {
			i = len(e.letters[key])
			from := body{}
			if i > 0 {
				from = e.letters[key][0]
			}
			e.letters[key] = append(e.letters[key], b)
			for _, l := range difference(from, b) {
				*lines = append(*lines, fmt.Sprintf("    %s: %s", letter(i), l))
			}
		}
		counts[i]++
	}
	var parts []string
	for _, i := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d×%s", counts[i], letter(i)))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

func letter(i int) string { return fmt.Sprintf("(%d)", i+1) }

// close adds the EndpointSlices and events and returns the transcript. EndpointSlices are compared at the end only:
// when its cache lags, the real controller writes them a second later or more.
func (e *env) close() string {
	e.text.WriteString("== at the end\n")
	for _, c := range e.side.rec.take(e.ns) {
		e.names.learn(c.object)
	}
	slicesNow := map[string][]body{}
	for _, o := range joined(e.side.rec.list(e.ns, "EndpointSlice")) {
		key := e.names.key(o)
		slicesNow[key] = append(slicesNow[key], e.names.body(o))
	}
	for _, key := range slices.Sorted(maps.Keys(slicesNow)) {
		slices.SortFunc(slicesNow[key], func(a, b body) int { return strings.Compare(a.String(), b.String()) })
		e.noteKey(key, nil, slicesNow[key], nil)
	}
	e.text.WriteString("== events\n")
	e.noteEvents()
	return e.text.String()
}

// joined makes one EndpointSlice of those that differ in nothing but their endpoints: which of them holds which
// endpoint is in the real controller the order of a map.
func joined(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	var merged []*unstructured.Unstructured
	for _, o := range all {
		o = o.DeepCopy()
		endpoints, _, _ := unstructured.NestedSlice(o.Object, "endpoints")
		delete(o.Object, "endpoints")
		like := func(m *unstructured.Unstructured) bool {
			return m.GetGenerateName() == o.GetGenerateName() && maps.Equal(m.GetLabels(), o.GetLabels()) &&
				m.Object["addressType"] == o.Object["addressType"] &&
				reflect.DeepEqual(m.Object["ports"], o.Object["ports"])
		}
		i := slices.IndexFunc(merged, like)
		if i < 0 {
			i, merged = len(merged), append(merged, o)
		}
		known, _, _ := unstructured.NestedSlice(merged[i].Object, "endpoints")
		merged[i].Object["endpoints"] = append(known, endpoints...)
		n, _, _ := unstructured.NestedInt64(merged[i].Object, "slices")
		merged[i].Object["slices"] = n + 1
	}
	return merged
}
