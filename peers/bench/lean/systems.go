package lean

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flyball-dev/flyball/informer"
)

// Heard is told of every call of a handler, with the resource version of the object.
type Heard func(handler int, version string)

// System is an informer with handlers, run until ctx is done. synced is called when all handlers have been told of
// the whole list.
type System func(ctx context.Context, config *rest.Config, r Resource, handlers int, heard Heard, synced func()) error

// Systems are what is compared. "flyball-standard" is Flyball with its lean decoding turned off, "flyball-stream"
// with streamed lists.
var Systems = map[string]System{
	"clientgo": clientGo, "controllerruntime": controllerRuntime,
	"flyball":          flyball(informer.FactoryOptions{}),
	"flyball-standard": flyball(informer.FactoryOptions{StandardDecoding: true}),
	"flyball-stream":   flyball(informer.FactoryOptions{StreamLists: true}),
}

// mapper knows the two resources, so that nobody asks the server.
func mapper(r Resource) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(r.GVK, meta.RESTScopeNamespace)
	return m
}

func flyball(o informer.FactoryOptions) System {
	return func(ctx context.Context, config *rest.Config, r Resource, handlers int, heard Heard, synced func()) error {
		o.Mapper = mapper(r)
		f, err := informer.NewFactory(config, o)
		if err != nil {
			return err
		}
		if r.Protobuf {
			return follow[*corev1.Pod](ctx, f, informer.InformerOptions{}, handlers, heard, synced)
		}
		return follow[*unstructured.Unstructured](ctx, f, informer.InformerOptions{Kind: r.GVK}, handlers, heard,
			synced)
	}
}

func follow[T informer.Object](ctx context.Context, f *informer.Factory, o informer.InformerOptions, handlers int,
	heard Heard, synced func(),
) error {
	inf, err := informer.ForOptions[T](f, o)
	if err != nil {
		return err
	}
	for i := range handlers {
		// Never merged: client-go delivers every update, so ours must too.
		r, err := inf.AddHandler(informer.Handler[T]{
			OnAdd:    func(obj T, _ bool) { heard(i, obj.GetResourceVersion()) },
			OnUpdate: func(_, obj T) { heard(i, obj.GetResourceVersion()) },
		}, informer.HandlerOptions{MaxLag: -1})
		if err != nil {
			return err
		}
		if i == handlers-1 {
			go func() { <-r.Synced(); synced() }()
		}
	}
	return f.Run(ctx)
}

// handler is one of client-go's.
func handler(i int, heard Heard) cache.ResourceEventHandler {
	version := func(obj any) string { return obj.(metav1.Object).GetResourceVersion() }
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { heard(i, version(obj)) }, UpdateFunc: func(_, obj any) { heard(i, version(obj)) },
	}
}

func clientGo(ctx context.Context, config *rest.Config, r Resource, handlers int, heard Heard, synced func()) error {
	var inf cache.SharedIndexInformer
	if r.Protobuf {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		inf = informers.NewSharedInformerFactory(c, 0).Core().V1().Pods().Informer()
	} else {
		c, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		inf = dynamicinformer.NewDynamicSharedInformerFactory(c,
			0).ForResource(r.GVK.GroupVersion().WithResource(r.Plural)).Informer()
	}
	last, err := addHandlers(inf.AddEventHandler, handlers, heard)
	if err != nil {
		return err
	}
	go awaitSync(ctx, last.HasSynced, synced)
	inf.RunWithContext(ctx)
	return nil
}

func addHandlers(add func(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error), n int,
	heard Heard,
) (last cache.ResourceEventHandlerRegistration, err error) {
	for i := range n {
		if last, err = add(handler(i, heard)); err != nil {
			return nil, err
		}
	}
	return last, nil
}

func awaitSync(ctx context.Context, done func() bool, synced func()) {
	for !done() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
	synced()
}

func controllerRuntime(ctx context.Context, config *rest.Config, r Resource, handlers int, heard Heard,
	synced func(),
) error {
	log.SetLogger(klog.Background())
	c, err := crcache.New(config, crcache.Options{Scheme: clientscheme.Scheme, Mapper: mapper(r)})
	if err != nil {
		return err
	}
	var example client.Object = &corev1.Pod{}
	if !r.Protobuf {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(r.GVK)
		example = u
	}
	inf, err := c.GetInformer(ctx, example, crcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	last, err := addHandlers(inf.AddEventHandler, handlers, heard)
	if err != nil {
		return fmt.Errorf("add handlers: %w", err)
	}
	go awaitSync(ctx, last.HasSynced, synced)
	return c.Start(ctx)
}
