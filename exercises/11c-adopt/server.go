package adopt

import (
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Owner is a Deployment. Deleting means that a user has deleted it, but it still exists.
type Owner struct {
	Name, UID string
	Deleting  bool
}

// Child is a ReplicaSet. Owner is the UID of the Deployment that it belongs to, or "" if it has no owner.
type Child struct {
	Name, App, Owner string
}

// Server has one Deployment and some ReplicaSets.
type Server struct {
	owner    *Owner
	children []*Child
	// Requests has the requests of the controller.
	Requests []string
}

// Get reads a Deployment from the server, not from a cache.
func (s *Server) Get(name string) (Owner, error) {
	s.Requests = append(s.Requests, "get "+name)
	if s.owner == nil || s.owner.Name != name {
		return Owner{}, kube.ErrNotFound
	}
	return *s.owner, nil
}

// SetOwner changes the owner of a ReplicaSet.
func (s *Server) SetOwner(child, uid string) error {
	s.Requests = append(s.Requests, fmt.Sprintf("set owner of %s to %q", child, uid))
	for _, c := range s.children {
		if c.Name == child {
			c.Owner = uid
			return nil
		}
	}
	return kube.ErrNotFound
}

// collect is the garbage collector: it deletes the ReplicaSets whose owner does not exist.
func (s *Server) collect() {
	s.children = slices.DeleteFunc(s.children, func(c *Child) bool {
		return c.Owner != "" && (s.owner == nil || s.owner.UID != c.Owner)
	})
}
