package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/internal/namespaces"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/manager"
)

// Options select what runs. The zero value runs everything.
type Options struct {
	// NoNamespaces, NoGarbageCollector and NoKubelet switch a part off.
	NoNamespaces, NoGarbageCollector, NoKubelet bool

	// GarbageCollector and Kubelet are the options of two parts. A Kubelet.Stop of zero means one second
	// here, so that clients can see a deleted pod terminate, as on a real node. A negative Stop means zero.
	GarbageCollector garbagecollector.Options
	Kubelet          kubelet.Options

	// RootCA are the certificates, in PEM, by which clients verify the server. Every namespace gets them in the
	// ConfigMap kube-root-ca.crt. Nil means that there is none, as for a server without TLS.
	RootCA []byte
}

// controllers are those of a cluster.
type controllers struct{ parts []part }

// part is one of the things that run together.
type part struct {
	name string
	run  func(context.Context) error
}

// New makes the controllers that o asks for. They use the API at config. Nothing runs before Run, which runs all until
// its context is done or one of them fails; then it stops the others. It may be called once.
func New(config *rest.Config, o Options) (manager.Runnable, error) {
	live, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	factory, err := informer.NewFactory(config, informer.FactoryOptions{})
	if err != nil {
		return nil, fmt.Errorf("new informers: %w", err)
	}
	c := &controllers{parts: []part{{"informers", factory.Run}}}
	if !o.NoGarbageCollector {
		broadcaster, err := events.New(config, events.Options{})
		if err != nil {
			return nil, err
		}
		gc, err := garbagecollector.New(config, broadcaster.Recorder(garbagecollector.Component), o.GarbageCollector)
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, part{"events", broadcaster.Run}, part{"garbage collector", gc.Run})
	}
	if !o.NoNamespaces {
		controller, err := namespaces.New(live, config, factory, o.RootCA)
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, part{namespaces.Name, controller.Run})
	}
	if !o.NoKubelet {
		o.Kubelet.Stop = cmp.Or(o.Kubelet.Stop, time.Second)
		nodes, err := kubelet.New(live, factory, o.Kubelet)
		if err != nil {
			return nil, err
		}
		c.parts = append(c.parts, part{kubelet.Name, nodes.Run})
	}
	return c, nil
}

// AddNamespaces adds the controller of namespaces to a manager. rootCA is as in [Options].
func AddNamespaces(m *manager.Manager, rootCA []byte) error {
	controller, err := namespaces.New(m.GetClient(), m.GetConfig(), m.Informers(), rootCA)
	if err != nil {
		return err
	}
	return m.Add(controller)
}

// Run implements [manager.Runnable].
func (c *controllers) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(c.parts))
	var wg sync.WaitGroup
	for i, p := range c.parts {
		wg.Go(func() {
			defer stop()
			if err := p.run(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", p.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
