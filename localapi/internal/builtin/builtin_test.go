package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// TestDefinitionsAreWhole checks what every definition must have, so that a type added to All cannot miss it.
func TestDefinitionsAreWhole(t *testing.T) {
	resources := map[string]bool{}
	for _, d := range All() {
		t.Run(d.Plural, func(t *testing.T) {
			gvr := d.GroupVersionResource().String()
			if resources[gvr] {
				t.Errorf("%s is defined twice", gvr)
			}
			resources[gvr] = true
			if d.Singular != strings.ToLower(d.Kind) {
				t.Errorf("Singular = %q for kind %s", d.Singular, d.Kind)
			}
			checkType(t, d)
			checkTable(t, d)
			checkEmptyObject(t, d)
			for name, sub := range d.Subresources {
				readOnly := slices.Equal(sub.Verbs, []string{"get"})
				if sub.New == nil || sub.Kind.Empty() || len(sub.Verbs) == 0 || !readOnly && sub.Merge == nil &&
					sub.Delete == nil && sub.Connect == nil {
					t.Errorf("subresource %s is not whole: %+v", name, sub)
				}
			}
		})
	}
}

// checkType checks that New and NewList make the types that client-go's scheme knows by the definition's name.
func checkType(t *testing.T, d *resource.Definition) {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(d.New())
	if err != nil || kinds[0] != d.GroupVersionKind() {
		t.Errorf("New makes %v (%v), want %v", kinds, err, d.GroupVersionKind())
	}
	if d.Creates == "" { // objects of the others are never stored, so there is no type for a list of them
		list, _, err := scheme.Scheme.ObjectKinds(d.NewList())
		if err != nil || list[0] != d.GroupVersion.WithKind(d.Kind+"List") {
			t.Errorf("NewList makes %v (%v)", list, err)
		}
	}
	if d.HasStatus != (d.PrepareStatusUpdate != nil) {
		t.Error("a type has a status exactly if it has PrepareStatusUpdate")
	}
}

// checkTable checks that a row fills its columns, and that each cell has its column's type.
func checkTable(t *testing.T, d *resource.Definition) {
	t.Helper()
	if d.Row == nil {
		return // name and creation time
	}
	row := d.Row(d.New(), time.Unix(0, 0))
	if len(row) != len(d.Columns) {
		t.Fatalf("%d cells for %d columns", len(row), len(d.Columns))
	}
	for i, c := range d.Columns {
		if c.Type == "integer" {
			if _, ok := row[i].(int64); !ok {
				t.Errorf("column %q is an integer, its cell a %T", c.Name, row[i])
			}
		}
		// which the real server looks for in the wrong place
		if c.Name == "" || c.Description == "" && c.Name != "Handler" {
			t.Errorf("column %d has no name or description: %+v", i, c)
		}
	}
}

// checkEmptyObject runs the empty object through the rules: nothing may panic, and defaulting twice is defaulting once.
func checkEmptyObject(t *testing.T, d *resource.Definition) {
	t.Helper()
	obj := d.New()
	if d.Default != nil {
		d.Default(obj)
		once := obj.DeepCopyObject()
		d.Default(obj)
		if diff := cmp.Diff(once, obj); diff != "" {
			t.Errorf("Default is not idempotent (-once +twice):\n%s", diff)
		}
	}
	if d.PrepareCreate != nil {
		d.PrepareCreate(context.Background(), obj)
	}
	if d.Validate != nil {
		d.Validate(obj)
	}
	if d.Fields != nil {
		d.Fields(obj)
	}
	old := obj.DeepCopyObject()
	if d.PrepareUpdate != nil {
		d.PrepareUpdate(context.Background(), obj, old)
	}
	if d.ValidateUpdate != nil {
		if errs := d.ValidateUpdate(obj, old); len(errs) > 0 {
			t.Errorf("an update that changes nothing is refused: %v", errs)
		}
	}
	if d.PrepareStatusUpdate != nil {
		d.PrepareStatusUpdate(context.Background(), obj, old)
	}
	accessor, _ := meta.Accessor(obj)
	was, _ := meta.Accessor(old)
	if accessor.GetGeneration() != was.GetGeneration() {
		t.Errorf("an update that changes nothing bumps the generation to %d", accessor.GetGeneration())
	}
	if d.Grace != nil {
		d.Grace(obj, &metav1.DeleteOptions{})
	}
}

func ExampleAll() {
	for _, d := range All() {
		if d.GroupVersion.Group == "apps" {
			fmt.Println(d.GroupResource(), d.ShortNames)
		}
	}
	// Output:
	// controllerrevisions.apps []
	// daemonsets.apps [ds]
	// deployments.apps [deploy]
	// replicasets.apps [rs]
	// statefulsets.apps [sts]
}
