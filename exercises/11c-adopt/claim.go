// Package adopt is task 11c: a controller that takes back what it was told to leave.
//
// A user deletes a Deployment and asks to spare its ReplicaSets: the Pods must go on running. The garbage collector
// then takes the owner out of each ReplicaSet, and lets the Deployment go. Now and then all Pods vanish nevertheless.
// This was https://github.com/kubernetes/kubernetes/issues/42639.
//
// Claim is the step in which the controller of Deployments looks for its ReplicaSets. It adopts those that match and
// have no owner. The Deployment that it is given comes from a cache, and a cache is late. Run the tests, follow what
// the garbage collector does in the end, and mend Claim. Mind what a request costs: most calls have nothing to adopt.
package adopt

import (
	"errors"
	"fmt"
)

// Claim returns the names of the ReplicaSets that belong to the owner. Those whose App is the owner's name and which
// have no owner are adopted. Those that have this owner and another App are released. The owner and the children are
// from a cache.
func Claim(s *Server, owner Owner, children []Child) ([]string, error) {
	var claimed []string
	var errs []error
	for _, c := range children {
		matches := c.App == owner.Name
		switch {
		case c.Owner == owner.UID && matches:
			claimed = append(claimed, c.Name)
		case c.Owner == owner.UID && !owner.Deleting:
			if err := s.SetOwner(c.Name, ""); err != nil && !errors.Is(err, ErrNotFound) {
				errs = append(errs, fmt.Errorf("release %s: %w", c.Name, err))
			}
		case c.Owner == "" && matches && !owner.Deleting:
			if err := s.SetOwner(c.Name, owner.UID); err != nil {
				errs = append(errs, fmt.Errorf("adopt %s: %w", c.Name, err))
				continue
			}
			claimed = append(claimed, c.Name)
		}
	}
	return claimed, errors.Join(errs...)
}
