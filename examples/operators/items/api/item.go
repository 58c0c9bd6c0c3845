package api

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client/manifest"
)

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

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "stock.flyball.dev", Version: "v1"}

// NewScheme returns a scheme with these kinds and Kubernetes' own.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err) // fails only if two of Kubernetes' own kinds collide
	}
	scheme.AddKnownTypes(GroupVersion, &Item{}, &ItemList{}, &Category{}, &CategoryList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return scheme
}

//go:embed crds/*_*.yaml
var crds embed.FS

// CRDs returns the definitions of the resources.
func CRDs() ([]manifest.Object, error) { return manifest.ReadFS(crds, "crds/*") }
