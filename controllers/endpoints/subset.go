package endpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

// packer collects which address is ready, or not, on which port, and lays that out the canonical way: ports that the
// same addresses serve, in the same state, share one subset. The zero value is ready for use.
//
// An address is told from another by its IP and the UID of what it belongs to: two pods may report one IP. What is
// said about one address and port more than once counts as not ready if it was not ready once.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/api/v1/endpoints/util.go, RepackSubsets
type packer struct {
	addresses []corev1.EndpointAddress
	// index finds addresses. Invariant: it has one entry for each of addresses, its position.
	index map[addressKey]int
	ports []portStates
	// portIndex finds ports, likewise.
	portIndex map[portKey]int
}

type addressKey struct {
	ip  string
	uid types.UID
}

// portKey is an EndpointPort by value: AppProtocol is a pointer there.
type portKey struct {
	name, appProtocol string
	hasAppProtocol    bool
	port              int32
	protocol          corev1.Protocol
}

// portStates is a port with the state of every address on it.
type portStates struct {
	port corev1.EndpointPort
	// states is indexed like packer.addresses; it may be shorter, and what lies beyond is absent.
	states []state
}

// state is what is known of one address on one port.
type state byte

const (
	absent state = iota
	ready
	notReady
)

// portless stands for "no port at all": the subset of a headless Service without ports.
var portless = corev1.EndpointPort{Port: -1}

// add notes that address serves port.
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

// pack returns the canonical layout. It is never nil. The packer can be added to and packed again.
func (p *packer) pack() []corev1.EndpointSubset {
	order := p.sortedAddresses()
	subsets := []corev1.EndpointSubset{}
	groups := make(map[string]int) // the states of all addresses on a port → the subset
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

// subset returns a subset without ports, of the addresses that have a state.
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

// RepackSubsets brings subsets into the canonical layout: each port and address once, ports that the same addresses
// serve in one subset, all of it in an order that depends on nothing else. It is what the controller writes, and how
// it compares.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/api/v1/endpoints/util.go, RepackSubsets
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

// count returns how many addresses there are, an address counted once in each subset that has it.
func count(subsets []corev1.EndpointSubset) (ready, notReady int) {
	for i := range subsets {
		ready += len(subsets[i].Addresses)
		notReady += len(subsets[i].NotReadyAddresses)
	}
	return ready, notReady
}
