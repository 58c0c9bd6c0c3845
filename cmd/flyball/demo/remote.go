package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// stillFor is how long a rollout on a cluster with a real kubelet must stand still to count as stuck.
const stillFor = 5 * time.Second

// runRemote plays the story on a cluster that is already there, in a namespace of its own.
func runRemote(ctx context.Context, o Options, images [2]string) error {
	config := nodes.Quiet(rest.AddUserAgent(rest.CopyConfig(o.Cluster), "demo"))
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	namespace, err := openNamespace(ctx, c, o.Timeout)
	if err != nil {
		return err
	}
	err = playRemote(ctx, o, config, c, newStory(namespace, images, stillFor))
	// The namespace goes even if the user has stopped the demo.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Timeout)
	defer cancel()
	e := c.Delete(ending, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if e != nil {
		err = errors.Join(err, fmt.Errorf("delete the namespace %s: %w", namespace, e))
	}
	return err
}

// openNamespace creates a namespace and returns its name.
func openNamespace(ctx context.Context, c client.Client, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "flyball-demo-"}}
	if err := c.Create(ctx, n); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return n.Name, nil
}

// playRemote plays s while a manager without controllers fills the caches that the story reads.
func playRemote(ctx context.Context, o Options, config *rest.Config, c client.Client, s story) error {
	restricted := informer.FactoryOptions{Namespaces: []string{s.namespace}}
	m, err := manager.New(config, manager.Options{Informers: restricted})
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1) // see director
	caches, err := newView(m.Informers(), changed)
	if err != nil {
		return err
	}
	start := time.Now()
	fmt.Fprintf(o.Out, `The cluster at %s, with its own controllers and kubelets.
Behind each step: the watch events that it took.

`, config.Host)
	d := director{
		client: c, look: func() state { return caches.look(s.namespace) }, changed: changed,
		counts: func() counts { return counts{watch: watched(m), watchOnly: true} },
		screen: newScreen(o.Out), timeout: o.Timeout,
	}
	err = during(ctx, m, o.Timeout, func(ctx context.Context) error { return d.play(ctx, s.steps()) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "\ndemo: ok: %d watch events in %s\n", watched(m),
		time.Since(start).Round(10*time.Millisecond))
	return err
}

// during runs m and calls play when the caches are filled, which may take as long as timeout.
func during(ctx context.Context, m *manager.Manager, timeout time.Duration, play func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1) // receives what Run returns
	go func() {
		err := m.Run(running)
		stop(err)
		ended <- err
	}()
	filling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := m.Informers().WaitForSync(filling)
	if err == nil {
		err = play(ctx)
	} else if ctx.Err() == nil {
		err = fmt.Errorf("the caches are not filled after %s: %w", timeout, m.Ready())
	}
	end()
	return errors.Join(err, <-ended)
}
