package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/localapi"
)

func meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "default", Name: "all", Labels: map[string]string{"a": "b"},
		Finalizers: []string{"a/b"},
	}
}

func conditions() []metav1.Condition {
	return []metav1.Condition{{
		Type: "Ready", Status: "True", Reason: "Because", Message: "m", ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0)),
	}}
}

// fullItem and fullCategory have every field set; TestFullIsFull sees to it.
func fullItem() *api.Item {
	counted := metav1.NewTime(time.Unix(1700000000, 0))
	return &api.Item{
		ObjectMeta: meta(),
		Spec: api.ItemSpec{
			Category: "c", Quantity: 1, UnitPrice: 2,
			RecountEvery: &metav1.Duration{Duration: 36 * time.Hour},
		},
		Status: api.ItemStatus{
			Phase: api.Shelved, SKU: "A-1", Shelf: "s", Value: 3, LastCounted: &counted, ObservedGeneration: 4,
			Conditions: conditions(),
		},
	}
}

func fullCategory() *api.Category {
	return &api.Category{
		ObjectMeta: meta(),
		Spec:       api.CategorySpec{Prefix: "AB", Shelf: "s", Limit: 1},
		Status: api.CategoryStatus{
			Issued: 1, Numbers: map[string]int64{"a": 2}, Items: 3, Quantity: 4, Value: 5, ObservedGeneration: 6,
			Conditions: conditions(),
		},
	}
}

// TestFullIsFull: no field that is left out when empty is left out.
func TestFullIsFull(t *testing.T) {
	for _, c := range []struct {
		part any
		want int
	}{{fullItem().Spec, 4}, {fullItem().Status, 7}, {fullCategory().Spec, 3}, {fullCategory().Status, 7}} {
		text, err := json.Marshal(c.part)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil || len(fields) != c.want {
			t.Errorf("%T has %d fields in %s, want %d (%v)", c.part, len(fields), text, c.want, err)
		}
	}
}

// TestCopiesShareNothing: what is done to a copy is not seen in what it was made of.
func TestCopiesShareNothing(t *testing.T) {
	item := fullItem()
	list := (&api.ItemList{Items: []api.Item{*item}}).DeepCopyObject().(*api.ItemList)
	for _, c := range []*api.Item{item.DeepCopy(), &list.Items[0]} {
		if diff := cmp.Diff(item, c); diff != "" {
			t.Errorf("the copy differs:\n%s", diff)
		}
		c.Labels["a"], c.Spec.RecountEvery.Duration, c.Status.Conditions[0].Message = "x", 0, "x"
		c.Status.LastCounted.Time = time.Time{}
	}
	if diff := cmp.Diff(fullItem(), item); diff != "" {
		t.Errorf("the item was changed through a copy:\n%s", diff)
	}
	category := fullCategory()
	categories := (&api.CategoryList{Items: []api.Category{*category}}).DeepCopyObject().(*api.CategoryList)
	for _, c := range []*api.Category{category.DeepCopyObject().(*api.Category), &categories.Items[0]} {
		c.Labels["a"], c.Status.Numbers["a"], c.Status.Conditions[0].Message = "x", 9, "x"
	}
	if diff := cmp.Diff(fullCategory(), category); diff != "" {
		t.Errorf("the category was changed through a copy:\n%s", diff)
	}
}

// TestDefinitionsKeepEveryField: the API server prunes what a definition does not know.
func TestDefinitionsKeepEveryField(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{NoKubernetesService: true})
	c, err := client.New(server.RESTConfig(), client.Options{Scheme: api.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := api.CRDs()
	if err != nil || len(definitions) != 2 {
		t.Fatalf("%d definitions, %v", len(definitions), err)
	}
	if err := manifest.Install(t.Context(), c, definitions); err != nil {
		t.Fatal(err)
	}
	for _, want := range []client.Object{fullItem(), fullCategory()} {
		made, status := want.DeepCopyObject().(client.Object), want.DeepCopyObject().(client.Object)
		if err := c.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		status.SetResourceVersion(made.GetResourceVersion())
		if err := c.Status().Update(t.Context(), status); err != nil {
			t.Fatal(err)
		}
		ignore := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation",
			"CreationTimestamp", "ManagedFields")
		if diff := cmp.Diff(want, status, ignore, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
			t.Errorf("%T (-sent +kept):\n%s", want, diff)
		}
	}
}
