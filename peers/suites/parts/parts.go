// Package parts holds the constructors that stand in for controller-runtime's in its own test suites. A test binary
// is built once for all of them: the variable FLYBALL_PARTS of its environment says which of Flyball's parts it gets,
// and what is not named stays controller-runtime's.
package parts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
)

// The sets of parts, as FLYBALL_PARTS names them.
const (
	// Cache is NewCache, NewClient and NewQueue.
	Cache = "NewCache"
	// Lean is NewLeanCache, NewClient and NewQueue.
	Lean = "NewLeanCache"
	// Writes is NewClient on a cache of its own, whose writes are Flyball's and whose reads are the server's.
	Writes = "writes"
	// Manager is NewManager.
	Manager = "NewManager"
	// Webhooks is NewWebhookServer and NewConversionHandler, and in the suite of package admission our handlers.
	Webhooks = "NewWebhookServer"
)

// The variables of the environment: Env names the set, and EnvUsed a file that is made when one of its constructors
// is called.
const (
	Env     = "FLYBALL_PARTS"
	EnvUsed = "FLYBALL_PARTS_USED"
)

// chosen returns the set, of which a constructor is about to be called if it is one of those given.
func chosen(sets ...string) string {
	set, file := os.Getenv(Env), os.Getenv(EnvUsed)
	if file != "" && slices.Contains(sets, set) {
		if err := os.WriteFile(file, []byte(set), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "note that a part is used:", err)
		}
	}
	return set
}

// NewCache is in the place of cache.New.
func NewCache(config *rest.Config, o cache.Options) (cache.Cache, error) {
	switch chosen(Cache, Lean) {
	case Cache:
		return controllerruntime.NewCache(config, o)
	case Lean:
		return controllerruntime.NewLeanCache(config, o)
	}
	return cache.New(config, o)
}

// NewClient is in the place of client.New.
func NewClient(config *rest.Config, o client.Options) (client.Client, error) {
	switch chosen(Cache, Lean, Writes) {
	case Cache, Lean:
		return controllerruntime.NewClient(config, o)
	case Writes:
		return newWriter(config, o)
	}
	return client.New(config, o)
}

// NewManager is in the place of manager.New.
func NewManager(config *rest.Config, o manager.Options) (manager.Manager, error) {
	if chosen(Manager) == Manager {
		m, err := controllerruntime.NewManager(config, o)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	return manager.New(config, o)
}

// Queue is the function that makes the queues of controllers whose keys are [reconcile.Request]; nil:
// controller-runtime's.
func Queue() any {
	switch os.Getenv(Env) {
	case Cache, Lean:
		return controllerruntime.NewQueue[reconcile.Request]
	}
	return nil
}

// writer reads from the server, or from the cache that its options name, and writes by the embedded client.
type writer struct {
	client.Client
	reader client.Reader
}

func newWriter(config *rest.Config, o client.Options) (client.Client, error) {
	theirs, err := client.New(config, o)
	if err != nil {
		return nil, err
	}
	c, err := controllerruntime.NewCache(config,
		cache.Options{Scheme: o.Scheme, Mapper: o.Mapper, HTTPClient: o.HTTPClient})
	if err != nil {
		return nil, err
	}
	// The cache ends with the process: its suite has nothing that could end it.
	go func() {
		if err := c.Start(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "start the cache of the client:", err)
		}
	}()
	o.Cache = &client.CacheOptions{Reader: c, Unstructured: true}
	ours, err := controllerruntime.NewClient(config, o)
	if err != nil {
		return nil, err
	}
	return &writer{Client: ours, reader: theirs}, nil
}

func (w *writer) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return w.reader.Get(ctx, key, obj, opts...)
}

func (w *writer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.reader.List(ctx, list, opts...)
}
