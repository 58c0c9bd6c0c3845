package clientgo

import (
	"iter"
	"maps"

	peer "k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/workqueue/internal/order"
)

// storage adapts client-go's custom storage, which knows only keys, to an Order. It is called with the queue's lock
// held, as client-go calls it: storage has no lock of its own.
type storage[T comparable] struct {
	queue peer.Queue[T]
	// runs holds the run of each key in queue.
	runs map[T]*order.Run[T]
}

func newStorage[T comparable](queue peer.Queue[T]) *storage[T] {
	return &storage[T]{queue: queue, runs: make(map[T]*order.Run[T])}
}

func (s *storage[T]) Push(run *order.Run[T]) {
	s.runs[run.Key] = run
	s.queue.Push(run.Key)
}

func (s *storage[T]) Pop() *order.Run[T] {
	key := s.queue.Pop()
	run := s.runs[key]
	delete(s.runs, key)
	return run
}

func (s *storage[T]) Touch(run *order.Run[T]) { s.queue.Touch(run.Key) }

func (s *storage[T]) Len() int { return s.queue.Len() }

func (s *storage[T]) All() iter.Seq[*order.Run[T]] { return maps.Values(s.runs) }
