// Package program is a controller as people write them with client-go: a generated factory, generated listers, an
// index, handlers that know tombstones, and a rate-limited queue. For each Service it keeps a ConfigMap that lists
// the pods the Service selects.
//
// The folders upstream and flyball have it twice; they differ in import lines alone.
package program

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	cache "github.com/flyball-dev/flyball/informer/clientgo"
	workqueue "github.com/flyball-dev/flyball/workqueue/clientgo"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// byApp is the index of pods by their label app.
const byApp = "app"

// Controller keeps the lists.
type Controller struct {
	client   kubernetes.Interface
	factory  informers.SharedInformerFactory
	pods     cache.Indexer
	services corelisters.ServiceLister
	lists    corelisters.ConfigMapLister
	synced   []cache.InformerSynced
	queue    workqueue.TypedRateLimitingInterface[string]
	// Note is told what happens.
	Note func(string)
}

// New returns a controller. Nothing happens before Run.
func New(client kubernetes.Interface, note func(string)) (*Controller, error) {
	c := &Controller{
		client: client, Note: note,
		factory: informers.NewSharedInformerFactory(client, 0),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "lists"}),
	}
	pods := c.factory.InformerFor(&corev1.Pod{}, newPods)
	services := c.factory.InformerFor(&corev1.Service{}, newServices)
	lists := c.factory.InformerFor(&corev1.ConfigMap{}, newLists)
	// From here on the factory's own methods find these informers.
	c.services = c.factory.Core().V1().Services().Lister()
	c.lists = c.factory.Core().V1().ConfigMaps().Lister()
	c.pods = c.factory.Core().V1().Pods().Informer().GetIndexer()
	if err := pods.SetTransform(dropManagedFields); err != nil {
		return nil, err
	}
	for inf, enqueue := range map[cache.SharedIndexInformer]func(any){
		pods: c.enqueueServicesOf, services: c.enqueue,
		lists: c.enqueue,
	} {
		handle, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: enqueue,
			UpdateFunc: func(old, obj any) {
				enqueue(old)
				enqueue(obj)
			},
			DeleteFunc: func(obj any) {
				if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					c.Note("tombstone of " + d.Key)
					obj = d.Obj
				}
				enqueue(obj)
			},
		})
		if err != nil {
			return nil, err
		}
		c.synced = append(c.synced, handle.HasSynced)
	}
	return c, nil
}

func newPods(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	i := client.CoreV1().Pods(metav1.NamespaceAll)
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return i.List(ctx, o)
		},
		WatchFuncWithContext: i.Watch,
	}, client), &corev1.Pod{}, resync, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		byApp:                func(obj any) ([]string, error) { return []string{appOf(obj.(*corev1.Pod))}, nil },
	})
}

func newServices(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	i := client.CoreV1().Services(metav1.NamespaceAll)
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return i.List(ctx, o)
		},
		WatchFuncWithContext: i.Watch,
	}, client), &corev1.Service{}, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func newLists(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	lw := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", metav1.NamespaceAll,
		func(o *metav1.ListOptions) { o.LabelSelector = "of-service" })
	return cache.NewSharedIndexInformerWithOptions(lw, &corev1.ConfigMap{}, cache.SharedIndexInformerOptions{
		ResyncPeriod: resync, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	})
}

func dropManagedFields(obj any) (any, error) {
	obj.(metav1.Object).SetManagedFields(nil)
	return obj, nil
}

// appOf is what an app is known by: it is in one namespace.
func appOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Labels["app"] }

func (c *Controller) enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		c.Note(err.Error())
		return
	}
	c.queue.Add(key)
}

func (c *Controller) enqueueServicesOf(obj any) {
	p := obj.(*corev1.Pod)
	all, err := c.services.Services(p.Namespace).List(labels.Everything())
	if err != nil {
		c.Note(err.Error())
	}
	for _, s := range all {
		if s.Spec.Selector["app"] == p.Labels["app"] {
			c.enqueue(s)
		}
	}
}

// Run runs the informers and two workers until ctx is done.
func (c *Controller) Run(ctx context.Context) error {
	c.factory.StartWithContext(ctx)
	defer c.factory.Shutdown()
	if !cache.WaitForNamedCacheSyncWithContext(ctx, c.synced...) {
		return fmt.Errorf("caches have not synced: %w", context.Cause(ctx))
	}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for c.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	return nil
}

func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		c.Note(fmt.Sprintf("retry %d of %s", c.queue.NumRequeues(key)+1, key))
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	service, err := c.services.Services(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		err := c.client.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	objs, err := c.pods.ByIndex(byApp, namespace+"/"+service.Spec.Selector["app"])
	if err != nil {
		return err
	}
	var members []string
	for _, obj := range objs {
		members = append(members, obj.(*corev1.Pod).Name)
	}
	slices.Sort(members)
	return c.write(ctx, service, strings.Join(members, " "))
}

// write makes the list of a service say members.
func (c *Controller) write(ctx context.Context, service *corev1.Service, members string) error {
	maps := c.client.CoreV1().ConfigMaps(service.Namespace)
	list, err := c.lists.ConfigMaps(service.Namespace).Get(service.Name)
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: service.Name, Labels: map[string]string{"of-service": service.Name}},
			Data:       map[string]string{"pods": members},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil || list.Data["pods"] == members {
		return err
	}
	list = list.DeepCopy()
	list.Data = map[string]string{"pods": members}
	_, err = maps.Update(ctx, list, metav1.UpdateOptions{})
	return err
}
