package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	informerobjects "github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// BenchmarkEventToReconcile is the way of one event of a watch to the end of its reconcile, without an Inspector and
// with one. The next event comes when the reconcile of the last one has begun.
func BenchmarkEventToReconcile(b *testing.B) {
	b.Run("off", func(b *testing.B) { eventToReconcile(b, b.Context()) })
	b.Run("on", func(b *testing.B) { eventToReconcile(b, inspect.New(inspect.Options{}).Context(b.Context())) })
}

func eventToReconcile(b *testing.B, ctx context.Context) {
	ctx, stop := context.WithCancel(klog.NewContext(ctx, klog.NewKlogr().V(9)))
	f := &feed{next: make(chan *corev1.Pod)}
	inf := informer.NewSharedInformer(f, informer.Options[*corev1.Pod]{Resource: "pods"})
	reconciled := make(chan struct{})
	c := reconcile.New("pods", reconcile.Func[reconcile.Request](
		func(context.Context, reconcile.Request) (reconcile.Result, error) {
			reconciled <- struct{}{}
			return reconcile.Result{}, nil
		}), reconcile.Options[reconcile.Request]{})
	if err := c.Watch(source.Kind(inf, handler.EnqueueObject[*corev1.Pod]())); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- inf.Run(ctx) }()
	go func() { ended <- c.Run(ctx) }()
	const objects = 100
	var pods [2 * objects]*corev1.Pod // Two states of each, so that making them is not measured.
	for n := range pods {
		pods[n] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", n%objects)}}
	}
	version := 10
	next := func() {
		pod := pods[version%len(pods)]
		version++
		state := *pod
		state.ResourceVersion = strconv.Itoa(version)
		f.next <- &state
		<-reconciled
	}
	for range 60 * objects {
		next()
	}
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
	b.StopTimer()
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkUpdateToWrite is the way of an object from an update by a user to the write with which a controller answers,
// on an API server in this process, without an Inspector and with one.
func BenchmarkUpdateToWrite(b *testing.B) {
	b.Run("off", func(b *testing.B) { updateToWrite(b, manager.Options{}) })
	b.Run("on", func(b *testing.B) { updateToWrite(b, manager.Options{Inspect: inspect.New(inspect.Options{})}) })
}

func updateToWrite(b *testing.B, o manager.Options) {
	ctx, stop := context.WithCancel(klog.NewContext(b.Context(), klog.Logger{}))
	mgr, err := manager.New(localapi.NewTest(b).RESTConfig(), o)
	if err != nil {
		b.Fatal(err)
	}
	c := mgr.GetClient()
	wrote := make(chan error)
	err = builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func[reconcile.Request](
		func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			var config corev1.ConfigMap
			err := c.Get(ctx, req.NamespacedName, &config)
			if err != nil || config.Data["seen"] == config.Data["asked"] {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			config.Data["seen"] = config.Data["asked"]
			wrote <- c.Update(ctx, &config)
			return reconcile.Result{}, nil
		}))
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"asked": "first"},
	}
	err = c.Create(ctx, config)
	for n := 0; b.Loop(); n++ {
		if err = errors.Join(err, <-wrote); err != nil {
			b.Fatal(err)
		}
		update := config.DeepCopy()
		update.ResourceVersion, update.Data["asked"] = "", strconv.Itoa(n)
		err = c.Update(ctx, update)
	}
	if err = errors.Join(err, <-wrote); err != nil {
		b.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// feed is an API without pods at first.
type feed struct {
	next chan *corev1.Pod
	// odd are events whose object cannot be decoded.
	odd chan *informerobjects.DecodeError
}

func (f *feed) List(context.Context, listwatch.ListOptions, func(*corev1.Pod) error) (listwatch.ListResult, error) {
	return listwatch.ListResult{ResourceVersion: "10"}, nil
}

func (f *feed) Watch(_ context.Context, o listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	if o.SendInitialEvents {
		return nil, errors.New("no streaming lists")
	}
	return f, nil
}

func (f *feed) Next(ctx context.Context) (listwatch.Event[*corev1.Pod], error) {
	select {
	case pod := <-f.next:
		return listwatch.Event[*corev1.Pod]{
			Type: listwatch.Modified, Object: pod, ResourceVersion: pod.ResourceVersion,
		}, nil
	case err := <-f.odd:
		return listwatch.Event[*corev1.Pod]{
			Type: listwatch.Modified, Unreadable: err, ResourceVersion: err.Version,
		}, nil
	case <-ctx.Done():
		return listwatch.Event[*corev1.Pod]{}, io.EOF
	}
}

func (f *feed) Close() error { return nil }
