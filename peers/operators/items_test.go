package operators

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
	"github.com/flyball-dev/flyball/manager"
)

const itemsFolder = "../../examples/operators/items"

// shop is a namespace with stock in it, and who works there.
type shop struct {
	*testing.T
	client.Client
	namespace string
}

// TestItemsOnTheRealServer runs the controllers of the stock-keeping tool, with the permissions of their manifests,
// through the steps of their tests on localapi.
func TestItemsOnTheRealServer(t *testing.T) {
	c, err := client.New(admin(t), client.Options{Scheme: api.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t, c, "shop"}
	s.prepare()
	stop := s.manage()
	s.threeSteps()
	s.keepsLabels()
	s.moves()
	s.keepsCategoriesInUse()
	s.sharesNoPrefix()
	s.recounts()
	stop()
	s.leavesAloneWhatIsRight()
}

// prepare creates the objects in the manifests, except the Deployment: there is no kubelet.
func (s *shop) prepare() {
	s.Helper()
	objects, err := manifest.ReadFiles([]string{itemsFolder + "/api/crds", itemsFolder + "/deploy"}, nil)
	s.must(err)
	objects = slices.DeleteFunc(objects, func(o manifest.Object) bool { return o.GetKind() == "Deployment" })
	s.must(manifest.Install(s.Context(), s, objects))
	s.must(s.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
}

// manage runs the manager as its service account, with its lease.
func (s *shop) manage() (stop func()) {
	s.Helper()
	elect := manager.LeaderElection{Enabled: true, Namespace: "items", Name: "items-manager"}
	ctx, cancel := context.WithCancel(s.Context())
	mgr, err := stock.NewManager(ctx, as(s.T, "items", "items-manager"),
		stock.Options{Manager: manager.Options{LeaderElection: elect}})
	s.must(err)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	return func() {
		s.Helper()
		s.must(mgr.Ready())
		cancel()
		s.must(<-ended)
	}
}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// eventually asks until there is no error, for half a minute.
func (s *shop) eventually(ask func() error) {
	s.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *shop) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *shop) addCategory(name, prefix string) {
	s.Helper()
	s.must(
		s.Create(s.Context(),
			&api.Category{ObjectMeta: s.meta(name), Spec: api.CategorySpec{Prefix: prefix, Shelf: "A1"}}),
	)
}

func (s *shop) addItem(name, category string) {
	s.Helper()
	s.must(
		s.Create(s.Context(),
			&api.Item{ObjectMeta: s.meta(name), Spec: api.ItemSpec{Category: category, Quantity: 2, UnitPrice: 5}}),
	)
}

// change updates an item.
func (s *shop) change(name string, f func(*api.Item)) {
	s.Helper()
	item := &api.Item{ObjectMeta: s.meta(name)}
	s.must(controllerutil.RetryOnConflict(s.Context(), s, item, func() error { f(item); return nil }))
}

func (s *shop) removeItem(name string) {
	s.Helper()
	s.must(s.Delete(s.Context(), &api.Item{ObjectMeta: s.meta(name)}))
}

// shelved waits until the item is on its shelf, with a label that says so.
func (s *shop) shelved(name, sku string) {
	s.Helper()
	s.eventually(func() error {
		var item api.Item
		var label corev1.ConfigMap
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, &item); err != nil {
			return err
		}
		err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: stock.LabelName(name)}, &label)
		if err != nil || item.Status.Phase != api.Shelved || item.Status.SKU != sku || label.Data["sku"] != sku ||
			label.Labels[stock.ItemLabel] != name {
			return fmt.Errorf("%s: %+v, label %+v, %v: want %s", name, item.Status, label, err, sku)
		}
		return nil
	})
}

// says waits until a condition of an item, or of a category, is true for that reason.
func (s *shop) says(obj client.Object, name, about, reason string) {
	s.Helper()
	s.eventually(func() error {
		err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, obj)
		list := []metav1.Condition{}
		switch o := obj.(type) {
		case *api.Item:
			list = o.Status.Conditions
		case *api.Category:
			list = o.Status.Conditions
		}
		if c := conditions.Get(list, about); err == nil &&
			(c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason) {
			err = fmt.Errorf("%s: %+v, want %s for %s", name, list, about, reason)
		}
		return err
	})
}

func (s *shop) gone(obj client.Object, name string) {
	s.Helper()
	s.eventually(func() error {
		err := s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is still there (%v)", name, err)
	})
}

func (s *shop) threeSteps() {
	s.Helper()
	s.addItem("hammer", "tools")
	s.says(&api.Item{}, "hammer", conditions.Stalled, stock.ReasonNoCategory)
	s.addCategory("tools", "TL")
	s.shelved("hammer", "TL-0001")
	s.says(&api.Category{}, "tools", conditions.Ready, stock.ReasonInOrder)
}

func (s *shop) keepsLabels() {
	s.Helper()
	label := func() *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		s.must(s.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: "hammer-label"}, cm))
		return cm
	}
	edited := label()
	edited.Data["sku"] = "XX"
	s.must(s.Update(s.Context(), edited))
	s.shelved("hammer", "TL-0001")
	unmarked := label()
	unmarked.Labels = nil
	s.must(s.Update(s.Context(), unmarked))
	s.shelved("hammer", "TL-0001")
	s.must(s.Delete(s.Context(), label()))
	s.shelved("hammer", "TL-0001")
	foreign := &corev1.ConfigMap{ObjectMeta: s.meta("saw-label"), Data: map[string]string{"mine": "yes"}}
	s.must(s.Create(s.Context(), foreign))
	s.addItem("saw", "tools")
	s.says(&api.Item{}, "saw", conditions.Reconciling, stock.ReasonNumbered)
	s.must(s.Delete(s.Context(), foreign))
	s.shelved("saw", "TL-0002")
}

func (s *shop) moves() {
	s.Helper()
	s.addCategory("paint", "PT")
	s.change("saw", func(i *api.Item) { i.Spec.Category = "paint" })
	s.shelved("saw", "PT-0001")
	s.removeItem("saw")
	s.gone(&api.Item{}, "saw")
	s.gone(&corev1.ConfigMap{}, "saw-label")
	s.addItem("axe", "tools")
	s.shelved("axe", "TL-0003")
}

func (s *shop) keepsCategoriesInUse() {
	s.Helper()
	s.must(s.Delete(s.Context(), &api.Category{ObjectMeta: s.meta("tools")}))
	s.says(&api.Category{}, "tools", conditions.Reconciling, stock.ReasonInUse)
	s.addItem("late", "tools")
	s.says(&api.Item{}, "late", conditions.Stalled, stock.ReasonCategoryGoing)
	// All at once: the answer to this lists what it deleted, and each of them stays until its label is gone.
	s.must(s.DeleteAllOf(s.Context(), &api.Item{}, client.InNamespace(s.namespace)))
	s.gone(&api.Category{}, "tools")
	s.gone(&corev1.ConfigMap{}, "hammer-label")
}

func (s *shop) sharesNoPrefix() {
	s.Helper()
	time.Sleep(time.Second) // creation times have seconds
	s.addCategory("putty", "PT")
	s.addItem("filler", "putty")
	s.says(&api.Category{}, "putty", conditions.Stalled, stock.ReasonPrefixTaken)
	s.says(&api.Item{}, "filler", conditions.Stalled, stock.ReasonCategoryStalled)
	s.must(s.Delete(s.Context(), &api.Category{ObjectMeta: s.meta("paint")}))
	s.shelved("filler", "PT-0001")
}

func (s *shop) recounts() {
	s.Helper()
	s.change("filler", func(i *api.Item) { i.Spec.RecountEvery = &metav1.Duration{Duration: 2 * time.Second} })
	s.says(&api.Item{}, "filler", api.RecountDue, stock.ReasonOverdue)
	s.eventually(func() error {
		var list corev1.EventList
		if err := s.List(s.Context(), &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		var reasons []string
		for _, e := range list.Items {
			reasons = append(reasons, e.Reason)
		}
		for _, want := range []string{
			stock.ReasonShelved, stock.ReasonNoCategory, stock.ReasonPrefixTaken,
			stock.ReasonOverdue,
		} {
			if !slices.Contains(reasons, want) {
				return fmt.Errorf("events %q, want %s", reasons, want)
			}
		}
		return nil
	})
}

// leavesAloneWhatIsRight: until idle, on a cluster, is what the tool does at home; it looks at everything, and writes
// nothing.
func (s *shop) leavesAloneWhatIsRight() {
	s.Helper()
	versions := func() (all []string) {
		for _, list := range []client.ObjectList{
			&api.ItemList{}, &api.CategoryList{}, &corev1.ConfigMapList{},
			&corev1.EventList{},
		} {
			s.must(s.List(s.Context(), list, client.InNamespace(s.namespace)))
			all = append(all, versionsOf(list)...)
		}
		return all
	}
	before := versions()
	mgr, err := stock.NewManager(s.Context(), as(s.T, "items", "items-manager"), stock.Options{})
	s.must(err)
	summary, err := mgr.RunUntilIdle(s.Context(), manager.IdleOptions{})
	if err != nil || summary.Processed < 2 || summary.Errors != 0 || len(summary.Left) != 0 {
		s.Errorf("%+v, %v", summary, err)
	}
	if after := versions(); !slices.Equal(before, after) {
		s.Errorf("something was written: %q, and now %q", before, after)
	}
}

func versionsOf(list client.ObjectList) (all []string) {
	add := func(o metav1.ObjectMeta) { all = append(all, o.Name+"@"+o.ResourceVersion) }
	switch l := list.(type) {
	case *api.ItemList:
		for _, o := range l.Items {
			add(o.ObjectMeta)
		}
	case *api.CategoryList:
		for _, o := range l.Items {
			add(o.ObjectMeta)
		}
	case *corev1.ConfigMapList:
		for _, o := range l.Items {
			add(o.ObjectMeta)
		}
	case *corev1.EventList:
		for _, o := range l.Items {
			add(o.ObjectMeta)
		}
	}
	slices.Sort(all)
	return all
}
