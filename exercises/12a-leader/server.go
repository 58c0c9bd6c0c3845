package leader

import (
	"context"
	"errors"
	"sync"
)

// A Lease is the object by which processes agree who leads.
type Lease struct {
	// Holder is the name of the process that leads; "" if nobody does.
	Holder string
	// Version is set by the server, and grows with each write.
	Version int
}

// ErrConflict is returned by Put if somebody has written the lease since it was read.
var ErrConflict = errors.New("the lease has been written since")

// A Server keeps the lease. It is given. A context that ends is the only thing that ends a request that hangs.
type Server struct {
	mu    sync.Mutex
	lease Lease
	// hangs is closed when requests of the process get answers again; no entry: they do.
	hangs map[string]chan struct{}
}

// Get returns the lease. A lease that nobody has written yet is the zero value.
func (s *Server) Get(ctx context.Context, process string) (Lease, error) {
	if err := s.answer(ctx, process); err != nil {
		return Lease{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, nil
}

// Put writes the holder if the lease still has the version of l. It returns the lease as it is stored then.
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
