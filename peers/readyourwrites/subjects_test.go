package readyourwrites

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

const namespace = "default"

var (
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	mine       = map[string]string{"of": "owner"}
)

// subject is a way to read from a cache and to write.
type subject interface {
	// children lists from the cache.
	children(ctx context.Context) (int, error)
	// create creates a child; with an empty name, a generated one.
	create(ctx context.Context, name string) error
	// remove deletes by name.
	remove(ctx context.Context, name string) error
}

// maker starts a subject, which runs until ctx is done; wg has what it started.
type maker func(t *testing.T, ctx context.Context, wg *sync.WaitGroup, config *rest.Config, untyped bool) subject

var makers = []struct {
	name string
	make maker
}{
	{"client-go listers", newClientGo},
	{"controller-runtime", func(t *testing.T, ctx context.Context, wg *sync.WaitGroup, c *rest.Config, u bool) subject {
		return newControllerRuntime(t, ctx, wg, c, u, false)
	}},
	{
		"controller-runtime, option on",
		func(t *testing.T, ctx context.Context, wg *sync.WaitGroup, c *rest.Config, u bool) subject {
			return newControllerRuntime(t, ctx, wg, c, u, true)
		},
	},
	{"flyball", newFlyball},
}

func child(name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: mine}
	if name == "" {
		m.GenerateName = "child-"
	}
	return m
}

func untypedChild(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(secretKind)
	m := child(name)
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetGenerateName(m.GenerateName)
	u.SetLabels(m.Labels)
	return u
}

// clientGo reads by listers of client-go's informers.
type clientGo struct {
	clients kubernetes.Interface
	list    func() (int, error)
	post    func(ctx context.Context, name string) error
}

func newClientGo(t *testing.T, ctx context.Context, wg *sync.WaitGroup, config *rest.Config, untyped bool) subject {
	c := &clientGo{clients: kubernetes.NewForConfigOrDie(config)}
	if untyped {
		d := dynamic.NewForConfigOrDie(config)
		f := dynamicinformer.NewDynamicSharedInformerFactory(d, 0)
		lister := f.ForResource(secrets).Lister().ByNamespace(namespace)
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		wg.Go(func() { <-ctx.Done(); f.Shutdown() })
		c.list = func() (int, error) {
			found, err := lister.List(labels.SelectorFromSet(mine))
			return len(found), err
		}
		c.post = func(ctx context.Context, name string) error {
			_, err := d.Resource(secrets).Namespace(namespace).Create(ctx, untypedChild(name), metav1.CreateOptions{})
			return err
		}
		return c
	}
	f := informers.NewSharedInformerFactory(c.clients, 0)
	lister := f.Core().V1().Secrets().Lister().Secrets(namespace)
	f.Core().V1().Secrets().Informer()
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	wg.Go(func() { <-ctx.Done(); f.Shutdown() })
	c.list = func() (int, error) {
		found, err := lister.List(labels.SelectorFromSet(mine))
		return len(found), err
	}
	c.post = func(ctx context.Context, name string) error {
		_, err := c.clients.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: child(name)},
			metav1.CreateOptions{})
		return err
	}
	return c
}

func (c *clientGo) children(context.Context) (int, error)         { return c.list() }
func (c *clientGo) create(ctx context.Context, name string) error { return c.post(ctx, name) }

func (c *clientGo) remove(ctx context.Context, name string) error {
	return c.clients.CoreV1().Secrets(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// controllerRuntime is its cache and client.
type controllerRuntime struct {
	crclient.Client
	untyped bool
}

func newControllerRuntime(t *testing.T, ctx context.Context, wg *sync.WaitGroup, config *rest.Config,
	untyped, consistent bool,
) subject {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(secretKind, meta.RESTScopeNamespace)
	cache, err := crcache.New(config, crcache.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { _ = cache.Start(ctx) })
	synctest.Wait() // It refuses reads until it runs.
	c, err := crclient.New(config,
		crclient.Options{Scheme: scheme.Scheme, Mapper: mapper, Cache: &crclient.CacheOptions{
			Reader: cache, Unstructured: true, EnableReadYourWritesConsistency: &consistent,
		}})
	if err != nil {
		t.Fatal(err)
	}
	s := &controllerRuntime{c, untyped}
	if _, err := s.children(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *controllerRuntime) children(ctx context.Context) (int, error) {
	if c.untyped {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(secretKind.GroupVersion().WithKind("SecretList"))
		err := c.List(ctx, list, crclient.InNamespace(namespace), crclient.MatchingLabels(mine))
		return len(list.Items), err
	}
	var list corev1.SecretList
	err := c.List(ctx, &list, crclient.InNamespace(namespace), crclient.MatchingLabels(mine))
	return len(list.Items), err
}

func (c *controllerRuntime) create(ctx context.Context, name string) error {
	if c.untyped {
		return c.Create(ctx, untypedChild(name))
	}
	return c.Create(ctx, &corev1.Secret{ObjectMeta: child(name)})
}

func (c *controllerRuntime) remove(ctx context.Context, name string) error {
	return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// flyball is ours.
type flyball struct {
	*client.Cluster
	untyped bool
}

func newFlyball(t *testing.T, ctx context.Context, wg *sync.WaitGroup, config *rest.Config, untyped bool) subject {
	f, err := informer.NewFactory(config, informer.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() { _ = f.Run(ctx) })
	c, err := client.New(config, client.Options{Informers: f})
	if err != nil {
		t.Fatal(err)
	}
	s := &flyball{c, untyped}
	if _, err := s.children(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *flyball) children(ctx context.Context) (int, error) {
	ctx = client.WithOwner(ctx, c) // As package reconcile does for a reconcile.
	if c.untyped {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(secretKind.GroupVersion().WithKind("SecretList"))
		err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(mine))
		return len(list.Items), err
	}
	var list corev1.SecretList
	err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(mine))
	return len(list.Items), err
}

func (c *flyball) create(ctx context.Context, name string) error {
	if c.untyped {
		return c.Create(ctx, untypedChild(name))
	}
	return c.Create(ctx, &corev1.Secret{ObjectMeta: child(name)})
}

func (c *flyball) remove(ctx context.Context, name string) error {
	return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}
