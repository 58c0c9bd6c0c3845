package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

// packer collects the state of each address on each port, and lays them out canonically: ports with the same addresses
// in the same states share one subset. The zero value is ready for use.
//
// Two addresses are the same if IP and target UID are: two pods may report one IP. If the same address and port are
// added more than once, they are not ready if one of the additions is not.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/endpoints/util.go, RepackSubsets
type packer struct {
	addresses []corev1.EndpointAddress
	// index finds addresses. Invariant: it has the position of each element of addresses.
	index map[addressKey]int
	ports []portStates
	// portIndex finds ports in the same way.
	portIndex map[portKey]int
}

type addressKey struct {
	ip  string
	uid types.UID
}

// portKey is an EndpointPort by value: its AppProtocol is a pointer.
type portKey struct {
	name, appProtocol string
	hasAppProtocol    bool
	port              int32
	protocol          corev1.Protocol
}

// portStates is a port with the state of every address on it.
type portStates struct {
	port corev1.EndpointPort
	// states is indexed like packer.addresses. It may be shorter: addresses beyond its end are absent.
	states []state
}

// state is the state of one address on one port.
type state byte

const (
	absent state = iota
	ready
	notReady
)

// portless stands for "no port at all": the subset of a headless Service without ports.
var portless = corev1.EndpointPort{Port: -1}

// add records the state of address on port.
func (p *packer) add(address corev1.EndpointAddress, port corev1.EndpointPort, s state) {
	at := p.addressIndex(address)
	on := &p.ports[p.portNumber(port)]
	for len(on.states) <= at {
		on.states = append(on.states, absent)
	}
	if on.states[at] != notReady {
		on.states[at] = s
	}
}

func (p *packer) addressIndex(address corev1.EndpointAddress) int {
	key := addressKey{ip: address.IP}
	if address.TargetRef != nil {
		key.uid = address.TargetRef.UID
	}
	at, found := p.index[key]
	if !found {
		if p.index == nil {
			p.index = make(map[addressKey]int)
		}
		at = len(p.addresses)
		p.index[key] = at
		p.addresses = append(p.addresses, address)
	}
	return at
}

func (p *packer) portNumber(port corev1.EndpointPort) int {
	key := portKey{name: port.Name, port: port.Port, protocol: port.Protocol}
	if port.AppProtocol != nil {
		key.hasAppProtocol, key.appProtocol = true, *port.AppProtocol
	}
	at, found := p.portIndex[key]
	if !found {
		if p.portIndex == nil {
			p.portIndex = make(map[portKey]int)
		}
		at = len(p.ports)
		p.portIndex[key] = at
		p.ports = append(p.ports, portStates{port: port})
	}
	return at
}

// pack returns the canonical layout, which is never nil. More may be added and packed afterwards.
func (p *packer) pack() []corev1.EndpointSubset {
	order := p.sortedAddresses()
	subsets := []corev1.EndpointSubset{}
	groups := make(map[string]int) // from the states of all addresses on a port to the subset
	for i := range p.ports {
		on := &p.ports[i]
		group := make([]byte, len(p.addresses))
		for at, s := range on.states {
			group[at] = byte(s)
		}
		at, found := groups[string(group)]
		if !found {
			at = len(subsets)
			groups[string(group)] = at
			subsets = append(subsets, p.subset(order, on.states))
		}
		if on.port.Port > 0 {
			subsets[at].Ports = append(subsets[at].Ports, on.port)
		}
	}
	for i := range subsets {
		serving.SortByHash(subsets[i].Ports)
	}
	serving.SortByHash(subsets)
	return subsets
}

// sortedAddresses returns the positions of the addresses in their canonical order.
func (p *packer) sortedAddresses() []int {
	order := make([]int, len(p.addresses))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareAddresses(&p.addresses[a], &p.addresses[b]) })
	return order
}

// subset returns a subset of the addresses that are not absent. The caller adds the ports.
func (p *packer) subset(order []int, states []state) corev1.EndpointSubset {
	var s corev1.EndpointSubset
	for _, at := range order {
		if at >= len(states) {
			continue
		}
		switch states[at] {
		case ready:
			s.Addresses = append(s.Addresses, p.addresses[at])
		case notReady:
			s.NotReadyAddresses = append(s.NotReadyAddresses, p.addresses[at])
		}
	}
	return s
}

// RepackSubsets brings subsets into the canonical layout: each pair of port and address occurs once, ports that the
// same addresses serve are in one subset, and the order depends on nothing else. The controller writes and compares
// subsets in this layout.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/endpoints/util.go, RepackSubsets
func RepackSubsets(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	var p packer
	for i := range subsets {
		ports := subsets[i].Ports
		if len(ports) == 0 {
			ports = []corev1.EndpointPort{portless}
		}
		for _, port := range ports {
			for _, address := range subsets[i].Addresses {
				p.add(address, port, ready)
			}
			for _, address := range subsets[i].NotReadyAddresses {
				p.add(address, port, notReady)
			}
		}
	}
	return p.pack()
}

// count returns how many addresses there are. An address counts once in each subset that has it.
func count(subsets []corev1.EndpointSubset) (ready, notReady int) {
	for i := range subsets {
		ready += len(subsets[i].Addresses)
		notReady += len(subsets[i].NotReadyAddresses)
	}
	return ready, notReady
}
