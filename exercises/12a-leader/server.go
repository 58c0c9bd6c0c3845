package leader

import (
	"context"
	"errors"
	"sync"
)

// A Lease is the object by which processes agree on the leader.
type Lease struct {
	// Holder is the name of the process that leads; "" if none does.
	Holder string
	// Version is set by the server, and grows with each write.
	Version int
}

// ErrConflict is the error of Put if the lease was written since it was read.
var ErrConflict = errors.New("the lease has been written since")

// A Server keeps the lease. You need not change it. Only the end of its context ends a request that hangs.
type Server struct {
	mu    sync.Mutex
	lease Lease
	// hangs has a channel for each process whose requests hang. It is closed when they get answers again.
	hangs map[string]chan struct{}
}

// Get returns the lease. A lease that was never written is the zero value.
func (s *Server) Get(ctx context.Context, process string) (Lease, error) {
	if err := s.answer(ctx, process); err != nil {
		return Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, nil
}

// Put writes the holder if the lease still has the version of l. It returns the stored lease.
//
// Errors: ErrConflict; that of ctx if the server does not answer.
func (s *Server) Put(ctx context.Context, process string, l Lease) (Lease, error) {
	if err := s.answer(ctx, process); err != nil {
		return Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Version != s.lease.Version {
		return Lease{}, ErrConflict
	}
	l.Version++
	s.lease = l
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
