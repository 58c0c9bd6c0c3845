package informer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestFactoryStartAndShutdown: Start does in the background what Run does, and Shutdown waits for the last call of a
// handler.
func TestFactoryStartAndShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &apiTransport{}
		f := newTestFactory(t, a, FactoryOptions{})
		f.Shutdown() // Nothing to wait for.
		pods := must(For[*corev1.Pod](f))
		returned := false
		must(
			pods.AddHandler(
				Handler[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) { time.Sleep(time.Minute); returned = true }},
				HandlerOptions{},
			),
		)
		f.Start(quiet(t))
		f.Start(quiet(t)) // Programs call it after each informer.
		if err := f.Run(t.Context()); err == nil {
			t.Error("runs twice")
		}
		nodes := must(For[*corev1.Node](f))
		if err := f.WaitForSync(t.Context()); err != nil || !pods.HasSynced() || !nodes.HasSynced() {
			t.Errorf("not synced: %v", err)
		}
		synctest.Wait() // The call has begun.
		f.Shutdown()
		if _, err := For[*corev1.Pod](f); err != nil || !returned || a.watching != 0 {
			t.Errorf("after the end: call returned %v, %d watches, %v", returned, a.watching, err)
		}
		if _, err := pods.AddHandler(Handler[*corev1.Pod]{}, HandlerOptions{}); !errors.Is(err, ErrStopped) {
			t.Errorf("handler after the end: %v", err)
		}
		f.Shutdown()
	})
}

// slowMapper answers only when it is released.
type slowMapper struct {
	meta.RESTMapper
	answer chan struct{}
}

func (m slowMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	<-m.answer
	return &meta.RESTMapping{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Scope: meta.RESTScopeNamespace},
		nil
}

// TestFactoryStopsBesideASlowMapper: a call of the mapper cannot be cancelled, so the factory does not wait for it.
func TestFactoryStopsBesideASlowMapper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := slowMapper{answer: make(chan struct{})}
		f := newTestFactory(t, &apiTransport{}, FactoryOptions{Mapper: m})
		must(For[*corev1.Pod](f))
		stop := start(t, f.Run)
		synctest.Wait()
		began := time.Now()
		stop()
		if d := time.Since(began); d > 0 {
			t.Errorf("stopped after %v", d)
		}
		close(m.answer)
	})
}
