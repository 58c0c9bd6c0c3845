// Package ours is what the tests of Kubernetes run in place of the controllers that they were written for: the edits of
// package integration call it.
package ours

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/manager"
)

// Options are those of all controllers.
type Options = controllers.Options

// Run runs one of Flyball's controllers on a manager, against the server of a client, until ctx is done. It panics if
// the controller cannot be made, or ends before: then no result of the test would mean anything.
func Run(ctx context.Context, c kubernetes.Interface, name string, o Options) {
	run(ctx, c, name, o, func(manager.Runnable) {})
}

func run(ctx context.Context, c kubernetes.Interface, name string, o Options, made func(manager.Runnable)) {
	m, err := manager.New(configOf(c), manager.Options{})
	if err != nil {
		panic(fmt.Errorf("make the manager of %s: %w", name, err))
	}
	r, err := controllers.New(m, name, o)
	if err == nil {
		err = m.Add(r)
	}
	if err != nil {
		panic(fmt.Errorf("make %s: %w", name, err))
	}
	made(r)
	if err := m.Run(ctx); err != nil && ctx.Err() == nil {
		panic(fmt.Errorf("run %s: %w", name, err))
	}
}

// configOf returns a config for the server of a client, which the constructors of the real controllers are given. Its
// transport has the client's certificates and credentials.
func configOf(c kubernetes.Interface) *rest.Config {
	r := c.CoreV1().RESTClient().(*rest.RESTClient)
	return &rest.Config{
		Host: r.Get().URL().Scheme + "://" + r.Get().URL().Host, Transport: r.Client.Transport, QPS: 1000, Burst: 10000,
	}
}

// Collector is a garbage collector that tests look into. The zero value has not started.
type Collector struct {
	running atomic.Pointer[collector]
}

// collector has those methods of Flyball's garbage collector that its tests need, too. Has is in a file that the edits
// add to its package.
type collector interface {
	Has(uid types.UID) bool
	Health() error
}

// Run is [Run] for the garbage collector.
func (c *Collector) Run(ctx context.Context, client kubernetes.Interface, name string, o Options) {
	run(ctx, client, name, o, func(r manager.Runnable) {
		gc := r.(collector)
		c.running.Store(&gc)
	})
}

// Has reports whether the collector knows an object.
func (c *Collector) Has(uid types.UID) bool {
	gc := c.running.Load()
	return gc != nil && (*gc).Has(uid)
}

// Synced reports whether the collector knows all objects.
func (c *Collector) Synced() bool {
	gc := c.running.Load()
	return gc != nil && (*gc).Health() == nil
}
