package manifest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
)

// shops are in an order in which the server would refuse them.
const shops = `
apiVersion: examples.flyball.dev/v1
kind: Shop
metadata: {name: corner, namespace: shops}
spec: {owner: ada}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.examples.flyball.dev}
spec:
  group: examples.flyball.dev
  scope: Namespaced
  names: {plural: shops, singular: shop, kind: Shop, listKind: ShopList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {owner: {type: string}}}}}}
  - name: v1alpha1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shops}
`

func read(t *testing.T, text string) []manifest.Object {
	t.Helper()
	all, err := manifest.Read("shops.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inCluster runs test in a bubble, with an API server.
func inCluster(t *testing.T, test func(t *testing.T, c client.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{NoKubernetesService: true})
		c, err := client.New(server.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
	})
}

// TestInstall: objects are created when their definitions are served. A second call writes nothing, even if the objects
// were changed meanwhile.
func TestInstall(t *testing.T) {
	inCluster(t, func(t *testing.T, c client.Client) {
		all := read(t, shops)
		if err := manifest.Install(t.Context(), c, all); err != nil {
			t.Fatal(err)
		}
		corner := &unstructured.Unstructured{}
		corner.SetGroupVersionKind(schema.GroupVersionKind{Group: "examples.flyball.dev", Version: "v1", Kind: "Shop"})
		get := func() string {
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shops", Name: "corner"}, corner); err != nil {
				t.Fatal(err)
			}
			owner, _, _ := unstructured.NestedString(corner.Object, "spec", "owner")
			return owner
		}
		if owner := get(); owner != "ada" {
			t.Errorf("it is %s's", owner)
		}
		corner.Object["spec"] = map[string]any{"owner": "bob"}
		if err := errors.Join(c.Update(t.Context(), corner), manifest.Install(t.Context(), c, all)); err != nil {
			t.Fatal(err)
		}
		if owner := get(); owner != "bob" {
			t.Errorf("it is %s's again", owner)
		}
		if all[0].GetUID() != "" {
			t.Error("what was read was changed")
		}
	})
}

// TestInstallRefused: the error names a definition that is never served because its names are taken, and an unknown
// field.
func TestInstallRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c client.Client) {
		if err := manifest.Install(t.Context(), c, read(t, shops)); err != nil {
			t.Fatal(err)
		}
		again := strings.NewReplacer("shops.examples", "bazaars.examples", "plural: shops, singular: shop",
			"plural: bazaars, singular: shop").Replace(shops)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := manifest.Install(ctx, c, read(t, again))
		if !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(),
				"shops.yaml, document 2: wait for bazaars.examples.flyball.dev to be served") ||
			!strings.Contains(err.Error(), "NamesAccepted=False") {
			t.Error(err)
		}
		wrong := strings.ReplaceAll(shops, "name: corner, namespace: shops}\nspec",
			"name: other, namespace: shops}\nspecs")
		if err := manifest.Install(t.Context(), c, read(t, wrong)); err == nil ||
			!strings.Contains(err.Error(), "shops.yaml, document 1: create Shop other: ") {
			t.Error(err)
		}
	})
}

// TestOrder: otherwise the order stays.
func TestOrder(t *testing.T) {
	first, rest := manifest.Order(
		read(t, shops+
			"---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: "+
			"{name: more}}\n"),
	)
	want := "shops.yaml, document 3: v1 Namespace /shops\nshops.yaml, document 5: v1 Namespace /more\n" +
		"shops.yaml, document 2: apiextensions.k8s.io/v1 CustomResourceDefinition /shops.examples.flyball.dev"
	if got := told(first); got != want {
		t.Errorf("first\n%s", got)
	}
	if got := told(
		rest,
	); got != "shops.yaml, document 1: examples.flyball.dev/v1 Shop shops/corner\nshops.yaml, document 4: v1 Pod /a" {
		t.Errorf("then\n%s", got)
	}
}
