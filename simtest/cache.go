package simtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
)

// Cache lets Check compare a cache of the process with the API server of [Env.Config] when the program has settled
// after the script. Build calls it once for each type.
//
// list returns the objects of the cache. It must read from memory only. of reports whether an object belongs to the
// cache, for one that has only some of a type; nil stands for all. Managed fields are not compared: caches may drop
// them.
func Cache[T client.Object](e *Env, list func(ctx context.Context) ([]T, error), of func(T) bool) {
	kind := kindOf[T](e.process.world.state.scheme)
	e.process.caches = append(e.process.caches, func(ctx context.Context, s *State) error {
		cached, err := list(ctx)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		stored := List[T](s, "")
		if of != nil {
			stored = slices.DeleteFunc(stored, func(obj T) bool { return !of(obj) })
		}
		return compareCache(kind.Kind, cached, stored)
	})
}

// compareCache returns an error if the objects of a cache are not those of the API server.
func compareCache[T client.Object](kind string, cached, stored []T) error {
	have := map[types.NamespacedName]T{}
	for _, obj := range cached {
		have[client.ObjectKeyFromObject(obj)] = obj
	}
	for _, want := range stored {
		key := client.ObjectKeyFromObject(want)
		got, ok := have[key]
		delete(have, key)
		switch {
		case !ok:
			return fmt.Errorf("%s %v is missing", kind, key)
		case got.GetUID() != want.GetUID():
			return fmt.Errorf("%s %v is an object that is gone, whose name another one has taken", kind, key)
		case got.GetResourceVersion() != want.GetResourceVersion():
			return fmt.Errorf("%s %v has version %s, and the API server %s", kind, key, got.GetResourceVersion(),
				want.GetResourceVersion())
		case !equality.Semantic.DeepEqual(plain(got), plain(want)):
			return fmt.Errorf("%s %v has the version of the API server, but not the content: "+
				"does the program change what it has got from the cache?", kind, key)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(have), func(a, b types.NamespacedName) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	}) {
		return fmt.Errorf("%s %v is there, but not in the API server", kind, key)
	}
	return nil
}

// plain returns a copy without what caches may leave out.
func plain[T client.Object](obj T) T {
	c := obj.DeepCopyObject().(T)
	c.SetManagedFields(nil)
	c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return c
}

// judgeCaches compares the caches of all processes with the API server. Nothing is under way.
func (w *world) judgeCaches() {
	for _, p := range w.live() {
		for _, check := range p.caches {
			ctx, cancel := context.WithCancel(p.ctx)
			var verdict atomic.Value
			go func() {
				err := holds(func(s *State) error { return check(ctx, s) }, w.state)
				verdict.Store([]error{err})
			}()
			synctest.Wait()
			settled := verdict.Load()
			cancel() // Only now: it may end a list that waits, with an error that says less.
			if settled == nil {
				w.fail(RuleCache, "list", p.name()+": the list of a cache waits, instead of reading from memory")
				continue
			}
			if err := settled.([]error)[0]; err != nil {
				w.fail(RuleCache, "cache", fmt.Sprintf("the cache of %s is wrong: %v", p.name(), err))
			}
		}
	}
}
