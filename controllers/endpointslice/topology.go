package endpointslice

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// overload is by how much more than its share an endpoint may have to carry. It is typed, and used in the same
// expression as there: what is rounded up must not differ by the last bit.
const overload float64 = 0.2

// The messages of events about the annotation.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/event.go
const (
	hintsEnabled         = "Topology Aware Hints has been enabled"
	hintsDisabled        = "Topology Aware Hints has been disabled"
	noZone               = "One or more endpoints do not have a zone specified"
	insufficientNodeInfo = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
	tooFewEndpoints      = "Insufficient number of endpoints"
	wouldOverload        = "Unable to allocate minimum required endpoints to each zone without exceeding overload " +
		"threshold"
)

// notice is an event to be recorded about the Service.
type notice struct{ kind, reason, message string }

func warnDisabled(message string, kind discoveryv1.AddressType) notice {
	return notice{
		corev1.EventTypeWarning, "TopologyAwareHintsDisabled",
		fmt.Sprintf("%s, addressType: %s", message, kind),
	}
}

// wantsTopology reports whether the Service's annotation asks for hints by the zones' share of all CPUs. It rules out
// what the field trafficDistribution asks for.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, hintsEnabled
func wantsTopology(svc *corev1.Service) bool {
	value, found := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !found {
		value = svc.Annotations[corev1.AnnotationTopologyMode]
	}
	return value == "Auto" || value == "auto"
}

// zoneShares is the part of the cluster's CPUs that each zone has. It is nil if there are fewer than two zones, or if
// it cannot be told, because a node does not say how many it has, or where it is.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache.go, SetNodes
func zoneShares(nodes iter.Seq[*corev1.Node]) map[string]float64 {
	shares, total := make(map[string]float64), 0.0
	for node := range nodes {
		if isControlPlane(node) || !nodeReady(node) {
			continue
		}
		cpu := float64(node.Status.Allocatable.Cpu().MilliValue())
		if zoneOf(node) == "" || cpu == 0 {
			return nil
		}
		shares[zoneOf(node)] += cpu
		total += cpu
	}
	if len(shares) < 2 {
		return nil
	}
	for zone := range shares {
		shares[zone] /= total
	}
	return shares
}

func isControlPlane(node *corev1.Node) bool {
	return metav1.HasLabel(node.ObjectMeta, "node-role.kubernetes.io/control-plane") ||
		metav1.HasLabel(node.ObjectMeta, "node-role.kubernetes.io/master")
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// allocation is how many endpoints a zone should be served by.
type allocation struct {
	minimum, maximum int
	desired          float64
}

// allocate shares n endpoints among the zones. What it returns besides is why that cannot be done.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache.go, getAllocations
func allocate(shares map[string]float64, n int) (map[string]allocation, string) {
	if shares == nil {
		return nil, insufficientNodeInfo
	}
	counted := fmt.Sprintf(" (%d endpoints, %d zones)", n, len(shares))
	if len(shares) > n {
		return nil, tooFewEndpoints + counted
	}
	allocations, spare := make(map[string]allocation, len(shares)), n
	for zone, share := range shares {
		desired := share * float64(n)
		minimum := int(math.Ceil(desired * (1 / (1 + overload))))
		allocations[zone] = allocation{minimum: minimum, desired: max(desired, float64(minimum))}
		spare -= minimum
	}
	if spare < 0 {
		return nil, wouldOverload + counted
	}
	for zone, a := range allocations {
		a.maximum = a.minimum + spare
		allocations[zone] = a
	}
	return allocations, ""
}

// spread sets hints so that each zone is served by its share of the ready endpoints: first by those that are in it,
// then some are given from zones that have more to those that lack some. Slices that are kept keep their hints, as long
// as these leave room for the rest. If that cannot be done there are no hints, and it says why.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache.go, AddHints
func spread(out *batch, shares map[string]float64) string {
	allocations, problem := allocate(shares, readyEndpoints(out))
	if problem == "" && lacksZone(out.create, out.update) {
		problem = noZone
	}
	if problem != "" {
		hinter(noHints).apply(out)
		return problem
	}
	allocated := make(map[string]int)
	reopened := make(map[*discoveryv1.EndpointSlice]*discoveryv1.EndpointSlice) // the copy → what was kept
	var open, keep []*discoveryv1.EndpointSlice
	for _, slice := range out.keep {
		if hints, ok := fittingHints(slice, allocated, allocations); ok {
			keep = append(keep, slice)
			for zone, n := range hints {
				allocated[zone] += n
			}
			continue
		}
		c := slice.DeepCopy()
		reopened[c], open = slice, append(open, c)
	}
	if lacksZone(open) {
		hinter(noHints).apply(out)
		return noZone
	}
	all := slices.Concat(out.create, out.update, open)
	hintOwnZone(all, allocated)
	redistribute(all, surplus(allocations, allocated))
	out.keep = keep
	for _, slice := range open {
		if old := reopened[slice]; sameHints(old, slice) {
			out.keep = append(out.keep, old)
		} else {
			out.update = append(out.update, slice)
		}
	}
	return ""
}

func readyEndpoints(out *batch) int {
	n := 0
	for _, slice := range slices.Concat(out.create, out.update, out.keep) {
		for i := range slice.Endpoints {
			if isReady(&slice.Endpoints[i]) {
				n++
			}
		}
	}
	return n
}

func lacksZone(lists ...[]*discoveryv1.EndpointSlice) bool {
	for _, slice := range slices.Concat(lists...) {
		for i := range slice.Endpoints {
			if e := &slice.Endpoints[i]; isReady(e) && (e.Zone == nil || *e.Zone == "") {
				return true
			}
		}
	}
	return false
}

// fittingHints counts a slice's hints by zone, and reports whether they can stay: every ready endpoint has one, for a
// zone that needs some, and no zone gets more than it may.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/utils.go, getHintsByZone
func fittingHints(slice *discoveryv1.EndpointSlice, allocated map[string]int,
	allocations map[string]allocation,
) (map[string]int, bool) {
	hints := make(map[string]int)
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		if !isReady(e) {
			continue
		}
		if e.Hints == nil || len(e.Hints.ForZones) == 0 {
			return nil, false
		}
		for _, zone := range e.Hints.ForZones {
			hints[zone.Name]++
		}
	}
	for zone, n := range hints {
		if a, needed := allocations[zone]; !needed || n+allocated[zone] > a.maximum {
			return nil, false
		}
	}
	return hints, true
}

func hintOwnZone(list []*discoveryv1.EndpointSlice, allocated map[string]int) {
	for _, slice := range list {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			e.Hints = closeHints(e, false)
			if e.Hints != nil {
				allocated[*e.Zone]++
			}
		}
	}
}

// surplus is how many endpoints each zone gives to others, or, if negative, gets from them. The sum is zero.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/utils.go, getGivingAndReceivingZones
func surplus(allocations map[string]allocation, allocated map[string]int) map[string]int {
	over := make(map[string]float64)
	for zone, a := range allocations {
		over[zone] = float64(allocated[zone]) - a.desired
	}
	whole := make(map[string]int)
	zones := slices.Sorted(maps.Keys(over))
	for {
		giver, taker := zones[0], zones[0]
		for _, zone := range zones {
			if over[zone] > over[giver] {
				giver = zone
			}
			if over[zone] < over[taker] {
				taker = zone
			}
		}
		give, take := over[giver], -over[taker]
		if give < 0.5 || take < 0.5 || (give < 1 && take < 1) {
			return whole
		}
		whole[giver]++
		over[giver]--
		whole[taker]--
		over[taker]++
	}
}

// redistribute points endpoints of zones that have a surplus at those that lack some.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/utils.go, redistributeHints
func redistribute(list []*discoveryv1.EndpointSlice, surplus map[string]int) {
	var takers []string // each as often as it lacks one
	for _, zone := range slices.Sorted(maps.Keys(surplus)) {
		for n := surplus[zone]; n < 0; n++ {
			takers = append(takers, zone)
		}
	}
	for _, slice := range list {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if len(takers) == 0 || e.Hints == nil || surplus[*e.Zone] <= 0 {
				continue
			}
			surplus[*e.Zone]--
			e.Hints.ForZones[0].Name = takers[0]
			takers = takers[1:]
		}
	}
}

// sameHints compares the hints of two slices with the same endpoints.
func sameHints(a, b *discoveryv1.EndpointSlice) bool {
	for i := range a.Endpoints {
		if !equality.Semantic.DeepEqual(a.Endpoints[i].Hints, b.Endpoints[i].Hints) {
			return false
		}
	}
	return true
}
