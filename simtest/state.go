package simtest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
)

// resource is a resource of one API server.
type resource struct {
	schema.GroupResource
	cluster string // "" is the one of Env.Config
}

// id names an object.
type id struct {
	resource        resource
	namespace, name string
}

func (i id) String() string {
	s := i.resource.Resource + " "
	if i.namespace != "" {
		s += i.namespace + "/"
	}
	return s + i.name + in(i.resource.cluster)
}

// in returns what follows the name of what is in a cluster.
func in(cluster string) string {
	if cluster == "" {
		return ""
	}
	return " in " + cluster
}

func compareIDs(a, b id) int {
	return cmp.Or(
		cmp.Compare(a.resource.cluster, b.resource.cluster),
		cmp.Compare(a.resource.Resource, b.resource.Resource), cmp.Compare(a.resource.Group, b.resource.Group),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name),
	)
}

// stored is an object in the API server.
type stored struct {
	object   runtime.Object // read-only
	kind     schema.GroupVersionKind
	revision int64                 // of its last write
	fields   func() map[string]any // of the object as JSON would have it; read-only
}

func newStored(obj runtime.Object, kind schema.GroupVersionKind, revision int64) stored {
	// Every state that has the object is compared, so it is converted once.
	return stored{obj, kind, revision, sync.OnceValue(func() map[string]any { return fields(obj) })}
}

// life is the time from the write that created an object to the one that deleted it.
type life struct{ born, died int64 } // revisions; died is 0 while it lives

// State is what an API server holds. It belongs to one run; one goroutine at a time may use it.
type State struct {
	objects map[id]stored // of all servers
	scheme  *runtime.Scheme
	cluster string

	// Revision is the resource version of the last write.
	Revision int64
}

// In returns what the API server of a cluster of [Scenario.Clusters] holds.
func (s *State) In(cluster string) *State {
	other := *s
	other.cluster = cluster
	return &other
}

func (s *State) apply(c *committed) {
	key := c.id()
	s.Revision = c.Revision
	if c.Object == nil {
		delete(s.objects, key)
		return
	}
	s.objects[key] = newStored(c.Object, c.Kind, c.Revision)
}

// ids returns the names of all objects in order.
func (s *State) ids() []id { return slices.SortedFunc(maps.Keys(s.objects), compareIDs) }

// Get returns a copy of an object of type T, and whether there is one. The namespace of cluster-scoped objects is "".
func Get[T client.Object](s *State, namespace, name string) (T, bool) {
	kind := kindOf[T](s.scheme)
	for i, o := range s.objects {
		if i.resource.cluster == s.cluster && i.namespace == namespace && i.name == name &&
			o.kind.GroupKind() == kind.GroupKind() {
			return as[T](o), true
		}
	}
	var none T
	return none, false
}

// List returns copies of the objects of type T in a namespace, or in all if it is "", sorted by namespace and name.
func List[T client.Object](s *State, namespace string) []T {
	kind := kindOf[T](s.scheme)
	var found []T
	for _, i := range s.ids() {
		if o := s.objects[i]; i.resource.cluster == s.cluster && o.kind.GroupKind() == kind.GroupKind() &&
			(namespace == "" || namespace == i.namespace) {
			found = append(found, as[T](o))
		}
	}
	return found
}

// kindOf returns the kind of a Go type. It panics if the scheme does not know the type.
func kindOf[T client.Object](scheme *runtime.Scheme) schema.GroupVersionKind {
	kinds, _, err := scheme.ObjectKinds(newOf[T]())
	if err != nil {
		panic(fmt.Sprintf("simtest: %v: set Scenario.Scheme", err))
	}
	return kinds[0]
}

func newOf[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// as returns a copy of the object in its Go type.
func as[T client.Object](o stored) T {
	if same, ok := o.object.(T); ok {
		obj := same.DeepCopyObject().(T)
		obj.SetResourceVersion(strconv.FormatInt(o.revision, 10))
		return obj
	}
	obj := newOf[T]()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.fields(), obj); err != nil {
		panic(fmt.Sprintf("simtest: an object of the kind %s is no %T: %v", o.kind.Kind, obj, err))
	}
	obj.SetResourceVersion(strconv.FormatInt(o.revision, 10))
	return obj
}

// fields returns the object as JSON would have it. The result is read-only.
func fields(obj runtime.Object) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(fmt.Sprintf("simtest: %T: %v", obj, err)) // cannot fail: it was encoded before
	}
	return m
}

// uidOf returns the UID of an object, or "" for nil.
func uidOf(obj runtime.Object) string {
	if obj == nil {
		return ""
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return string(m.GetUID())
}
