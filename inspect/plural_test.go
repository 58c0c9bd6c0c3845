package inspect_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// shelves is a definition whose resource is not the plural that an informer guesses.
func shelves() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shelves.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "Shelf", ListKind: "ShelfList", Plural: "shelves", Singular: "shelf",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

func newShelf() *unstructured.Unstructured {
	shelf := &unstructured.Unstructured{}
	shelf.SetAPIVersion("example.com/v1")
	shelf.SetKind("Shelf")
	return shelf
}

// TestIrregularPlural: an object is found by the name of its resource, also if its caches had guessed another one, and
// its writes are among its other steps.
func TestIrregularPlural(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		shelf.SetNamespace("default")
		shelf.SetName("a")
		i := inspect.New(inspect.Options{})
		mgr, err := manager.New(localapi.NewTest(t, shelves(), shelf).RESTConfig(), manager.Options{Inspect: i})
		if err != nil {
			t.Fatal(err)
		}
		c := mgr.GetClient()
		if err := builder.ControllerManagedBy(mgr).For(newShelf()).Complete(reconcile.Func[reconcile.Request](
			func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				shelf := newShelf()
				if err := c.Get(ctx, req.NamespacedName, shelf); err != nil || shelf.GetLabels()["full"] == "yes" {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				shelf.SetLabels(map[string]string{"full": "yes"})
				return reconcile.Result{}, c.Update(ctx, shelf)
			})); err != nil {
			t.Fatal(err)
		}
		run(t, mgr)
		time.Sleep(time.Minute)
		for _, name := range []string{"shelf", "shelves", "shelves.example.com"} {
			got := serve(i.Handler(mgr), "GET", "/inspect/api/object?namespace=default&name=a&resource="+name)
			if body := got.Body.String(); got.Code != 200 || !strings.Contains(body, "controller shelf reconciled") {
				t.Errorf("%s: %d %s", name, got.Code, body)
			}
		}
		recorded := mgr.Informers().Caches()[0].Resource()
		steps := i.Timeline(inspect.Ref{Resource: recorded, Namespace: "default", Name: "a"}).Steps
		if !slices.ContainsFunc(steps, func(e inspect.Entry) bool { return e.Stage == "event" && e.From != 0 }) {
			t.Errorf("no event refers to the write in %v", steps)
		}
	})
}
