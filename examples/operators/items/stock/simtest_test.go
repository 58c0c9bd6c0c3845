package stock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// Items are numbered, labelled, changed, moved and deleted, labels are tampered with, and a category hands its prefix
// on to another one.
func TestSimulatedLife(t *testing.T) {
	definitions, err := api.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	s := simtest.Scenario{
		Scheme: api.NewScheme(),
		Build: func(e *simtest.Env) (simtest.Program, error) {
			return stock.NewManager(context.Background(), e.Config(), stock.Options{})
		},
		Others: []func(*simtest.Env) (simtest.Program, error){simulated.GarbageCollector(corev1.Resource("configmaps"),
			api.GroupVersion.WithResource("items").GroupResource(),
			api.GroupVersion.WithResource("categories").GroupResource(),
		)},
		Roles:  simulated.Roles(t, "../deploy/role.yaml"),
		Budget: 2 * time.Second,
		Script: keepStock,
		Always: map[string]func(s *simtest.State) error{"no two items have the same number": numbersDiffer},
	}
	for _, d := range definitions {
		s.Objects = append(s.Objects, runtime.Object(d.Unstructured))
	}
	simtest.Check(t, s)
}

func simulatedItem(name, category string) *api.Item {
	return &api.Item{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.ItemSpec{Category: category, Quantity: 1, UnitPrice: 10},
	}
}

func simulatedCategory(name, prefix string) *api.Category {
	return &api.Category{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.CategorySpec{Prefix: prefix, Shelf: "A1", Limit: 3},
	}
}

func keepStock(u *simtest.User) {
	hammer, saw := simulatedItem("hammer", "tools"), simulatedItem("saw", "tools")
	saw.Spec.RecountEvery = &metav1.Duration{Duration: time.Minute}
	tools, more := simulatedCategory("tools", "TL"), simulatedCategory("more-tools", "TL")
	label := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: stock.LabelName("hammer")}}
	u.Create(hammer)
	u.Create(tools)
	u.Settle()
	u.Create(saw)
	u.Create(more)
	u.Settle()
	simtest.Update(u, tools, func(c *api.Category) { c.Spec.Shelf = "B2" })
	simtest.Update(u, hammer, func(i *api.Item) { i.Spec.Quantity = 5 })
	simtest.Update(u, label, func(m *corev1.ConfigMap) { m.Data["text"] = "for sale" })
	u.Settle()
	u.Delete(label)
	u.Delete(saw)
	u.Settle()
	u.Create(saw)
	u.Delete(tools)
	u.Settle()
	simtest.Update(u, hammer, func(i *api.Item) { i.Spec.Category = "more-tools" })
	u.Delete(saw)
	u.Settle()
}

// numbersDiffer: no two items have the same SKU.
func numbersDiffer(s *simtest.State) error {
	owners := map[string]string{}
	for _, i := range simtest.List[*api.Item](s, "") {
		if other, taken := owners[i.Status.SKU]; taken && i.Status.SKU != "" {
			return fmt.Errorf("%s has the SKU %s of %s", i.Name, i.Status.SKU, other)
		}
		owners[i.Status.SKU] = i.Name
	}
	return nil
}
