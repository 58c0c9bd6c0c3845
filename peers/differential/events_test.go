package differential

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// budget is how many events of one type a component may send about one object: then it is one every five minutes, and
// what is counted of the rest depends on when that comes.
//
// Source: k8s.io/client-go v0.37.2 tools/record/events_cache.go, defaultSpamBurst
const budget = 25

// combined is what stands before the message of an event that stands for several, which differ by their messages.
// Which ones it does not stand for is chance: client-go's memory of messages is a set of ten, of which any may be
// dropped for a new one.
const combined = "(combined from similar events): "

// retriedEvents are recorded by kube-controller-manager with each retry of a write, by ours with the write:
// docs/divergence.md.
var retriedEvents = regexp.MustCompile(`DeploymentRollback(TemplateUnchanged|RevisionNotFound)`)

// podEvents are those of a ReplicaSet about single pods.
var podEvents = regexp.MustCompile(`Successful(Create|Delete)`)

// sender is whose events share a budget: a component, about one object, or several of one name, and of one type.
type sender struct{ object, kind, component string }

func (s sender) String() string { return fmt.Sprintf("%s: %s (%s)", s.object, s.kind, s.component) }

// eventGroup are the events of one sender with one reason.
type eventGroup struct {
	sender
	reason   string
	messages map[string]int64
	total    int64
	combined bool
}

// noteEvents writes down the events.
func (e *env) noteEvents() {
	groups, spent := map[string]*eventGroup{}, map[sender]bool{}
	sent := map[string]int64{} // by UID of the object and sender
	for _, o := range e.side.rec.list(e.ns, "Event") {
		get := func(path ...string) string {
			s, _, _ := unstructured.NestedString(o.Object, path...)
			return e.names.text(s)
		}
		from := sender{
			get("involvedObject", "kind") + " " + get("involvedObject", "name"), get("type"),
			get("source", "component"),
		}
		if from.component == "" {
			continue // those of the API server itself do not count
		}
		key := from.String() + get("reason")
		if groups[key] == nil {
			groups[key] = &eventGroup{sender: from, reason: get("reason"), messages: map[string]int64{}}
		}
		n, _, _ := unstructured.NestedInt64(o.Object, "count")
		groups[key].add(get("message"), max(1, n))
		uid, _, _ := unstructured.NestedString(o.Object, "involvedObject", "uid")
		sent[uid+from.String()] += max(1, n)
		spent[from] = spent[from] || sent[uid+from.String()] >= budget
	}
	lines := map[string]bool{}
	for _, g := range groups {
		for _, line := range g.lines(e.scenario.retried, spent[g.sender], e.swung[g.object]) {
			lines[line] = true
		}
	}
	for _, line := range slices.SortedFunc(maps.Keys(lines), func(a, b string) int {
		return strings.Compare(a[strings.Index(a, "× "):], b[strings.Index(b, "× "):])
	}) {
		fmt.Fprintf(&e.text, "  %s\n", line)
	}
}

func (g *eventGroup) add(message string, n int64) {
	plain, combined := strings.CutPrefix(message, combined)
	g.messages[plain] += n
	g.total += n
	g.combined = g.combined || combined
}

// lines are what is compared of a group. retried: of those of the scenario only what they say; spent: the sender has
// used up its budget; swung: see noteSwings.
func (g *eventGroup) lines(retried, spent, swung bool) []string {
	key := fmt.Sprintf("%s: %s %s (%s)", g.object, g.kind, g.reason, g.component)
	retried = retried || retriedEvents.MatchString(g.reason)
	switch {
	case swung && podEvents.MatchString(g.reason):
		return nil
	case spent && !retried:
		return []string{fmt.Sprintf("%d or more× %s", budget, g.sender)}
	case g.combined && len(g.messages) > 1 && retried:
		return []string{"many× " + key}
	case g.combined && len(g.messages) > 1:
		return []string{fmt.Sprintf("%d× %s, combined", g.total, key)}
	}
	var lines []string
	for message, n := range g.messages {
		count := fmt.Sprint(n)
		if retried {
			count = "some"
		}
		lines = append(lines, fmt.Sprintf("%s× %s %q", count, key, message))
	}
	return lines
}

// noteSwings remembers the ReplicaSets whose size was raised and then lowered within one round. Both sides did so,
// for that is compared; whether the ReplicaSet's controller saw the size between, and created pods and deleted them
// at once, is chance. So the events of its pods do not count.
func (e *env) noteSwings(log []change) {
	raised, size := map[string]bool{}, map[string]int64{}
	for key, bodies := range e.was {
		if strings.HasPrefix(key, "ReplicaSet ") {
			size[key], _ = strconv.ParseInt(bodies[0]["spec.replicas"], 10, 64)
		}
	}
	for _, c := range log {
		if c.object.GetKind() != "ReplicaSet" {
			continue
		}
		key := e.names.key(c.object)
		if c.gone {
			delete(size, key)
			continue
		}
		n, _, _ := unstructured.NestedInt64(c.object.Object, "spec", "replicas")
		raised[key] = raised[key] || n > size[key]
		e.swung[key] = e.swung[key] || raised[key] && n < size[key]
		size[key] = n
	}
}
