package stale

import "slices"

// Endpoints has the addresses of the Pods of a Service. Truncated means that some addresses were left out.
type Endpoints struct {
	Addresses []string
	Truncated bool
	// Version is the resource version. Every write that changes something changes it.
	Version int
}

func (e Endpoints) same(other Endpoints) bool {
	return slices.Equal(e.Addresses, other.Addresses) && e.Truncated == other.Truncated
}

// Server keeps the Endpoints of one Service. A write that changes nothing succeeds, and does not change the version.
type Server struct {
	stored Endpoints
	// admit, if it is not nil, may change the Endpoints before they are stored, as a webhook can.
	admit func(e *Endpoints)
}

// Update stores e, and returns the Endpoints as they are now stored.
func (s *Server) Update(e Endpoints) Endpoints {
	if s.admit != nil {
		s.admit(&e)
	}
	if version := s.stored.Version; !e.same(s.stored) {
		s.stored = e
		s.stored.Version = version + 3 // Writes of other objects have taken the versions between.
	}
	return s.stored
}
