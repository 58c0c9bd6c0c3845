package sliceset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// PortsKey returns the same string for the same set of ports, in any order, and for no other set.
func PortsKey(ports []discoveryv1.EndpointPort) string {
	quoted := func(s *string) string {
		if s == nil {
			return "-"
		}
		return strconv.Quote(*s)
	}
	lines := make([]string, 0, len(ports))
	for i := range ports {
		p := &ports[i]
		number := "-"
		if p.Port != nil {
			number = strconv.Itoa(int(*p.Port))
		}
		lines = append(lines, quoted(p.Name)+" "+number+" "+quoted((*string)(p.Protocol))+" "+quoted(p.AppProtocol))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Wanted has the endpoints that are in no slice yet, in the order in which they were added. The zero value is empty.
type Wanted struct {
	order []endpointKey
	// left has the endpoints of order that were not taken.
	left map[endpointKey]discoveryv1.Endpoint
}

// endpointKey identifies an endpoint. Fields that are not in the key may change: the endpoint stays in its slice.
//
// Source: k8s.io/endpointslice v0.37.2 util/endpointset.go, hashEndpoint
type endpointKey struct{ addresses, hostname, namespace, name string }

func identify(e *discoveryv1.Endpoint) endpointKey {
	addresses := e.Addresses
	if !slices.IsSorted(addresses) {
		addresses = slices.Sorted(slices.Values(addresses))
	}
	key := endpointKey{addresses: strings.Join(addresses, ",")}
	if e.Hostname != nil {
		key.hostname = *e.Hostname
	}
	if e.TargetRef != nil {
		key.namespace, key.name = e.TargetRef.Namespace, e.TargetRef.Name
	}
	return key
}

// Add adds an endpoint. It replaces the same endpoint, if that was added before.
func (w *Wanted) Add(e discoveryv1.Endpoint) {
	if w.left == nil {
		w.left = make(map[endpointKey]discoveryv1.Endpoint)
	}
	key := identify(&e)
	if _, found := w.left[key]; !found {
		w.order = append(w.order, key)
	}
	w.left[key] = e
}

// Len returns how many endpoints are left.
func (w *Wanted) Len() int { return len(w.left) }

// Take removes the endpoint that is the same as existing from the set and returns it as it is wanted. It returns false
// if there is none.
func (w *Wanted) Take(existing *discoveryv1.Endpoint) (discoveryv1.Endpoint, bool) {
	key := identify(existing)
	e, found := w.left[key]
	delete(w.left, key)
	return e, found
}

// Fill moves endpoints from the set into list until list has limit.
func (w *Wanted) Fill(list []discoveryv1.Endpoint, limit int) []discoveryv1.Endpoint {
	for len(list) < limit && len(w.order) > 0 {
		if e, found := w.left[w.order[0]]; found {
			delete(w.left, w.order[0])
			list = append(list, e)
		}
		w.order = w.order[1:]
	}
	return list
}

// Equals reports whether list has exactly the endpoints that are left, in any order.
func (w *Wanted) Equals(list []discoveryv1.Endpoint) bool {
	rest := Wanted{left: maps.Clone(w.left)}
	return len(list) == rest.Len() && !slices.ContainsFunc(list, func(e discoveryv1.Endpoint) bool {
		wanted, found := rest.Take(&e)
		return !found || !SameBeyondKey(&wanted, &e)
	})
}

// SameBeyondKey reports whether two states of the same endpoint are equal. It ignores the hints, which are set later,
// and the pod's resource version, which also changes for reasons that slices do not show.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, EndpointsEqualBeyondHash
func SameBeyondKey(a, b *discoveryv1.Endpoint) bool {
	return ptr.Equal(a.NodeName, b.NodeName) && ptr.Equal(a.Zone, b.Zone) &&
		ptr.Equal(a.Conditions.Ready, b.Conditions.Ready) &&
		ptr.Equal(a.Conditions.Serving, b.Conditions.Serving) &&
		ptr.Equal(a.Conditions.Terminating, b.Conditions.Terminating) &&
		sameTarget(a.TargetRef, b.TargetRef)
}

func sameTarget(a, b *corev1.ObjectReference) bool {
	if a == nil || b == nil {
		return a == b
	}
	left, right := *a, *b
	left.ResourceVersion, right.ResourceVersion = "", ""
	return left == right
}
