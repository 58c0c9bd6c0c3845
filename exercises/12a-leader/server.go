package leader

import (
	"context"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// A Lease is the object by which processes agree on the leader.
type Lease struct {
	// Holder is the name of the process that leads; "" if none does.
	Holder string
	// Version is set by the server, and grows with each write.
	Version int
}

// A Server keeps the lease. You need not change it.
type Server struct {
	mu    sync.Mutex
	lease Lease
	// hangs has a channel for each process whose requests hang. It is closed when they get answers again.
	hangs map[string]chan struct{}
	// slow is how long the answer to a write takes after the lease was stored.
	slow time.Duration
}

// Get implements Leases.
func (s *Server) Get(ctx context.Context, process string) (Lease, error) {
	if err := s.answer(ctx, process); err != nil {
		return Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, nil
}

// Put implements Leases.
func (s *Server) Put(ctx context.Context, process string, l Lease) (Lease, error) {
	if err := s.answer(ctx, process); err != nil {
		return Lease{}, err
	}
	s.mu.Lock()
	if l.Version != s.lease.Version {
		s.mu.Unlock()
		return Lease{}, kube.ErrConflict
	}
	l.Version++
	s.lease = l
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	return l, nil
}

func (s *Server) answer(ctx context.Context, process string) error {
	s.mu.Lock()
	hang := s.hangs[process]
	s.mu.Unlock()
	if hang == nil {
		return ctx.Err()
	}
	select {
	case <-hang:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
