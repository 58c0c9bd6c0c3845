package client_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
)

func TestMisuse(t *testing.T) {
	ctx := context.Background()
	c, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		none   client.Client
		typed  *client.Cluster
		nobody *corev1.ConfigMap
		key    = client.ObjectKey{Namespace: "default", Name: "a"}
		owner  = configMap("owner")
		going  = configMap("going")
		noop   = func() error { return nil }
		clean  = func(context.Context) error { return nil }
		sub    = c.Status()
	)
	owner.UID = "1"
	now := metav1.Now()
	going.DeletionTimestamp, going.Finalizers = &now, []string{"f"}
	with := func(o client.Options) func() error {
		return func() error { _, err := client.New(&rest.Config{Host: "http://127.0.0.1:1"}, o); return err }
	}
	const noObject = "the object is nil: pass a pointer to one"
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("New", func() error { _, err := client.New(nil, client.Options{}); return err },
			"new client: the config is nil: GetConfig"),
		misusetest.Of("New with a cache of nil", with(client.Options{Caches: []client.CacheOf{{}}}), "Caches[0]: "+
			noObject),
		misusetest.Of("New with two caches of a kind", with(client.Options{Caches: []client.CacheOf{
			{Object: &corev1.ConfigMap{}}, {Object: &corev1.ConfigMap{}},
		}}), "Caches[1]: /v1, Kind=ConfigMap is listed twice"),
		misusetest.Of("New with nil uncached", with(client.Options{Uncached: []client.Object{nobody}}),
			"uncached kinds: "+noObject),
		misusetest.Of("Through", func() error { _, err := c.Through(nil); return err }, "the config is nil"),
		misusetest.Of("Get", func() error { return c.Get(ctx, key, nil) }, noObject),
		misusetest.Of("Get typed nil", func() error { return c.Get(ctx, key, nobody) }, noObject),
		misusetest.Of("Get without a name",
			func() error { return c.Get(ctx, client.ObjectKeyFromObject(nobody), &corev1.ConfigMap{}) },
			"the key has no name"),
		misusetest.Of("List", func() error { return c.List(ctx, nil) }, noObject),
		misusetest.Of("Create", func() error { return c.Create(ctx, nil) }, noObject),
		misusetest.Of("Update", func() error { return c.Update(ctx, nobody) }, noObject),
		misusetest.Of("Update without a name", func() error { return c.Update(ctx, &corev1.ConfigMap{}, nil) },
			"the object has no name"),
		misusetest.Of("Delete", func() error { return c.Delete(ctx, nobody) }, noObject),
		misusetest.Of("DeleteAllOf", func() error { return c.DeleteAllOf(ctx, nil) }, noObject),
		misusetest.Of("Patch", func() error { return c.Patch(ctx, owner, nil) },
			"the patch is nil: client.MergeFrom returns one"),
		misusetest.Of("Apply", func() error { return c.Apply(ctx, nil) }, "the apply configuration is nil"),
		misusetest.Of("Apply nothing",
			func() error { return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(nil)) },
			"the apply configuration is nil"),
		misusetest.Of("MergeFrom", func() error { _, err := client.MergeFrom(nobody).Data(owner); return err },
			"give MergeFrom a copy of the object"),
		misusetest.Of("MergeFromWithOptions without a version", func() error {
			_, err := client.MergeFromWithOptions(owner, client.MergeFromWithOptimisticLock{}).Data(owner)
			return err
		}, "the base of the patch has no resource version"),
		misusetest.Of("SubResource",
			misusetest.Constructs(func() client.SubResourceClient { return c.SubResource("") }),
			`give one like "status"`),
		misusetest.Of("Status().Update", func() error { return sub.Update(ctx, nobody) }, noObject),
		misusetest.Of("Status().Patch", func() error { return sub.Patch(ctx, owner, nil) }, "the patch is nil"),
		misusetest.Of("Status().Create", func() error { return sub.Create(ctx, owner, nobody) }, noObject),
		misusetest.Of("Status().Create of nil", func() error { return sub.Create(ctx, nobody, owner) }, noObject),
		misusetest.Of("IndexField", func() error { return c.IndexField(ctx, owner, "f", nil) },
			"an index function"),
		misusetest.Of("IndexField of nil",
			func() error { return c.IndexField(ctx, nil, "f", func(client.Object) []string { return nil }) }, noObject),
		misusetest.Of("Cache", func() error { return c.Cache(ctx, nil) }, noObject),
		misusetest.Of("CreateOrUpdate",
			func() error { _, err := controllerutil.CreateOrUpdate(ctx, none, owner, noop); return err },
			"the client is nil"),
		misusetest.Of("CreateOrPatch",
			func() error { _, err := controllerutil.CreateOrPatch(ctx, c, nobody, noop); return err }, noObject),
		misusetest.Of("RetryOnConflict",
			func() error { return controllerutil.RetryOnConflict(ctx, typed, owner, noop) },
			"the client is nil"),
		misusetest.Of("Finalize",
			func() error { _, err := controllerutil.Finalize(ctx, c, nobody, "f", clean); return err },
			noObject),
		misusetest.Of("Finalize without a name",
			func() error { _, err := controllerutil.Finalize(ctx, c, owner, "", clean); return err },
			"give the finalizer a name"),
		misusetest.Of("Finalize without cleanup",
			func() error { _, err := controllerutil.Finalize(ctx, c, going, "f", nil); return err },
			"the cleanup function is nil"),
		misusetest.Of("NewPatchHelper",
			func() error { _, err := controllerutil.NewPatchHelper(nil, owner); return err },
			"the client is nil"),
		misusetest.Of("NewPatchHelper of nil",
			func() error { _, err := controllerutil.NewPatchHelper(c, nobody); return err },
			noObject),
		misusetest.Of("SetControllerReference",
			func() error { return controllerutil.SetControllerReference(nil, owner, c.Scheme()) }, noObject),
		misusetest.Of("SetControllerReference of nil",
			func() error { return controllerutil.SetControllerReference(owner, nobody, c.Scheme()) },
			"the owned object is nil"),
		misusetest.Of("SetControllerReference without a scheme",
			func() error { return controllerutil.SetControllerReference(owner, configMap("a"), nil) },
			"the scheme, which tells the kind of *v1.ConfigMap, is nil"),
		misusetest.Of("SetOwnerReference without a scheme",
			func() error { return controllerutil.SetOwnerReference(owner, configMap("a"), nil) }, "the scheme"),
		misusetest.Of("TrackInformer", misusetest.Constructs(func() any {
			client.TrackInformer[*corev1.Pod](c, schema.GroupResource{}, nil)
			return nil
		}), "the client or the informer is nil"),
		misusetest.Of("ObserveWrites", func() error { _, err := client.ObserveWrites(nil); return err },
			"the config is nil"),
	})
}

// A nil function changes nothing: the object stays, or is created as given.
//
// Source: controller-runtime v0.25.2 pkg/controller/controllerutil, CreateOrUpdate.
func TestCreateOrUpdateWithoutAChange(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		for _, want := range []controllerutil.OperationResult{
			controllerutil.OperationResultCreated, controllerutil.OperationResultNone,
		} {
			if got, err := controllerutil.CreateOrUpdate(w.ctx, w, configMap("a"), nil); got != want || err != nil {
				t.Errorf("%s, %v, want %s", got, err, want)
			}
		}
	})
}
