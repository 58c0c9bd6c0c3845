package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/localapi"
)

func ExampleImageName() {
	fmt.Println(api.ImageName("sha256:0123abcd"))
	// Output: sha256-0123abcd
}

// kinds are the objects, and lists of them, that the scheme is made for.
func kinds() (objects []client.Object, lists []client.ObjectList) {
	return []client.Object{
		&api.ImageStream{}, &api.Image{}, &api.ImageStreamImport{}, &api.ProwJob{},
		&api.TestImageStreamTagImport{}, &api.EphemeralCluster{},
	}, []client.ObjectList{
		&api.ImageStreamList{}, &api.ImageList{}, &api.ImageStreamImportList{}, &api.ProwJobList{},
		&api.TestImageStreamTagImportList{}, &api.EphemeralClusterList{},
	}
}

// fill sets every field below v: slices and maps have one element, strings differ.
func fill(v reflect.Value, n *int) {
	switch v.Interface().(type) {
	case metav1.ObjectMeta:
		v.Set(reflect.ValueOf(metav1.ObjectMeta{
			Namespace: "default", Name: "all", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{"a": "b"}, Finalizers: []string{"a/b"},
		}))
		return
	case metav1.ListMeta, metav1.TypeMeta:
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1700000000, 0))))
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"free":{"form":[1,"x"]}}`)}))
		return
	}
	switch *n++; v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(*n))
	default:
		panic("no value for " + v.Type().String())
	}
}

// shared says where a and b have memory in common.
func shared(path string, a, b reflect.Value) (found []string) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || a.Type() == reflect.TypeFor[*time.Location]() {
			return nil
		}
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
		return shared(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			found = append(found, shared(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))...)
		}
	case reflect.Slice:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for i := range a.Len() {
			found = append(found, shared(path+"[]", a.Index(i), b.Index(i))...)
		}
	case reflect.Map:
		if a.Len() > 0 && a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for _, key := range a.MapKeys() {
			found = append(found, shared(path+"{}", a.MapIndex(key), b.MapIndex(key))...)
		}
	}
	return found
}

// Every kind, with every field set: a copy is equal and shares no memory.
func TestCopiesShareNothing(t *testing.T) {
	objects, lists := kinds()
	var all []runtime.Object
	for _, o := range objects {
		all = append(all, o)
	}
	for _, l := range lists {
		all = append(all, l)
	}
	for _, o := range all {
		n := 0
		fill(reflect.ValueOf(o).Elem(), &n)
		c := o.DeepCopyObject()
		if d := cmp.Diff(o, c); d != "" {
			t.Errorf("%T: the copy differs:\n%s", o, d)
		}
		if where := shared("", reflect.ValueOf(o), reflect.ValueOf(c)); len(where) > 0 {
			t.Errorf("%T shares %v with its copy", o, where)
		}
	}
}

// valid puts values that a definition accepts where it accepts few.
func valid(o client.Object) {
	switch o := o.(type) {
	case *api.ImageStream:
		o.Spec.Tags[0].ReferencePolicy.Type = api.LocalReference
	case *api.Image:
		o.Namespace = ""
	case *api.ImageStreamImport:
		o.Spec.Images[0].From.Kind, o.Spec.Images[0].ReferencePolicy.Type = api.DockerImage, api.SourceReference
		o.Spec.Images[0].ImportPolicy.ImportMode = api.PreserveOriginal
	case *api.ProwJob:
		o.Spec.Type, o.Status.State = api.PeriodicJob, api.PendingState
	case *api.TestImageStreamTagImport:
		o.Spec.Name = "stream:tag"
	case *api.EphemeralCluster:
		o.Status.Phase, o.Status.Conditions[0].Status = api.Ready, metav1.ConditionTrue
	}
}

// Every field of every kind passes its definition, in and out again: none is pruned, none is refused.
func TestDefinitionsKeepEveryField(t *testing.T) {
	definitions, err := manifest.ReadFiles([]string{"crds"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, _ := kinds()
	if len(definitions) != len(objects) {
		t.Fatalf("%d definitions for %d kinds", len(definitions), len(objects))
	}
	server := localapi.NewTest(t)
	c, err := client.New(server.RESTConfig(), client.Options{Scheme: api.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		if err := c.Create(t.Context(), d.Unstructured); err != nil {
			t.Fatalf("%s: %v", d.GetName(), err)
		}
	}
	for _, o := range objects {
		n := 0
		fill(reflect.ValueOf(o).Elem(), &n)
		valid(o)
		want := o.DeepCopyObject().(client.Object)
		if err := c.Create(t.Context(), o, client.StrictFields); err != nil {
			t.Errorf("create %T: %v", o, err)
			continue
		}
		if body, _ := json.Marshal(want); reflect.ValueOf(o).Elem().FieldByName("Status").IsValid() &&
			o.GetGeneration() > 0 {
			status := want.DeepCopyObject().(client.Object)
			status.SetResourceVersion(o.GetResourceVersion())
			if err := c.Status().Update(t.Context(), status, client.StrictFields); err != nil {
				t.Errorf("update the status of %T (%s): %v", o, body, err)
			}
		}
		got := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
			t.Fatal(err)
		}
		ignore := cmp.Options{
			cmpopts.IgnoreTypes(metav1.ObjectMeta{}, metav1.TypeMeta{}), cmpopts.EquateEmpty(),
			cmp.Comparer(func(a, b runtime.RawExtension) bool {
				return string(a.Raw) == string(b.Raw)
			}),
		}
		if d := cmp.Diff(want, got, ignore); d != "" {
			t.Errorf("%T came back different:\n%s", o, d)
		}
	}
}
