package registry

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/builtin"
)

// TestUncheckedObjectsHaveTheSameManagers fills objects of every built-in type by chance, and compares who owns their
// fields after a create and an update with what comes out when every object is checked against its schema.
func TestUncheckedObjectsHaveTheSameManagers(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(clientscheme.Scheme)
	for _, d := range builtin.All() {
		if d.Review != nil {
			continue
		}
		t.Run(d.Kind, func(t *testing.T) {
			r := NewResource(&Env{}, d)
			trusting := &Managers{BuiltIn: converter}
			strict := checkedManagers(t, r, converter)
			for seed := range uint64(4) {
				f := filler{rand.New(rand.NewPCG(seed, 1))}
				first, second := f.object(r), f.object(r)
				if got, want := owners(t, trusting, r, first, second),
					owners(t, strict, r, first, second); !cmp.Equal(got, want) {
					t.Errorf("seed %d: managed fields (-checked +unchecked):\n%s", seed, cmp.Diff(want, got))
				}
			}
		})
	}
}

// checkedManagers are managers that check every object of r.
func checkedManagers(t *testing.T, r *Resource, converter managedfields.TypeConverter) *Managers {
	t.Helper()
	w := r.Written("")
	m, err := w.fieldManager(converter, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Managers{
		BuiltIn: converter,
		all:     map[managerKey]*managedfields.FieldManager{{w.Kind, "", w.definition}: m},
	}
}

// owners is the managed fields of an object that one manager creates and another updates, and that has not changed
// since.
func owners(t *testing.T, s *Managers, r *Resource, first, second runtime.Object) []metav1.ManagedFieldsEntry {
	t.Helper()
	created, err := s.Update(t.Context(), r.Written(""), r.New(), first.DeepCopyObject(), "one")
	if err != nil {
		t.Fatal(err)
	}
	updated, err := s.Update(t.Context(), r.Written(""), created, second.DeepCopyObject(), "two")
	if err != nil {
		t.Fatal(err)
	}
	m, err := meta.Accessor(updated)
	if err != nil {
		t.Fatal(err)
	}
	entries := m.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	return entries
}

// filler fills values by chance.
type filler struct{ *rand.Rand }

func (f filler) object(r *Resource) runtime.Object {
	obj := r.New()
	f.fill(reflect.ValueOf(obj).Elem(), 0)
	obj.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err) // a programmer's error
	}
	m.SetManagedFields(nil)
	return obj
}

// deepest is how far below the object the filler goes.
const deepest = 9

func (f filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.Unix(f.Int64N(1<<31), 0)
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.UnixMicro(f.Int64N(1 << 40)))
		return
	case *apiresource.Quantity:
		*p = *apiresource.NewQuantity(f.Int64N(1000), apiresource.DecimalSI)
		return
	case *intstr.IntOrString:
		*p = intstr.FromInt32(f.Int32N(4))
		return
	case *runtime.RawExtension:
		p.Raw = []byte(`{"a":1}`)
		return
	case *metav1.FieldsV1:
		return
	}
	if depth > 0 && f.IntN(4) == 0 {
		return // not set
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if depth < deepest {
			f.fillReference(v, depth)
		}
	case reflect.String:
		v.SetString([]string{"a", "b", "c", "TCP"}[f.IntN(4)]) // often the same, so that lists have duplicates
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.Int64N(4))
	}
}

func (f filler) fillReference(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(3), 3))
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(3) {
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fill(item, depth+1)
			v.SetMapIndex(key, item)
		}
	}
}
