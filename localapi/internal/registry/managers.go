package registry

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
)

// Managers keeps metadata.managedFields: who set which field by which kind of write.
//
// The merging is apimachinery's and structured-merge-diff's; this type gives them the types' schemas, built on first use.
type Managers struct {
	// BuiltIn returns the converter of the built-in types. It is slow the first time.
	BuiltIn func() managedfields.TypeConverter

	mu  sync.Mutex
	all map[managerKey]*managedfields.FieldManager
}

type managerKey struct {
	kind        schema.GroupVersionKind
	subresource string
}

// Update returns obj with the managed fields that follow from manager replacing old by it. Should they not be computable,
// then obj keeps old's.
func (s *Managers) Update(r *Resource, subresource string, old, obj runtime.Object, manager string) (runtime.Object, error) {
	fields, err := s.of(r, subresource)
	if err != nil {
		return nil, err
	}
	return fields.UpdateNoErrors(old, obj, manager), nil
}

// Application is what a server-side apply sends.
type Application struct {
	Configuration *unstructured.Unstructured
	Manager       string
	Force         bool // take fields from other managers
}

// Apply merges an applied configuration into old. Errors: Conflict, naming the fields and their managers.
func (s *Managers) Apply(r *Resource, subresource string, old runtime.Object, a Application) (runtime.Object, error) {
	fields, err := s.of(r, subresource)
	if err != nil {
		return nil, err
	}
	return fields.Apply(old, a.Configuration, a.Manager, a.Force)
}

func (s *Managers) of(r *Resource, subresource string) (*managedfields.FieldManager, error) {
	d := r.Definition
	key := managerKey{d.GroupVersionKind(), subresource}
	types := s.BuiltIn
	if d.Types != nil {
		types = d.Types
	}
	converter := types() // not under the lock: it may take its time, and is cached by its owner
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.all[key]; m != nil {
		return m, nil
	}
	build := managedfields.NewDefaultFieldManager
	if codec.IsUnstructured(d.New()) {
		build = managedfields.NewDefaultCRDFieldManager
	}
	v := version{r}
	m, err := build(converter, v, v, v, d.GroupVersionKind(), d.GroupVersion, subresource, resetFields(r, subresource))
	if err != nil {
		return nil, fmt.Errorf("field manager of %s: %w", d.Kind, err)
	}
	if s.all == nil {
		s.all = map[managerKey]*managedfields.FieldManager{}
	}
	s.all[key] = m
	return m, nil
}

// resetFields are the fields that a write through an endpoint can neither set nor own.
func resetFields(r *Resource, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	if !r.Definition.HasStatus {
		return nil
	}
	reset := fieldpath.NewSet()
	switch subresource {
	case "":
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case "status":
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(r.Definition.GroupVersion.String()): fieldpath.NewExcludeSetFilter(reset),
	}
}

// version is the one version of a resource's type, as the field manager wants to see it: there is nothing to convert but
// unstructured content into the Go type.
type version struct{ r *Resource }

func (v version) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	d := v.r.Definition
	if _, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{d.GroupVersionKind()}); !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("localapi", reflect.TypeOf(in).Elem(), target)
	}
	u, ok := in.(*unstructured.Unstructured)
	if !ok || codec.IsUnstructured(d.New()) {
		return in, nil
	}
	obj := v.r.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(d.GroupVersionKind())
	return obj, nil
}

func (version) Convert(in, out, _ any) error {
	return fmt.Errorf("no conversion from %T to %T", in, out)
}

func (version) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (v version) Default(obj runtime.Object) {
	if v.r.Definition.Default != nil {
		v.r.Definition.Default(obj)
	}
}

func (v version) New(schema.GroupVersionKind) (runtime.Object, error) { return v.r.New(), nil }
