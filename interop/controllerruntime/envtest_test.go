package controllerruntime_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/localapi/envtest"
)

// TestEnvtest does what an operator's suite does, with only envtest's import changed: it runs a manager over a socket,
// a controller of a custom resource that owns a ConfigMap, and a client beside it that creates, reads and deletes the
// resource.
func TestEnvtest(t *testing.T) {
	for name, newManager := range managerMakers {
		t.Run(name, func(t *testing.T) {
			environment := &envtest.Environment{
				CRDDirectoryPaths:     []string{"../../localapi/envtest/testdata/crds"},
				ErrorIfCRDPathMissing: true,
			}
			config, err := environment.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := environment.Stop(); err != nil {
					t.Error(err)
				}
			})
			m, err := newManager(config,
				manager.Options{Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}})
			if err != nil {
				t.Fatal(err)
			}
			gone := make(chan struct{})
			r := &backupReconciler{client: m.GetClient(), gone: gone}
			err = ctrl.NewControllerManagedBy(m).For(newBackup()).Owns(&corev1.ConfigMap{}).
				WithOptions(controller.Options{SkipNameValidation: new(true)}).Complete(r)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			running, stop := context.WithCancel(ctx)
			ended := make(chan error, 1) // one send, at the end of Start
			go func() { ended <- m.Start(running) }()

			direct, err := client.NewWithWatch(config, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := direct.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
			if err != nil {
				t.Fatal(err)
			}
			backup := newBackup()
			backup.SetNamespace("default")
			backup.SetName("nightly")
			if err := direct.Create(ctx, backup); err != nil {
				t.Fatal(err)
			}
			e, ok := <-w.ResultChan()
			if !ok {
				t.Fatal("the controller made nothing")
			}
			if owner := metav1.GetControllerOf(e.Object.(*corev1.ConfigMap)); owner == nil ||
				owner.UID != backup.GetUID() {
				t.Errorf("the child is %v", e.Object)
			}
			w.Stop()
			if err := direct.Delete(ctx, backup); err != nil {
				t.Error(err)
			}
			select {
			case <-gone:
			case <-ctx.Done():
				t.Error("the controller did not see it go")
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func newBackup() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Backup"})
	return u
}

// backupReconciler creates a ConfigMap for each Backup, and closes gone when it is called for a Backup that does not
// exist.
type backupReconciler struct {
	client client.Client
	once   sync.Once
	gone   chan struct{} // closed by once
}

func (r *backupReconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	backup := newBackup()
	if err := r.client.Get(ctx, q.NamespacedName, backup); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.once.Do(func() { close(r.gone) })
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: q.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.client, child, func() error {
		return controllerutil.SetControllerReference(backup, child, r.client.Scheme())
	})
	return reconcile.Result{}, err
}
