package hints

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// overload is by how much an endpoint may exceed its share of the load. It is typed, and used in the same expression as
// upstream, because rounding must give the same result to the last bit.
const overload float64 = 0.2

// Enabled and Disabled are the messages of events about the annotation. The others are the problems that [Spread]
// returns.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/event.go
const (
	Enabled              = "Topology Aware Hints has been enabled"
	Disabled             = "Topology Aware Hints has been disabled"
	noZone               = "One or more endpoints do not have a zone specified"
	insufficientNodeInfo = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
	tooFewEndpoints      = "Insufficient number of endpoints"
	wouldOverload        = "Unable to allocate minimum required endpoints to each zone " +
		"without exceeding overload threshold"
)

// WantsTopology reports whether the Service's annotation asks for hints by the zones' shares of all CPUs. It overrides
// the field trafficDistribution.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, hintsEnabled
func WantsTopology(svc *corev1.Service) bool {
	value, found := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !found {
		value = svc.Annotations[corev1.AnnotationTopologyMode]
	}
	return value == "Auto" || value == "auto"
}

// allocation is how many endpoints should serve a zone.
type allocation struct {
	minimum, maximum int
	desired          float64
}

// allocate divides n endpoints among the zones. If that is impossible it returns the problem.
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

// Spread sets hints so that each zone is served by its share of the ready endpoints. A zone is served by the endpoints
// in it; zones that have more than their share give some to zones that have less. Kept slices keep their hints if these
// leave enough for the other zones. If the endpoints cannot be shared, Spread removes all hints and returns the
// problem. The package comment describes the other arguments and results.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/topologycache.go, AddHints
func Spread(written, kept []*discoveryv1.EndpointSlice,
	shares map[string]float64,
) (changed, unchanged []*discoveryv1.EndpointSlice, problem string) {
	allocations, problem := allocate(shares, readyEndpoints(written, kept))
	if problem == "" && lacksZone(written) {
		problem = noZone
	}
	allocated := make(map[string]int)
	var unfit []*discoveryv1.EndpointSlice // the kept slices whose hints do not fit
	for _, slice := range kept {
		if hints, ok := fittingHints(slice, allocated, allocations); ok {
			unchanged = append(unchanged, slice)
			for zone, n := range hints {
				allocated[zone] += n
			}
			continue
		}
		unfit = append(unfit, slice)
	}
	if problem == "" && lacksZone(unfit) {
		problem = noZone
	}
	if problem != "" {
		changed, unchanged = Apply(none, written, kept)
		return changed, unchanged, problem
	}
	copies := make([]*discoveryv1.EndpointSlice, len(unfit))
	for i, slice := range unfit {
		copies[i] = slice.DeepCopy()
	}
	all := slices.Concat(written, copies)
	hintOwnZone(all, allocated)
	redistribute(all, surplus(allocations, allocated))
	for i, slice := range copies {
		if sameHints(unfit[i], slice) {
			unchanged = append(unchanged, unfit[i])
		} else {
			changed = append(changed, slice)
		}
	}
	return changed, unchanged, ""
}

func readyEndpoints(lists ...[]*discoveryv1.EndpointSlice) int {
	n := 0
	for _, slice := range slices.Concat(lists...) {
		for i := range slice.Endpoints {
			if IsReady(&slice.Endpoints[i]) {
				n++
			}
		}
	}
	return n
}

func lacksZone(list []*discoveryv1.EndpointSlice) bool {
	for _, slice := range list {
		for i := range slice.Endpoints {
			if e := &slice.Endpoints[i]; IsReady(e) && (e.Zone == nil || *e.Zone == "") {
				return true
			}
		}
	}
	return false
}

// fittingHints counts a slice's hints by zone, and reports whether they can stay. They can if every ready endpoint has
// a hint for a zone that has an allocation, and no zone gets more than its maximum.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/utils.go, getHintsByZone
func fittingHints(slice *discoveryv1.EndpointSlice, allocated map[string]int,
	allocations map[string]allocation,
) (map[string]int, bool) {
	hints := make(map[string]int)
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		if !IsReady(e) {
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
			e.Hints = ownZone(e)
			if e.Hints != nil {
				allocated[*e.Zone]++
			}
		}
	}
}

// surplus is how many endpoints each zone gives to others. If the number is negative the zone gets them. The sum is
// zero.
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

// redistribute changes the hints of endpoints in zones that have a surplus to zones that lack some.
//
// Source: k8s.io/endpointslice v0.37.2 topologycache/utils.go, redistributeHints
func redistribute(list []*discoveryv1.EndpointSlice, surplus map[string]int) {
	var takers []string // a zone is in it once for each endpoint that it lacks
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
