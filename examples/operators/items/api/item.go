package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=it,categories=stock
// +kubebuilder:printcolumn:name=Category,type=string,JSONPath=.spec.category
// +kubebuilder:printcolumn:name=SKU,type=string,JSONPath=.status.sku
// +kubebuilder:printcolumn:name=Quantity,type=integer,JSONPath=.spec.quantity
// +kubebuilder:printcolumn:name=Phase,type=string,JSONPath=.status.phase
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`

// Item is one thing that is kept in stock.
type Item struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec   ItemSpec   `json:"spec,omitempty,omitzero"`
	Status ItemStatus `json:"status,omitempty,omitzero"`
}

// ItemSpec is the desired state of an item, as the user describes it.
type ItemSpec struct {
	// Category is the name of the Category that it belongs to, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Category string `json:"category"`
	// Quantity is the number of pieces.
	// +kubebuilder:validation:Minimum=0
	Quantity int64 `json:"quantity"`
	// UnitPrice is in cents.
	// +kubebuilder:validation:Minimum=0
	UnitPrice int64 `json:"unitPrice,omitempty"`
	// RecountEvery is how long a count stays valid. Nil means for ever.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	RecountEvery *metav1.Duration `json:"recountEvery,omitempty"`
}

// +kubebuilder:validation:Enum=Registered;Numbered;Shelved

// Phase is how far an item is on its way into the stock.
type Phase string

// The phases, in order. Each is a write of its own, whose event leads to the next.
const (
	// Registered items have been seen.
	Registered Phase = "Registered"
	// Numbered items have a number from their category, and so a SKU and a shelf.
	Numbered Phase = "Numbered"
	// Shelved items also have a label: there is nothing left to do.
	Shelved Phase = "Shelved"
)

// ItemStatus is the observed state of an item.
type ItemStatus struct {
	Phase Phase  `json:"phase,omitempty"`
	SKU   string `json:"sku,omitempty"`
	Shelf string `json:"shelf,omitempty"`
	// Value is quantity times price, in cents.
	Value int64 `json:"value,omitempty"`
	// LastCounted is when the user last changed the item, which counts as a count.
	LastCounted        *metav1.Time `json:"lastCounted,omitempty"`
	ObservedGeneration int64        `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RecountDue is the condition of an item whose last count is too old. The other conditions are those of kstatus.
const RecountDue = "RecountDue"

// +kubebuilder:object:root=true

// ItemList is a list of items.
type ItemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Item `json:"items"`
}
