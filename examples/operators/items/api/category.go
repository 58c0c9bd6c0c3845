package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Category is a shelf and the items on it. It cannot go while items refer to it.
type Category struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CategorySpec   `json:"spec,omitempty,omitzero"`
	Status            CategoryStatus `json:"status,omitempty,omitzero"`
}

// CategorySpec is what people say of a category.
type CategorySpec struct {
	// Prefix begins the SKUs of its items. Of several categories of a namespace with one prefix, the oldest has it.
	Prefix string `json:"prefix"`
	Shelf  string `json:"shelf,omitempty"`
	// Limit is how many pieces the shelf holds; 0 is any number.
	Limit int64 `json:"limit,omitempty"`
}

// CategoryStatus is what is known of a category. Its controller alone writes it.
type CategoryStatus struct {
	// Issued is the highest number that was ever given to an item: none is given twice.
	Issued int64 `json:"issued,omitempty"`
	// Numbers are those of its items, by name.
	Numbers map[string]int64 `json:"numbers,omitempty"`
	// Items, Quantity and Value are sums over its items.
	Items              int64              `json:"items,omitempty"`
	Quantity           int64              `json:"quantity,omitempty"`
	Value              int64              `json:"value,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// OverLimit is the condition of a category with more pieces than its shelf holds. The others are those of kstatus.
const OverLimit = "OverLimit"

// CategoryList is a list of categories.
type CategoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Category `json:"items"`
}
