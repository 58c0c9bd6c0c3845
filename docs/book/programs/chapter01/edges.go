package chapter01

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A counter is edge-triggered: it adds up the news, and acts on the sum.
type counter struct {
	loop
	count int
}

// hear is called for each event, and with an empty one every 30 seconds.
func (c *counter) hear(ctx context.Context, news watch.EventType) error {
	switch news {
	case watch.Added:
		c.count++
	case watch.Deleted:
		c.count--
	}
	if c.count < c.want {
		_, err := c.pods.Create(ctx, c.next(nil), metav1.CreateOptions{})
		return err
	}
	return nil
}

// A looker is level-triggered: whatever the news is, it looks and acts on what it sees.
type looker struct{ loop }

func (l *looker) hear(ctx context.Context, _ watch.EventType) error {
	have, err := l.look(ctx)
	if err != nil {
		return err
	}
	_, err = l.act(ctx, have)
	return err
}
