package client

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/client/internal/kinds"
)

// ErrNoIndex says that a cached list selects by a field that no index was made for; see [Cluster.IndexField].
var ErrNoIndex = cached.ErrNoIndex

// Get implements [Reader].
func (c *Cluster) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	o := applied(opts, GetOption.ApplyToGet)
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("get %T: %w", obj, err)
	}
	if key.Name == "" {
		return fmt.Errorf("get %s: the key has no name", k.GVK.Kind)
	}
	cache, err := c.cacheFor(ctx, k, o)
	if err != nil {
		return err
	}
	if cache == nil {
		return c.server.Get(ctx, k, key, obj)
	}
	found, err := c.readCache(ctx, cache, &cached.Query{Key: key}, o)
	switch {
	case o.LiveIfStale && errors.Is(err, ErrStale):
		return c.server.Get(ctx, k, key, obj)
	case err != nil:
		return err
	case len(found) == 0:
		return apierrors.NewNotFound(cache.Writes.Name, key.Name)
	}
	kinds.Set(obj, hand(found[0], k, o))
	return nil
}

// List implements [Reader].
func (c *Cluster) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	o := applied(opts, ListOption.ApplyToList)
	k, err := kinds.Of(c.o.Scheme, list)
	if err != nil {
		return fmt.Errorf("list %T: %w", list, err)
	}
	cache, err := c.cacheFor(ctx, k, o.ReadOptions)
	if err != nil {
		return err
	}
	if cache == nil {
		return c.server.List(ctx, k, o.Namespace, o.params(), list)
	}
	version := cache.Watermark(o.Namespace)
	q := &cached.Query{Key: ObjectKey{Namespace: o.Namespace}, Labels: o.Labels, Fields: o.Fields}
	found, err := c.readCache(ctx, cache, q, o.ReadOptions)
	if o.LiveIfStale && errors.Is(err, ErrStale) {
		return c.server.List(ctx, k, o.Namespace, o.params(), list)
	}
	if err != nil {
		return err
	}
	items := make([]runtime.Object, len(found))
	for i, obj := range found {
		items[i] = hand(obj, k, o.ReadOptions)
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("list %s: %w", k.GVK.Kind, err)
	}
	list.GetObjectKind().SetGroupVersionKind(k.List())
	list.SetResourceVersion(version)
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return nil
}

// cacheFor returns the cache that is read; nil where the server is. A live read makes no cache.
func (c *Cluster) cacheFor(ctx context.Context, k kinds.Kind, o ReadOptions) (*cached.Cache, error) {
	if o.Live {
		return nil, nil
	}
	return c.caches.Of(ctx, k)
}

// hand returns what the caller gets of an object of the cache: a copy, unless it asked for none.
func hand(obj Object, k kinds.Kind, o ReadOptions) Object {
	if o.ReadOnly {
		return obj
	}
	mine := obj.DeepCopyObject().(Object)
	mine.GetObjectKind().SetGroupVersionKind(k.GVK)
	return mine
}
