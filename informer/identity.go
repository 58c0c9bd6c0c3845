package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/wire"
	"github.com/flyball-dev/flyball/informer/objects"
)

// cacheIdentity is what distinguishes caches: two users with equal identities share a cache.
type cacheIdentity struct {
	Kind       schema.GroupVersionKind
	Namespaces string // joined by commas; "" means all
	// The selectors are those of InformerOptions.
	LabelSelector, FieldSelector, ShardSelector string

	form      wire.Form
	transform string
	// standard is RESTOptions.StandardDecoding.
	standard bool
}

// selection returns the options that describe the objects of the cache.
func (id *cacheIdentity) selection() InformerOptions {
	o := InformerOptions{
		Kind:          id.Kind,
		LabelSelector: id.LabelSelector, FieldSelector: id.FieldSelector, ShardSelector: id.ShardSelector,
	}
	if id.Namespaces != "" {
		o.Namespaces = strings.Split(id.Namespaces, ",")
	}
	return o
}

// identify returns the identity of the cache for objects like example, and a function that makes one.
func (f *Factory) identify(example any,
	o InformerOptions,
) (id cacheIdentity, newObject func() objects.Object, err error) {
	id = cacheIdentity{
		Kind: o.Kind, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, ShardSelector: o.ShardSelector,
		transform: o.TransformName, standard: o.StandardDecoding || f.o.StandardDecoding,
	}
	if o.Transform != nil && o.TransformName == "" {
		return id, nil, errors.New("informer with a transform: InformerOptions.TransformName is required")
	}
	if err := o.checkSelectors(); err != nil {
		return id, nil, err
	}
	namespaces := slices.Clone(o.Namespaces)
	if namespaces == nil && !o.ClusterScoped {
		namespaces = slices.Clone(f.o.Namespaces)
	}
	slices.Sort(namespaces)
	id.Namespaces = strings.Join(slices.Compact(namespaces), ",")
	switch example := example.(type) {
	case *unstructured.Unstructured:
		id.form = wire.Unstructured
		newObject = func() objects.Object { return &unstructured.Unstructured{} }
	case *metav1.PartialObjectMetadata:
		id.form = wire.Metadata
		newObject = func() objects.Object { return &metav1.PartialObjectMetadata{} }
	case objects.Object:
		kinds, _, err := f.o.Scheme.ObjectKinds(example)
		if err != nil {
			return id, nil, fmt.Errorf("informer of %T: %w", example, err)
		}
		id.Kind = kinds[0]
		newObject = f.newTyped(id.Kind)
	default: // The interface type itself.
		newObject = f.newTyped(id.Kind)
	}
	if id.Kind.Kind == "" {
		return id, nil, fmt.Errorf("informer of %T: InformerOptions.Kind is required", example)
	}
	if id.form == wire.Typed && !f.o.Scheme.Recognizes(id.Kind) {
		return id, nil, fmt.Errorf("informer of %s: the kind is not registered in the scheme", id.Kind)
	}
	return id, newObject, nil
}

// checkSelectors parses the selectors, because the server would reject a malformed one at every attempt.
func (o InformerOptions) checkSelectors() error {
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return fmt.Errorf("informer: LabelSelector %q: %w", o.LabelSelector, err)
	}
	if _, err := fieldselector.ParseSelector(o.FieldSelector); err != nil {
		return fmt.Errorf("informer: FieldSelector %q: %w", o.FieldSelector, err)
	}
	return nil
}

func (f *Factory) newTyped(kind schema.GroupVersionKind) func() objects.Object {
	return func() objects.Object {
		obj, err := f.o.Scheme.New(kind)
		if err != nil {
			panic(err) // identify has checked that the scheme knows it.
		}
		return obj.(objects.Object)
	}
}

// name returns the resource, followed by what distinguishes the cache from others.
func (f *Factory) name(c *cache, others []*cache) string {
	var special []string
	if slices.ContainsFunc(others, func(o *cache) bool {
		return o.identity.Kind.GroupKind() == c.identity.Kind.GroupKind() &&
			o.identity.Kind.Version != c.identity.Kind.Version
	}) {
		special = append(special, c.identity.Kind.Version)
	}
	switch c.identity.form {
	case wire.Unstructured:
		special = append(special, "unstructured")
	case wire.Metadata:
		special = append(special, "metadata")
	}
	id := c.identity
	if id.standard && !f.o.StandardDecoding {
		special = append(special, "standard decoding")
	}
	for _, s := range []struct{ kind, value string }{
		{"", id.Namespaces},
		{"", id.LabelSelector},
		{"fields ", id.FieldSelector},
		{"shard ", id.ShardSelector},
		{"transform ", id.transform},
	} {
		if s.value != "" {
			special = append(special, s.kind+s.value)
		}
	}
	if special == nil {
		return c.Resource()
	}
	return c.Resource() + " (" + strings.Join(special, ", ") + ")"
}
