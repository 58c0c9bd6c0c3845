package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cat,categories=stock
// +kubebuilder:printcolumn:name=Prefix,type=string,JSONPath=.spec.prefix
// +kubebuilder:printcolumn:name=Items,type=integer,JSONPath=.status.items
// +kubebuilder:printcolumn:name=Quantity,type=integer,JSONPath=.status.quantity
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`

// Category is a shelf and the items on it. It cannot be removed while items refer to it.
type Category struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec   CategorySpec   `json:"spec,omitempty,omitzero"`
	Status CategoryStatus `json:"status,omitempty,omitzero"`
}

// CategorySpec is the desired state of a category.
type CategorySpec struct {
	// Prefix is the beginning of the SKUs of its items. If several categories of a namespace have the same prefix, it
	// belongs to the oldest.
	// +kubebuilder:validation:Pattern=`^[A-Z]{2,4}$`
	Prefix string `json:"prefix"`
	// Shelf is where the category's items are.
	// +kubebuilder:validation:MaxLength=64
	Shelf string `json:"shelf,omitempty"`
	// Limit is how many pieces the shelf holds. 0 means any number.
	// +kubebuilder:validation:Minimum=0
	Limit int64 `json:"limit,omitempty"`
}

// CategoryStatus is the observed state of a category. Only its controller writes it.
type CategoryStatus struct {
	// Issued is the highest number that was ever given to an item. No number is given twice.
	Issued int64 `json:"issued,omitempty"`
	// Numbers are the numbers of the category's items, by name.
	Numbers map[string]int64 `json:"numbers,omitempty"`
	// Items, Quantity and Value are sums over the category's items.
	Items              int64 `json:"items,omitempty"`
	Quantity           int64 `json:"quantity,omitempty"`
	Value              int64 `json:"value,omitempty"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OverLimit is the condition of a category with more pieces than its shelf holds. The other conditions are those of
// kstatus.
const OverLimit = "OverLimit"

// +kubebuilder:object:root=true

// CategoryList is a list of categories.
type CategoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Category `json:"items"`
}
