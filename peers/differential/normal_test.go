package differential

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// body is an object without what differs from one cluster to another, as its leaves by path.
type body map[string]string

// names replaces, in one namespace, what chance gave its name: pods of a set are all called the same, and their
// addresses too. Names of ReplicaSets, which end in the hash of the template, stay.
type names struct {
	// pods are all generated pods that were ever seen, by name.
	pods map[string]string
	// addresses are their IPs.
	addresses map[string]string
}

func newNames() *names { return &names{pods: map[string]string{}, addresses: map[string]string{}} }

// learn takes in a pod.
func (n *names) learn(pod *unstructured.Unstructured) {
	if pod.GetKind() != "Pod" || pod.GetGenerateName() == "" {
		return
	}
	n.pods[pod.GetName()] = podName(pod)
	if ip, _, _ := unstructured.NestedString(pod.Object, "status", "podIP"); ip != "" {
		n.addresses[ip] = "IP(" + podName(pod) + ")"
	}
}

// podName is a pod's name, with POD where it was generated.
func podName(pod *unstructured.Unstructured) string {
	if prefix := pod.GetGenerateName(); prefix != "" {
		return prefix + "POD"
	}
	return pod.GetName()
}

// key names an object for people, by kind and name. Several objects may share it.
func (n *names) key(o *unstructured.Unstructured) string {
	name := o.GetName()
	if known, ok := n.pods[name]; ok {
		name = known
	} else if prefix := o.GetGenerateName(); prefix != "" {
		name = prefix + strings.ToUpper(o.GetKind())
	}
	return o.GetKind() + " " + name
}

var (
	word        = regexp.MustCompile(`[a-z0-9][a-z0-9.-]*`)
	podSuffix   = regexp.MustCompile(`(-[bcdf0-9ghjklmnpqrstvwxz]{6,10})-[bcdf0-9ghjklmnpqrstvwxz2456789]{5}\b`)
	timeOfDay   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	clusterAddr = regexp.MustCompile(`^(10\.0\.\d+\.\d+|fd00:10::[0-9a-f:]*)$`)
	uidLike     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// text replaces names inside a value.
func (n *names) text(s string) string {
	if known, ok := n.addresses[s]; ok {
		return known
	}
	if clusterAddr.MatchString(s) {
		return "CLUSTERIP"
	}
	s = uidLike.ReplaceAllString(timeOfDay.ReplaceAllString(s, "TIME"), "UID")
	s = word.ReplaceAllStringFunc(s, func(w string) string {
		if known, ok := n.pods[strings.TrimRight(w, ".")]; ok {
			return known + w[len(strings.TrimRight(w, ".")):]
		}
		return w
	})
	return podSuffix.ReplaceAllString(s, "$1-POD")
}

// dropped are the fields that say when or which, not what.
var dropped = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "managedFields": true, "generation": true,
	"selfLink":           true,
	"lastTransitionTime": true, "lastUpdateTime": true, "lastProbeTime": true, "startTime": true,
	"endpoints.kubernetes.io/last-change-trigger-time": true, "apiVersion": true,
}

// body is the object by its leaves.
func (n *names) body(o *unstructured.Unstructured) body {
	b := body{}
	for key, value := range o.Object {
		if key != "kind" && !dropped[key] {
			n.flatten(b, key, value)
		}
	}
	if o.GetKind() == "Pod" && o.GetGenerateName() != "" || o.GetKind() != "Pod" {
		delete(b, "metadata.name")
	}
	delete(b, "metadata.namespace")
	if _, ok := b["status.observedGeneration"]; ok {
		if observed(o) {
			delete(b, "status.observedGeneration")
		} else {
			b["status.observedGeneration"] = "behind"
		}
	}
	if o.GetKind() == "Deployment" && !isComplete(o) && b[progressing+".status"] == "True" {
		// When exactly the condition moves from one rollout to the next is chance: the first writes of a rollout meet
		// conflicts.
		b[progressing+".reason"], b[progressing+".message"] = "of a rollout", "of a rollout"
	}
	if message, ok := b[progressing+".message"]; ok {
		// A condition that keeps its status and reason keeps its message. Whether the one of a rollout came in
		// between two "has successfully progressed" depends on which counts the Deployment's controller saw: so the
		// second may name the first's ReplicaSet.
		b[progressing+
			".message"] = progressed.ReplaceAllString(message, "ReplicaSet OF-A-ROLLOUT has successfully progressed.")
	}
	return b
}

var progressed = regexp.MustCompile(`ReplicaSet "[^"]*" has successfully progressed\.`)

const progressing = "status.conditions[Progressing]"

// isComplete reports whether a Deployment says of itself that it is as asked for.
func isComplete(d *unstructured.Unstructured) bool {
	get := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(d.Object, path...)
		return n
	}
	replicas := get("spec", "replicas")
	return observed(d) && get("status", "replicas") == replicas && get("status", "updatedReplicas") == replicas &&
		get("status", "availableReplicas") == replicas
}

func (n *names) flatten(into body, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if dropped[key] {
				continue
			}
			n.flatten(into, path+"."+key, inner)
		}
		if len(v) == 0 {
			into[path] = "{}"
		}
	case []any:
		n.flattenList(into, path, v)
	default:
		into[path] = n.leaf(path, v)
	}
}

func (n *names) leaf(path string, v any) string {
	if path == "metadata.deletionTimestamp" {
		return "set"
	}
	if s, ok := v.(string); ok {
		return n.text(s)
	}
	return fmt.Sprint(v)
}

// flattenList brings elements into an order of their own: conditions by type, everything else by what it says.
func (n *names) flattenList(into body, path string, list []any) {
	elements := make([]body, len(list))
	for i, e := range list {
		elements[i] = body{}
		n.flatten(elements[i], "", e)
	}
	slices.SortFunc(elements, func(a, b body) int { return cmp.Compare(a.String(), b.String()) })
	for i, e := range elements {
		name := fmt.Sprint(i)
		if t, ok := e[".type"]; ok && strings.HasSuffix(path, "conditions") {
			name = t
			delete(e, ".type")
		}
		for key, value := range e {
			into[path+"["+name+"]"+key] = value
		}
	}
	if len(list) == 0 {
		into[path] = "[]"
	}
}

// String is one leaf a line, in order.
func (b body) String() string {
	var s strings.Builder
	for _, path := range slices.Sorted(maps.Keys(b)) {
		fmt.Fprintf(&s, "%s: %s\n", path, b[path])
	}
	return s.String()
}

// difference is what changed from one body to another, a line each.
func difference(from, to body) []string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(from)) {
		if value, ok := to[path]; !ok {
			lines = append(lines, fmt.Sprintf("%s: %s → none", path, from[path]))
		} else if value != from[path] {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", path, from[path], value))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(to)) {
		if _, ok := from[path]; !ok {
			lines = append(lines, fmt.Sprintf("%s: %s", path, to[path]))
		}
	}
	slices.Sort(lines)
	return lines
}

// decisions are the parts of a Deployment or ReplicaSet whose every state is compared, not only those in which it
// settles: what was decided, not what was counted. There is one part for the object itself, under "", and one for the
// condition Progressing; in which order states of different parts follow each other is chance.
func (b body) decisions() map[string]body {
	parts := map[string]body{"": {}}
	for path, value := range b {
		part := ""
		switch {
		case strings.HasPrefix(path, progressing):
			if part = progressing; path != progressing+".status" && b[progressing+".status"] == "True" {
				continue // see body
			}
		case strings.HasPrefix(path, "spec.replicas"), strings.HasPrefix(path, "metadata.annotations"),
			strings.HasPrefix(path, "metadata.ownerReferences"), path == "status.collisionCount":
		default:
			continue
		}
		if parts[part] == nil {
			parts[part] = body{}
		}
		parts[part][path] = value
	}
	return parts
}
