package client

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Get implements [Reader].
func (c *Cluster) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	var o ReadOptions
	for _, opt := range given(opts) {
		opt.ApplyToGet(&o)
	}
	k, err := kindOf(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("get %T: %w", obj, err)
	}
	if key.Name == "" {
		return fmt.Errorf("get %s: the key has no name", k.gvk.Kind)
	}
	if o.Live { // It makes no cache.
		return c.live.get(ctx, k, key, obj)
	}
	cache, err := c.caches.of(ctx, k)
	if err != nil {
		return err
	}
	if cache == nil {
		return c.live.get(ctx, k, key, obj)
	}
	found, err := c.readCache(ctx, cache, &query{key: key, ListOptions: ListOptions{ReadOptions: o}})
	switch {
	case o.LiveIfStale && errors.Is(err, ErrStale):
		return c.live.get(ctx, k, key, obj)
	case err != nil:
		return err
	case len(found) == 0:
		return apierrors.NewNotFound(cache.writes.Name, key.Name)
	}
	set(obj, hand(found[0], k, o))
	return nil
}

// List implements [Reader].
func (c *Cluster) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	var o ListOptions
	for _, opt := range given(opts) {
		opt.ApplyToList(&o)
	}
	k, err := kindOf(c.o.Scheme, list)
	if err != nil {
		return fmt.Errorf("list %T: %w", list, err)
	}
	if o.Live {
		return c.live.list(ctx, k, list, o)
	}
	cache, err := c.caches.of(ctx, k)
	if err != nil {
		return err
	}
	if cache == nil {
		return c.live.list(ctx, k, list, o)
	}
	version := cache.store.watermark(o.Namespace)
	found, err := c.readCache(ctx, cache, &query{key: ObjectKey{Namespace: o.Namespace}, ListOptions: o})
	if o.LiveIfStale && errors.Is(err, ErrStale) {
		return c.live.list(ctx, k, list, o)
	}
	if err != nil {
		return err
	}
	items := make([]runtime.Object, len(found))
	for i, obj := range found {
		items[i] = hand(obj, k, o.ReadOptions)
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("list %s: %w", k.gvk.Kind, err)
	}
	list.GetObjectKind().SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	list.SetResourceVersion(version)
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return nil
}

// hand returns what the caller gets of an object of the cache: a copy, unless it asked for none.
func hand(obj Object, k kind, o ReadOptions) Object {
	if o.ReadOnly {
		return obj
	}
	mine := obj.DeepCopyObject().(Object)
	mine.GetObjectKind().SetGroupVersionKind(k.gvk)
	return mine
}
