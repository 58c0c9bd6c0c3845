package comingfrom

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// A greeter writes a greeting into each ConfigMap that asks for one.
type greeter struct {
	client kubernetes.Interface
	lister listers.ConfigMapLister
	queue  workqueue.TypedRateLimitingInterface[string]
}

func runClientGo(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	maps := factory.Core().V1().ConfigMaps()
	g := &greeter{client: client, lister: maps.Lister(), queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string]())}
	registration, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    g.enqueue,
		UpdateFunc: func(_, obj any) { g.enqueue(obj) },
		DeleteFunc: g.enqueue,
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	var worker sync.WaitGroup
	worker.Go(func() { g.runWorker(ctx) })
	<-ctx.Done()
	g.queue.ShutDown()
	worker.Wait()
	return nil
}

func (g *greeter) enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		klog.Background().Error(err, "No key", "object", obj)
		return
	}
	g.queue.Add(key)
}

func (g *greeter) runWorker(ctx context.Context) {
	for g.processNextWorkItem(ctx) {
	}
}

func (g *greeter) processNextWorkItem(ctx context.Context) bool {
	key, shutDown := g.queue.Get()
	if shutDown {
		return false
	}
	defer g.queue.Done(key)
	if err := g.syncHandler(ctx, key); err != nil {
		klog.FromContext(ctx).Error(err, "Sync failed", "key", key)
		g.queue.AddRateLimited(key)
		return true
	}
	g.queue.Forget(key)
	return true
}

func (g *greeter) syncHandler(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	cm, err := g.lister.ConfigMaps(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if cm.Labels["greet"] != "yes" || cm.Data["greeting"] != "" {
		return nil
	}
	cm = cm.DeepCopy()
	cm.Data = map[string]string{"greeting": "hello"}
	_, err = g.client.CoreV1().ConfigMaps(namespace).Update(ctx, cm, metav1.UpdateOptions{})
	return err
}
