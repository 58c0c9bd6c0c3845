// Package website has a kind of two versions for tests: V2 is the hub. V1 has one port where V2 has several.
package website

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// Group is the group of the kind.
const Group = "web.example.org"

// V1 is version v1 of the kind Website.
type V1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV1 `json:"spec,omitempty"`
}

// SpecV1 is the spec of V1.
type SpecV1 struct {
	Host     string `json:"host,omitempty"`
	Port     int32  `json:"port,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
}

// V2 is version v2 of the kind Website.
type V2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SpecV2 `json:"spec,omitempty"`
}

// SpecV2 is the spec of V2.
type SpecV2 struct {
	Host     string  `json:"host,omitempty"`
	Ports    []int32 `json:"ports,omitempty"`
	Replicas *int32  `json:"replicas,omitempty"`
}

// Scheme returns a scheme with both versions.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "Website"}, &V1{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: Group, Version: "v2", Kind: "Website"}, &V2{})
	return s
}

// Hub implements conversion.Hub.
func (*V2) Hub() {}

// rest is the annotation of a V1 with what only V2 can express.
const rest = "web.example.org/ports"

// ConvertTo implements conversion.Convertible.
func (w *V1) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*V2)
	if !ok {
		return fmt.Errorf("%T is not the hub", hub)
	}
	to.Spec = SpecV2{Host: w.Spec.Host, Replicas: w.Spec.Replicas}
	if w.Spec.Port != 0 {
		to.Spec.Ports = []int32{w.Spec.Port}
	}
	if text := to.Annotations[rest]; text != "" {
		var more []int32
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return fmt.Errorf("annotation %s: %w", rest, err)
		}
		to.Spec.Ports = append(to.Spec.Ports, more...)
		delete(to.Annotations, rest)
	}
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (w *V1) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*V2)
	if !ok {
		return fmt.Errorf("%T is not the hub", hub)
	}
	w.Spec = SpecV1{Host: from.Spec.Host, Replicas: from.Spec.Replicas}
	if len(from.Spec.Ports) > 0 {
		w.Spec.Port = from.Spec.Ports[0]
	}
	if len(from.Spec.Ports) > 1 {
		text, err := json.Marshal(from.Spec.Ports[1:])
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, rest, string(text))
	}
	return nil
}

// DeepCopyObject implements runtime.Object.
func (w *V1) DeepCopyObject() runtime.Object { return copied(w) }

// DeepCopyObject implements runtime.Object.
func (w *V2) DeepCopyObject() runtime.Object { return copied(w) }

func copied[T any](w *T) *T {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	other := new(T)
	if err := json.Unmarshal(text, other); err != nil {
		panic(err)
	}
	return other
}
