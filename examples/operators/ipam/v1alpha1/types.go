package v1alpha1

import (
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the operator's resources.
var GroupVersion = schema.GroupVersion{Group: "whereabouts.cni.cncf.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &IPPool{}, &IPPoolList{}, &NodeSlicePool{}, &NodeSlicePoolList{},
		&OverlappingRangeIPReservation{}, &OverlappingRangeIPReservationList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ipp
// +kubebuilder:printcolumn:name=Range,type=string,JSONPath=.spec.range
// +kubebuilder:printcolumn:name=Used,type=integer,JSONPath=.status.usedIPs
// +kubebuilder:printcolumn:name=Free,type=integer,JSONPath=.status.freeIPs
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp

// IPPool is a range of addresses and their allocations. The CNI plugin adds allocations; the operator removes those
// whose Pod no longer needs them.
type IPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              IPPoolSpec   `json:"spec"`
	Status            IPPoolStatus `json:"status,omitzero"`
}

// IPPoolSpec is written by the CNI plugin.
type IPPoolSpec struct {
	// Range is a CIDR such as 10.0.0.0/24. The CNI plugin writes it, so a malformed one is not refused, but reported in
	// the condition Stalled.
	Range string `json:"range"`
	// Allocations maps the offset of an address in the range, in decimal, to its allocation.
	Allocations map[string]IPAllocation `json:"allocations"`
}

// IPAllocation names the holder of an address.
type IPAllocation struct {
	// ContainerID is the ID of the Pod's sandbox.
	ContainerID string `json:"id"`
	// PodRef is namespace/name of the Pod.
	PodRef string `json:"podref"`
	// IfName is the interface in the Pod.
	IfName string `json:"ifname,omitempty"`
}

// IPPoolStatus is the observed state of an IPPool.
type IPPoolStatus struct {
	// FirstIP and LastIP are the first and last address that can be allocated.
	FirstIP string `json:"firstIP,omitempty"`
	LastIP  string `json:"lastIP,omitempty"`
	// TotalIPs is at most 2147483647, however large the range is.
	// +optional
	TotalIPs int32 `json:"totalIPs"`
	// +optional
	UsedIPs int32 `json:"usedIPs"`
	// +optional
	FreeIPs int32 `json:"freeIPs"`
	// OrphanedIPs counts the allocations that nobody needs and that could not be released yet.
	// +optional
	OrphanedIPs int32 `json:"orphanedIPs"`
	// PendingPods counts the allocations of Pods that do not run yet.
	// +optional
	PendingPods int32 `json:"pendingPods"`
	// OverlappingReservations counts the reservations of addresses of this pool.
	// +optional
	OverlappingReservations int32              `json:"overlappingReservations"`
	AllocatedIPs            []AllocatedIP      `json:"allocatedIPs,omitempty"`
	Conditions              []metav1.Condition `json:"conditions,omitempty"`
}

// AllocatedIP is an allocation with its address written out.
type AllocatedIP struct {
	IP     string `json:"ip"`
	PodRef string `json:"podRef"`
	IfName string `json:"ifName,omitempty"`
}

// +kubebuilder:object:root=true

// IPPoolList is a list of IPPools.
type IPPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []IPPool `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=nsp
// +kubebuilder:printcolumn:name=Range,type=string,JSONPath=.spec.range
// +kubebuilder:printcolumn:name=Slices,type=integer,JSONPath=.status.totalSlices
// +kubebuilder:printcolumn:name=Free,type=integer,JSONPath=.status.freeSlices
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp

// NodeSlicePool is a network's range, cut into slices. Each node has one slice.
type NodeSlicePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NodeSlicePoolSpec   `json:"spec"`
	Status            NodeSlicePoolStatus `json:"status,omitzero"`
}

// NodeSlicePoolSpec repeats the network attachment definition.
type NodeSlicePoolSpec struct {
	Range string `json:"range"`
	// SliceSize is the prefix length of a slice: "24" or "/24".
	// +kubebuilder:validation:Pattern=`^/?[0-9]+$`
	SliceSize string `json:"sliceSize"`
}

// NodeSlicePoolStatus lists the slices and their nodes.
type NodeSlicePoolStatus struct {
	// Allocations are the slices that have a node, sorted by address.
	Allocations []NodeSliceAllocation `json:"allocations,omitempty"`
	// +optional
	TotalSlices int32 `json:"totalSlices"`
	// +optional
	AssignedSlices int32 `json:"assignedSlices"`
	// +optional
	FreeSlices int32              `json:"freeSlices"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeSliceAllocation is one slice. Its node may be gone, if addresses of the slice are still in use.
type NodeSliceAllocation struct {
	NodeName   string `json:"nodeName"`
	SliceRange string `json:"sliceRange"`
}

// +kubebuilder:object:root=true

// NodeSlicePoolList is a list of NodeSlicePools.
type NodeSlicePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []NodeSlicePool `json:"items"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=orip
// +kubebuilder:printcolumn:name=Pod,type=string,JSONPath=.spec.podref
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=.metadata.creationTimestamp

// OverlappingRangeIPReservation reserves one address across all pools: its name is the address, after the network's
// name and a dash if the network has one. See [ReservationName].
type OverlappingRangeIPReservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OverlappingRangeIPReservationSpec   `json:"spec"`
	Status            OverlappingRangeIPReservationStatus `json:"status,omitzero"`
}

// OverlappingRangeIPReservationSpec names the holder of the address.
type OverlappingRangeIPReservationSpec struct {
	ContainerID string `json:"containerid,omitempty"`
	// PodRef is namespace/name of the Pod.
	PodRef string `json:"podref"`
	IfName string `json:"ifname,omitempty"`
}

// OverlappingRangeIPReservationStatus is the observed state of the reservation.
type OverlappingRangeIPReservationStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true

// OverlappingRangeIPReservationList is a list of OverlappingRangeIPReservations.
type OverlappingRangeIPReservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []OverlappingRangeIPReservation `json:"items"`
}

// normalize converts an address or a range so that it can be part of a name.
//
// Source: whereabouts v0.0.4, which cannot have ":" or "/" in names, nor a dash at their end.
func normalize(text string) string {
	if strings.HasSuffix(text, ":") {
		text += "0"
	}
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}

// NormalizeRange returns a range as it appears in the name of its pool.
func NormalizeRange(cidr string) string {
	address, length, found := strings.Cut(cidr, "/")
	if !found {
		return normalize(cidr)
	}
	return normalize(address) + "-" + length
}

// PoolName returns the name of the pool of a range, for all nodes or for one. The network may have no name.
func PoolName(network, cidr, node string) string {
	name := NormalizeRange(cidr)
	if network != "" {
		name = network + "-" + name
	}
	if node != "" {
		name += "-" + node
	}
	return name
}

// NetworkAndNode returns the network and the node of a pool of that range, according to its name. Both are empty if the
// name does not tell.
func NetworkAndNode(pool, cidr string) (network, node string) {
	middle := NormalizeRange(cidr)
	for i := strings.Index(pool, middle); i >= 0; {
		before, after := pool[:i], pool[i+len(middle):]
		if (before == "" || strings.HasSuffix(before, "-")) && (after == "" || strings.HasPrefix(after, "-")) {
			return strings.TrimSuffix(before, "-"), strings.TrimPrefix(after, "-")
		}
		next := strings.Index(pool[i+1:], middle)
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return "", ""
}

// ReservationName returns the name of the reservation of an address.
func ReservationName(network string, ip netip.Addr) string {
	if network == "" {
		return normalize(ip.String())
	}
	return network + "-" + normalize(ip.String())
}

// ReservationFor reports whether a reservation of that name is the one of ip in a network. An empty network means that
// the network is not known. The reservation may then belong to any network, unless the whole name can be read as
// another address. So "2001-db8--1" is taken for db8::1 in a network called 2001 only if that network is given.
func ReservationFor(name, network string, ip netip.Addr) bool {
	if name == ReservationName(network, ip) {
		return true
	}
	for _, text := range []string{name, strings.ReplaceAll(name, "-", ":")} {
		if whole, err := netip.ParseAddr(text); err == nil {
			return whole == ip
		}
	}
	return network == "" && strings.HasSuffix(name, "-"+normalize(ip.String()))
}
