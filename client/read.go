package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	operators "k8s.io/apimachinery/pkg/selection"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/client/internal/kinds"
)

// ErrNoIndex is the error of a cached list by a field that has no index; see [Cluster.IndexField].
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
	found, _, err := c.read(ctx, cache, &cached.Query{Key: key}, o, nil)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return apierrors.NewNotFound(cache.Writes.Name, key.Name)
	}
	kinds.Set(obj, copied(found[0], k, o))
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
	q := &cached.Query{Key: ObjectKey{Namespace: o.Namespace}, Labels: o.LabelSelector}
	if err := selectFields(q, o.FieldSelector); err != nil {
		return fmt.Errorf("list %s from the cache: %w", k.GVK.Kind, err)
	}
	found, version, err := c.read(ctx, cache, q, o.ReadOptions, list)
	if err != nil {
		return err
	}
	found, next, remaining, err := o.page(found)
	if err != nil {
		return fmt.Errorf("list %s: %w", k.GVK.Kind, err)
	}
	items := make([]runtime.Object, len(found))
	for i, obj := range found {
		items[i] = copied(obj, k, o.ReadOptions)
	}
	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("list %s: %w", k.GVK.Kind, err)
	}
	list.GetObjectKind().SetGroupVersionKind(k.List())
	list.SetResourceVersion(version)
	list.SetContinue(next)
	list.SetRemainingItemCount(remaining)
	return nil
}

// selectFields makes q ask for the values that a selector asks for.
//
// Errors: the selector excludes a value.
func selectFields(q *cached.Query, selector fields.Selector) error {
	if selector == nil || selector.Empty() {
		return nil
	}
	q.Fields = fields.Set{}
	for _, r := range selector.Requirements() {
		if r.Operator == operators.NotEquals {
			return fmt.Errorf("the cache has no index for %q: list with client.Live", selector)
		}
		if value, twice := q.Fields[r.Field]; twice && value != r.Value {
			q.Labels = labels.Nothing()
		}
		q.Fields[r.Field] = r.Value
	}
	if len(q.Fields) == 0 { // fields.Nothing
		q.Labels = labels.Nothing()
	}
	return nil
}

// cachePage begins the Continue tokens of cached lists. The key of the last object on the page follows.
const cachePage = "cache:"

var errOtherToken = errors.New("the Continue token is not one of a list from the cache: list all pages with " +
	"client.Live, or none")

// page returns the page of found that Limit and Continue select, the token of the next page, and the number of objects
// after this page. It sorts found.
func (l ListOptions) page(found []Object) (page []Object, next string, remaining *int64, err error) {
	if l.Limit <= 0 && l.Continue == "" {
		return found, "", nil, nil
	}
	key := func(obj Object) string { return obj.GetNamespace() + "/" + obj.GetName() }
	slices.SortFunc(found, func(a, b Object) int { return cmp.Compare(key(a), key(b)) })
	if l.Continue != "" {
		last, ours := strings.CutPrefix(l.Continue, cachePage)
		if !ours {
			return nil, "", nil, errOtherToken
		}
		found = slices.DeleteFunc(found, func(obj Object) bool { return key(obj) <= last })
	}
	if left := int64(len(found)) - l.Limit; l.Limit > 0 && left > 0 {
		return found[:l.Limit], cachePage + key(found[l.Limit-1]), &left, nil
	}
	return found, "", nil, nil
}

// read answers q from the cache. It also returns the resource version of a list; list is the caller's, nil for Get.
// Where the cache is behind an own write, a reconcile gets [ErrStale], because it would decide on a state that it has
// already changed. Other readers get the server's answer or, if that fails, the cache as it is.
func (c *Cluster) read(ctx context.Context, cache *cached.Cache, q *cached.Query, o ReadOptions, list ObjectList,
) (found []Object, version string, err error) {
	reader := ctx
	if o.LiveIfStale && OwnerFrom(ctx) == nil {
		reader = WithOwner(ctx, o) // Any owner: readCache then returns ErrStale as in a reconcile.
	}
	if q.Lists() {
		version = cache.Watermark(q.Key.Namespace)
	}
	found, err = c.readCache(reader, cache, q, o)
	if !errors.Is(err, ErrStale) {
		return found, version, err
	}
	outside := OwnerFrom(ctx) == nil
	if !outside && !o.LiveIfStale {
		return nil, "", err
	}
	live, at, err := c.readServer(ctx, cache, *q, list)
	if err == nil || !outside {
		return live, at, err
	}
	found, err = cache.Read(q)
	return found, version, err
}

// readServer answers q from the server. It returns only objects that the cache would hold, in the form in which the
// cache would hold them. q is a copy because it escapes to the heap.
func (c *Cluster) readServer(ctx context.Context, cache *cached.Cache, q cached.Query, list ObjectList,
) (found []Object, version string, err error) {
	add := func(item runtime.Object) error {
		obj, err := cache.Transform(item.(Object))
		if err == nil && cache.Matches(&q, obj) {
			found = append(found, obj)
		}
		return err
	}
	if q.Lists() {
		fresh := reflect.New(reflect.TypeOf(list).Elem()).Interface().(ObjectList)
		// The server does not know our indexes: Matches compares their fields.
		params := ListOptions{LabelSelector: q.Labels}.params()
		if err = c.server.List(ctx, cache.Kind, q.Key.Namespace, params, fresh); err == nil {
			err = meta.EachListItem(fresh, add)
		}
		return found, fresh.GetResourceVersion(), err
	}
	obj, err := cache.Kind.New(c.o.Scheme)
	if err == nil {
		err = c.server.Get(ctx, cache.Kind, q.Key, obj)
	}
	if err == nil {
		err = add(obj)
	}
	return found, "", IgnoreNotFound(err)
}

// cacheFor returns the cache to read from; nil means the server. A live read does not create a cache.
func (c *Cluster) cacheFor(ctx context.Context, k kinds.Kind, o ReadOptions) (*cached.Cache, error) {
	if o.Live {
		return nil, nil
	}
	return c.caches.Of(ctx, k)
}

// copied returns a copy of an object of the cache, or the object itself if the caller asked for that.
func copied(obj Object, k kinds.Kind, o ReadOptions) Object {
	if o.ReadOnly {
		return obj
	}
	c := obj.DeepCopyObject().(Object)
	c.GetObjectKind().SetGroupVersionKind(k.GVK)
	return c
}
