package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

// validateClient returns an error for options of the client that contradict the manager's.
func (o Options) validateClient() error {
	switch {
	case o.Client.Informers != nil:
		return errors.New("manager: Options.Client.Informers is set: the client reads from the manager's informers")
	case len(o.Client.Caches) > 0:
		return errors.New("manager: Options.Client.Caches is set: set Options.Caches, which controllers share")
	case o.Client.CacheFor != nil:
		return errors.New("manager: Options.Client.CacheFor is set: set Options.Caches, which controllers share")
	case o.Scheme != nil && o.Scheme != o.Informers.Scheme:
		return errors.New("manager: Options.Scheme and Informers.Scheme differ: set Options.Scheme only")
	case o.Client.Scheme != nil && o.Client.Scheme != cmp.Or(o.Informers.Scheme, scheme.Scheme):
		return errors.New("manager: Options.Client.Scheme differs from the manager's: set Options.Scheme only")
	}
	return nil
}

// newCluster validates Options.Caches and returns the client that reads from the informers.
func newCluster(config *rest.Config, informers *informer.Factory, o Options) (*client.Cluster, error) {
	own := o.Client
	own.Informers, own.Caches = informers, o.Caches
	if own.Mapper == nil {
		own.Mapper = o.Informers.Mapper
	}
	c, err := client.New(config, own)
	if err != nil {
		return nil, err
	}
	var known []cacheKey
	for i, cache := range o.Caches {
		key, err := keyOf(c, cache.Object)
		if err != nil {
			return nil, fmt.Errorf("Options.Caches[%d]: %w", i, err)
		}
		if slices.Contains(known, key) {
			return nil, fmt.Errorf("Options.Caches[%d]: %s is listed twice", i, key.kind)
		}
		known = append(known, key)
	}
	return c, nil
}

// cacheKey is a kind in one of its three representations.
type cacheKey struct {
	kind string
	form string
}

func keyOf(c *client.Cluster, example informer.Object) (cacheKey, error) {
	if example == nil {
		return cacheKey{}, errors.New("the object is nil; give an empty one, like &corev1.Pod{}")
	}
	kind, err := c.GroupVersionKindFor(example)
	if err != nil {
		return cacheKey{}, err
	}
	key := cacheKey{kind: kind.String(), form: "typed"}
	switch example.(type) {
	case *unstructured.Unstructured:
		key.form = "unstructured"
	case *metav1.PartialObjectMetadata:
		key.form = "metadata"
	}
	return key, nil
}

// GetClient returns a client that reads from the manager's informers, writes to the API server, and sees its own writes
// at once; see package client. A write with the context of a runnable that needs leadership fails once another process
// could have acquired the lease.
func (m *Manager) GetClient() *client.Cluster { return m.cluster }

// GetFieldIndexer returns the same as GetClient, for its method IndexField.
func (m *Manager) GetFieldIndexer() *client.Cluster { return m.cluster }

// GetAPIReader returns a reader that asks the API server instead of the caches. It also works before the manager runs.
func (m *Manager) GetAPIReader() client.Reader { return m.cluster.APIReader() }

// Cache reads the caches of a manager, and adds indexes to them.
type Cache struct {
	client.Reader
	client.FieldIndexer
	manager *Manager
}

// GetCache returns the caches. Reads are those of GetClient.
func (m *Manager) GetCache() Cache { return Cache{m.cluster, m.cluster, m} }

// WaitForCacheSync waits until the caches that are in use are filled. It returns false if ctx ends before that.
func (c Cache) WaitForCacheSync(ctx context.Context) bool {
	return c.manager.informers.WaitForSync(ctx) == nil
}

// InformerOf returns the informer of the kind of example, with the options that [Manager.CacheOf] returns.
func InformerOf[T informer.Object](c Cache, example T) (informer.Informer[T], error) {
	kind, err := c.manager.cluster.GroupVersionKindFor(example)
	if err != nil {
		return nil, err
	}
	o := c.manager.CacheOf(example)
	o.Kind = kind
	return informer.ForOptions[T](c.manager.informers, o)
}

// CacheOf returns the options that Options.Caches has for the kind and representation of example. It returns the zero
// value if there is no entry or the kind is unknown.
func (m *Manager) CacheOf(example informer.Object) informer.InformerOptions {
	wanted, err := keyOf(m.cluster, example)
	if err != nil {
		return informer.InformerOptions{}
	}
	for _, cache := range m.options.Caches {
		if key, err := keyOf(m.cluster, cache.Object); err == nil && key == wanted {
			return cache.Informer
		}
	}
	return informer.InformerOptions{}
}
