package stale

import "slices"

// Endpoints are the addresses behind a Service. Truncated marks that not all of them are in.
type Endpoints struct {
	Addresses []string
	Truncated bool
	// Version is the resource version. The server changes it with every write that changes anything.
	Version int
}

func (e Endpoints) same(other Endpoints) bool {
	return slices.Equal(e.Addresses, other.Addresses) && e.Truncated == other.Truncated
}

// Server keeps the Endpoints of one Service. A write that changes nothing succeeds, and the version stays as it is.
type Server struct {
	stored Endpoints
	// admit, if it is not nil, may change what is written before it is stored, as a webhook can.
	admit func(e *Endpoints)
}

// Update stores e, and returns what is stored then.
func (s *Server) Update(e Endpoints) Endpoints {
	if s.admit != nil {
		s.admit(&e)
	}
	if version := s.stored.Version; !e.same(s.stored) {
		s.stored = e
		s.stored.Version = version + 1
	}
	return s.stored
}
