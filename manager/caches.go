package manager

import (
	"cmp"
	"context"
	"errors"

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

// newCluster returns the client that reads from the informers.
func newCluster(config *rest.Config, informers *informer.Factory, o Options) (*client.Cluster, error) {
	own := o.Client
	own.Informers, own.Caches = informers, o.Caches
	own.Mapper = cmp.Or(own.Mapper, o.Informers.Mapper)
	return client.New(config, own)
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
	return m.cluster.CacheOf(example)
}
