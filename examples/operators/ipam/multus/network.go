package multus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// GroupVersion is the group and version of network attachment definitions.
var GroupVersion = schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NetworkAttachmentDefinition{}, &NetworkAttachmentDefinitionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=network-attachment-definitions,singular=network-attachment-definition,shortName=net-attach-def

// NetworkAttachmentDefinition is a network that Pods can be attached to. Multus defines it.
type NetworkAttachmentDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +optional
	Spec NetworkAttachmentDefinitionSpec `json:"spec"`
}

// NetworkAttachmentDefinitionSpec holds the configuration of a CNI plugin, or of a list of them, as JSON.
type NetworkAttachmentDefinitionSpec struct {
	// Config is the configuration.
	Config string `json:"config,omitempty"`
}

// +kubebuilder:object:root=true

// NetworkAttachmentDefinitionList is a list of NetworkAttachmentDefinitions.
type NetworkAttachmentDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []NetworkAttachmentDefinition `json:"items"`
}

// NetworkStatusAnnotation is the annotation in which Multus lists the addresses of a Pod.
const NetworkStatusAnnotation = "k8s.v1.cni.cncf.io/network-status"

// +kubebuilder:object:generate=false

// NetworkStatus is one entry of that annotation, for one interface.
type NetworkStatus struct {
	Name      string   `json:"name"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips"`
	// Default marks the interface that every Pod has from the cluster's own network.
	Default bool `json:"default"`
}

// +kubebuilder:object:generate=false

// SlicedNetwork is a network whose range is cut into slices, as a network attachment definition describes it.
type SlicedNetwork struct {
	// Name is the network's name, or that of the CNI configuration.
	Name string
	// Network is the network's own name, which is part of the names of its IPPools. It may be empty.
	Network string
	// Range and SliceSize are as written.
	Range, SliceSize string
}

// +kubebuilder:object:generate=false

// cniConfig is the part of a CNI configuration that matters here: one plugin, or a list of them.
type cniConfig struct {
	Name    string `json:"name"`
	IPAM    ipam   `json:"ipam"`
	Plugins []struct {
		IPAM ipam `json:"ipam"`
	} `json:"plugins"`
}

// +kubebuilder:object:generate=false

// ipam is whereabouts' part of the configuration.
type ipam struct {
	Type        string `json:"type"`
	Range       string `json:"range"`
	SliceSize   string `json:"node_slice_size"`
	NetworkName string `json:"network_name"`
}

// Sliced returns the sliced network that the definition describes. It returns nil if there is none: the definition has
// no configuration, another plugin assigns its addresses, or it is not sliced.
//
// Errors: a configuration that cannot be read, or a network name that an object cannot have.
func (n *NetworkAttachmentDefinition) Sliced() (*SlicedNetwork, error) {
	if strings.TrimSpace(n.Spec.Config) == "" {
		return nil, nil
	}
	var config cniConfig
	if err := json.Unmarshal([]byte(n.Spec.Config), &config); err != nil {
		return nil, fmt.Errorf("spec.config is no CNI configuration: %w", err)
	}
	candidates := []ipam{config.IPAM}
	for _, plugin := range config.Plugins {
		candidates = append(candidates, plugin.IPAM)
	}
	for _, c := range candidates {
		if c.Type != "whereabouts" {
			continue
		}
		if c.SliceSize == "" || c.Range == "" {
			return nil, nil
		}
		network := &SlicedNetwork{Name: c.NetworkName, Network: c.NetworkName, Range: c.Range, SliceSize: c.SliceSize}
		network.Name = cmp.Or(network.Name, config.Name)
		if wrong := validation.IsDNS1123Subdomain(network.Name); len(wrong) > 0 {
			return nil, fmt.Errorf("network %q cannot name a NodeSlicePool: %s", network.Name,
				strings.Join(wrong, "; "))
		}
		return network, nil
	}
	return nil, nil
}
