package patches

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
)

// generically returns the patch between the whole JSON of two objects.
func generically(t *testing.T, from, to any) string {
	t.Helper()
	before, err := Content(from)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Content(to)
	if err != nil {
		t.Fatal(err)
	}
	return encoded(t, Difference(before, after))
}

// encoded returns the JSON of a patch, with sorted names.
func encoded(t *testing.T, patch any) string {
	t.Helper()
	sorted, err := Content(patch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(sorted)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTypedPatches changes objects of every kind in client-go's scheme at random. It compares the patch between their
// Go values with the patch between their JSON.
func TestTypedPatches(t *testing.T) {
	all, typed := 0, 0
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		if _, is := reflect.New(typ).Interface().(informer.Object); !is || kind.Version == runtime.APIVersionInternal {
			continue
		}
		for seed := range uint64(2) {
			random := &filler{rand.New(rand.NewPCG(seed, 1))}
			from := reflect.New(typ)
			random.fill(from.Elem(), 0)
			to := reflect.ValueOf(from.Interface().(runtime.Object).DeepCopyObject())
			for range 3 {
				random.change(to.Elem())
				all++
				patch, ok := typedDifference(from.Interface(), to.Interface())
				if !ok {
					continue
				}
				typed++
				got, want := encoded(t, json.RawMessage(patch)), generically(t, from.Interface(), to.Interface())
				if got != want {
					t.Fatalf("%v, seed %d:\n got %s\nwant %s", kind, seed, got, want)
				}
			}
		}
	}
	if typed != all || all == 0 {
		t.Errorf("%d of %d patches were made of the Go values", typed, all)
	}
}

// deepest is the depth below which pointers, lists and maps stay empty.
const deepest = 9

// filler fills values at random.
type filler struct{ *rand.Rand }

func (r *filler) fill(v reflect.Value, depth int) {
	switch into := v.Addr().Interface().(type) {
	case *metav1.Time:
		into.Time = r.time()
		return
	case *metav1.MicroTime:
		into.Time = r.time()
		return
	case *resource.Quantity:
		*into = *resource.NewMilliQuantity(r.Int64N(3), resource.DecimalSI)
		return
	case *intstr.IntOrString:
		*into = intstr.FromInt32(r.Int32N(3))
		if r.IntN(2) == 0 {
			*into = intstr.FromString("http")
		}
		return
	case *runtime.RawExtension:
		into.Raw = [][]byte{[]byte(`{"a":1}`), []byte(`{"a":2,"b":null}`), []byte(`[1]`), []byte(`null`), nil}[r.IntN(5)]
		return
	case *metav1.FieldsV1:
		into.SetRawString([]string{`{"f:a":{}}`, `{"f:b":{}}`}[r.IntN(2)])
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f, value := range v.Fields() {
			if f.IsExported() {
				r.fill(value, depth+1)
			}
		}
	case reflect.Pointer:
		v.SetZero()
		if depth < deepest && r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.SetZero()
		if n := r.IntN(4) - 1; depth < deepest && n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				r.fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		v.SetZero()
		if n := r.IntN(4) - 1; depth < deepest && n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				r.fill(key, depth+1)
				r.fill(value, depth+1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString([]string{"", "a", "b", "<c>"}[r.IntN(4)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(3))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(3))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(r.IntN(3)) / 2)
	}
}

func (r *filler) time() time.Time {
	if n := r.Int64N(3); n > 0 {
		return time.Unix(n, 0).UTC()
	}
	return time.Time{} // Encodes as null.
}

// change fills a part of a value anew.
func (r *filler) change(v reflect.Value) {
	for {
		switch {
		case v.Kind() == reflect.Struct && v.NumField() > 0 && r.IntN(6) > 0:
			if f := v.Field(r.IntN(v.NumField())); f.CanSet() {
				v = f
				continue
			}
		case v.Kind() == reflect.Pointer && !v.IsNil() && r.IntN(6) > 0:
			v = v.Elem()
			continue
		case v.Kind() == reflect.Slice && v.Len() > 0 && r.IntN(3) > 0:
			v = v.Index(r.IntN(v.Len()))
			continue
		}
		r.fill(v, 6)
		return
	}
}

func TestPatches(t *testing.T) {
	one, two := int32(1), int32(2)
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &one}}
	deployment.Labels = map[string]string{"a": "1", "b": "1"}
	scaled := deployment.DeepCopy()
	scaled.Spec.Replicas = &two
	scaled.Labels = map[string]string{"b": "2", "c": "<1>"}
	limits := &corev1.ResourceQuota{}
	limits.Spec.Hard = corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("5")}
	more := limits.DeepCopy()
	more.Spec.Hard["cpu"] = resource.MustParse("1000m") // The same in other words, and what is cached is not.
	more.Spec.Hard["pods"] = resource.MustParse("6")
	port := &networkingv1.NetworkPolicy{}
	port.Spec.PodSelector.MatchLabels = map[string]string{"app": "web"}
	open := port.DeepCopy()
	open.Spec.PodSelector = metav1.LabelSelector{}
	var nobody *corev1.Pod
	for _, c := range []struct {
		name     string
		from, to informer.Object
		want     string
	}{
		{"nothing", deployment, deployment.DeepCopy(), `{}`},
		{
			"labels and a number", deployment, scaled,
			`{"metadata":{"labels":{"a":null,"b":"2","c":"\u003c1\u003e"}},"spec":{"replicas":2}}`,
		},
		{"quantities", limits, more, `{"spec":{"hard":{"pods":"6"}}}`},
		{"a struct without fields", port, open, `{"spec":{"podSelector":{"matchLabels":null}}}`},
	} {
		patch, ok := typedDifference(c.from, c.to)
		if got := encoded(t, json.RawMessage(patch)); !ok || got != c.want {
			t.Errorf("%s: %s, %t, want %s", c.name, got, ok, c.want)
		}
	}
	patch, err := Between(deployment, deployment.DeepCopy())
	if err != nil || string(patch) != "{}" {
		t.Errorf("nothing has changed: %s, %v", patch, err)
	}
	changes, err := Content(json.RawMessage(patch))
	OnlyAt(deployment, changes)
	if got := encoded(t, changes); err != nil || got != `{"metadata":{}}` {
		t.Errorf("nothing has changed, optimistic: %s, %v", got, err)
	}
	for _, other := range []any{&corev1.Pod{}, nobody, *deployment, map[string]any{}} {
		if _, ok := typedDifference(deployment, other); ok {
			t.Errorf("a patch between a Deployment and a %T was made", other)
		}
	}
}

// TestNulls: a field that is null, as a custom resource may have it, is removed when it is gone, and a patch cannot set
// null.
func TestNulls(t *testing.T) {
	null := map[string]any{"kept": "a", "gone": nil}
	gone := map[string]any{"kept": "a"}
	for _, c := range []struct {
		from, to map[string]any
		want     string
	}{
		{null, gone, `{"gone":null}`},
		{gone, null, `{}`},
		{null, null, `{}`},
		{map[string]any{"gone": 1}, null, `{"gone":null,"kept":"a"}`},
	} {
		if got := encoded(t, Difference(c.from, c.to)); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.from, c.to, got, c.want)
		}
	}
}

// TestPatchAllocatesLittle: what has not changed costs nothing.
func TestPatchAllocatesLittle(t *testing.T) {
	base := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: make([]corev1.Container, 20)}}
	base.Labels = map[string]string{"a": "1", "b": "2"}
	changed := base.DeepCopy()
	changed.Labels["a"] = "2"
	if n := testing.AllocsPerRun(100, func() { _, _ = Between(base, changed) }); n > 12 {
		t.Errorf("%v allocations, want at most 12", n)
	}
}

// spec is embedded below, with a name in JSON.
type spec struct {
	N int `json:"n"`
}

// odd has fields that package json treats specially.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Number            json.Number             `json:"number,omitempty"`
	Times             map[string]metav1.Time  `json:"times,omitempty"`
	When              *metav1.Time            `json:"when,omitempty"`
	Zero              map[string]withZeroTime `json:"zero,omitempty"`
}

type withZeroTime struct {
	At metav1.Time `json:"at,omitzero"`
}

// TestOddTypes makes patches of values whose JSON does not follow from their kind.
func TestOddTypes(t *testing.T) {
	zero, when := metav1.Time{}, metav1.Unix(7, 0)
	states := []*odd{
		{},
		{Number: "4"},
		{Number: "5", When: &zero, Times: map[string]metav1.Time{"a": zero}},
		{When: &when, Times: map[string]metav1.Time{"a": when, "b": zero}, Zero: map[string]withZeroTime{"x": {zero}}},
		{Zero: map[string]withZeroTime{"x": {when}, "y": {zero}}},
	}
	for i, from := range states {
		for j, to := range states {
			patch, ok := typedDifference(from, to)
			if got, want := encoded(t, json.RawMessage(patch)), generically(t, from, to); !ok || got != want {
				t.Errorf("from %d to %d: %s, %t, want %s", i, j, got, ok, want)
			}
		}
	}
	type embeds struct {
		spec `json:"spec"`
	}
	if patch, ok := typedDifference(&embeds{spec{1}}, &embeds{spec{2}}); ok {
		t.Errorf("a struct with an embedded type that is not exported: %v", patch)
	}
}
