// Package chapter03 has the programs of the chapter about the reflector: two ways to follow a server that are wrong,
// and a server that fails in every way.
package chapter03

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// watchTime is how long the server is asked to keep a watch.
const watchTime = 5 * time.Minute

// A mirror is a copy of the server's objects.
type mirror interface {
	// replace is told of a list, apply of an event.
	replace(pods []*corev1.Pod, version string)
	apply(event listwatch.Event[*corev1.Pod])
}

// A naive follower lists, watches, and begins anew whatever happens.
type naive struct {
	server listwatch.ListerWatcher[*corev1.Pod]
	mirror mirror
	// pause is how long it waits after a failure.
	pause time.Duration
}

// run follows the server until ctx is done.
func (n *naive) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.listAndWatch(ctx); err != nil {
			sleep(ctx, n.pause)
		}
	}
}

func (n *naive) listAndWatch(ctx context.Context) error {
	version, err := n.list(ctx)
	if err != nil {
		return err
	}
	return n.watch(ctx, version)
}

func (n *naive) list(ctx context.Context) (version string, err error) {
	var pods []*corev1.Pod
	list, err := n.server.List(ctx, listwatch.ListOptions{}, func(pod *corev1.Pod) error {
		pods = append(pods, pod)
		return nil
	})
	if err == nil {
		n.mirror.replace(pods, list.ResourceVersion)
	}
	return list.ResourceVersion, err
}

// watch follows the changes after a version. It returns nil if the server ended the watch in good order.
func (n *naive) watch(ctx context.Context, version string) error {
	w, err := n.server.Watch(ctx, listwatch.WatchOptions{ResourceVersion: version, Timeout: watchTime})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		event, err := w.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		n.mirror.apply(event)
	}
}

// A resuming follower lists once. After that it watches from where it was.
type resuming struct {
	naive
	position string
}

// run follows the server until ctx is done.
func (r *resuming) run(ctx context.Context) {
	version, err := r.list(ctx)
	for r.position = version; ctx.Err() == nil; {
		if err != nil {
			sleep(ctx, r.pause)
		}
		err = r.watch(ctx, r.position)
	}
}

// sleep waits, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
