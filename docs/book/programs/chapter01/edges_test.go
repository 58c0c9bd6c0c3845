package chapter01

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
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

// hearer is a loop that is told the news.
type hearer interface {
	hear(ctx context.Context, news watch.EventType) error
}

// mishap is what happens to the news of a deletion, or to the loop.
type mishap string

const (
	none    mishap = "nothing goes wrong"
	lost    mishap = "the news of the deletion is lost"
	twice   mishap = "the news of the deletion comes twice"
	restart mishap = "the program is started again"
)

// live lets a loop make three Pods, deletes one, and returns how many there are two ticks later.
func live(t *testing.T, m mishap, start func(l loop) hearer) (count int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Rand: rand.NewPCG(1, 2)})
		pods := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Pods("default")
		l := loop{pods: pods, want: 3}
		w, err := pods.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		h := start(l)
		tell := func(news watch.EventType) {
			if err := h.hear(t.Context(), news); err != nil {
				t.Error(err)
			}
		}
		tick := func() {
			tell("")
			passOn(w, m, tell)
		}
		tick()
		deleteOne(t, pods)
		passOn(w, m, tell)
		if m == restart {
			h = start(l)
		}
		tick()
		tick()
		count = len(mustLook(t, pods))
	})
	return count
}

// passOn tells the news, until there is none.
func passOn(w watch.Interface, m mishap, tell func(news watch.EventType)) {
	for {
		synctest.Wait()
		select {
		case event := <-w.ResultChan():
			times := 1
			switch {
			case event.Type == watch.Deleted && m == lost:
				times = 0
			case event.Type == watch.Deleted && m == twice:
				times = 2
			}
			for range times {
				tell(event.Type)
			}
		default:
			return
		}
	}
}

func deleteOne(t *testing.T, pods corev1client.PodInterface) {
	t.Helper()
	if err := pods.Delete(t.Context(), mustLook(t, pods)[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestChapter01Edges compares counting with looking.
func TestChapter01Edges(t *testing.T) {
	table := "| one of three Pods is deleted, and | it counts events | it looks |\n|---|---|---|\n"
	for _, m := range []mishap{none, lost, twice, restart} {
		counts := live(t, m, func(l loop) hearer { return &counter{loop: l} })
		looks := live(t, m, func(l loop) hearer { return &looker{loop: l} })
		if looks != 3 || (counts == 3) != (m == none) {
			t.Errorf("%s: %d and %d Pods", m, counts, looks)
		}
		table += fmt.Sprintf("| %s | %d Pods | %d Pods |\n", m, counts, looks)
	}
	book.Block(t, page, table)
}
