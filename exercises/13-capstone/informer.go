package capstone

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	client "github.com/flyball-dev/flyball/exercises/02a-client"
	reflector "github.com/flyball-dev/flyball/exercises/03a-reflector"
	log "github.com/flyball-dev/flyball/exercises/04a-log"
	index "github.com/flyball-dev/flyball/exercises/05a-index"
	fanout "github.com/flyball-dev/flyball/exercises/06a-fanout"
	"github.com/flyball-dev/flyball/exercises/kube"
)

// informer keeps a cache of the objects of one kind, and tells handlers of its changes. It is chapters 2 to 6 in a row:
// the reflector lists and watches with the client and pushes into the log. Another goroutine takes from the log,
// changes the store and the index, and publishes what has changed.
type informer[T any] struct {
	client *client.Client
	decode func(*kube.Object) (T, error)
	log    *log.Log[delta]
	// objects finds the decoded objects by namespace and by key.
	objects *index.Index[T]
	fanout  *fanout.Fanout
	ended   context.Context // of Run
	synced  chan struct{}   // closed when the first list is in the cache

	mu    sync.Mutex
	store *kube.Store
}

// delta is an entry of the log: an event, or all objects if list is not nil.
type delta struct {
	list  *kube.List
	event kube.Event
}

func newInformer[T interface{ Key() string }](c *client.Client, decode func(*kube.Object) (T, error)) *informer[T] {
	return &informer[T]{
		client: c, decode: decode, log: log.New[delta](100), fanout: fanout.New(1000), synced: make(chan struct{}),
		objects: index.New(func(obj T) ([]string, error) {
			namespace, _, _ := strings.Cut(obj.Key(), "/")
			return []string{namespace, obj.Key()}, nil // A key has a slash, and a namespace has none.
		}),
		store: kube.NewStore(),
	}
}

// run keeps the cache equal to the server until ctx is done.
func (i *informer[T]) run(ctx context.Context, random func() float64) {
	i.ended = ctx
	var stages sync.WaitGroup
	stages.Go(func() {
		reflector.New(i.client, i, reflector.Options{
			Min: time.Second, Max: 30 * time.Second, Timeout: 5 * time.Minute, Grace: 10 * time.Second, Rand: random,
		}).Run(ctx)
	})
	stages.Go(func() {
		for first := true; ; first = false {
			deltas, err := i.log.Take(ctx)
			if err != nil {
				return
			}
			i.fanout.Publish(i.apply(deltas)...)
			if first {
				close(i.synced)
			}
		}
	})
	stages.Wait()
	i.fanout.Stop()
}

// Replace implements kube.Cache for the reflector.
func (i *informer[T]) Replace(all kube.List) { _ = i.log.Push(i.ended, delta{list: &all}) }

// Apply implements kube.Cache for the reflector.
func (i *informer[T]) Apply(e kube.Event) { _ = i.log.Push(i.ended, delta{event: e}) }

// apply changes the cache, and returns what has changed.
func (i *informer[T]) apply(deltas []delta) (changes []kube.Change) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range deltas {
		if d.list == nil {
			key := d.event.Object.Key()
			old := i.store.Objects[key]
			i.store.Apply(d.event)
			changes = i.changed(changes, key, old)
			continue
		}
		old := i.store.Objects // Replace makes another map.
		i.store.Replace(*d.list)
		keys := maps.Clone(old)
		maps.Copy(keys, i.store.Objects)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			changes = i.changed(changes, key, old[key])
		}
	}
	return changes
}

// changed brings the index up to date with the store, and appends the change of that key, if there is one.
func (i *informer[T]) changed(changes []kube.Change, key string, old *kube.Object) []kube.Change {
	now := i.store.Objects[key]
	switch {
	case now == nil && old == nil, now != nil && old != nil && now.Version == old.Version:
		return changes
	case now == nil:
		i.objects.Delete(key)
	default:
		obj, err := i.decode(now)
		if err != nil || i.objects.Set(key, obj) != nil {
			i.objects.Delete(key) // An object that cannot be read has no effect.
		}
	}
	return append(changes, kube.Change{Old: old, New: now})
}

// get returns the object of that key.
func (i *informer[T]) get(key string) (obj T, ok bool) {
	for _, obj := range i.objects.ByValue(key) {
		return obj, true
	}
	return obj, false
}
