// Package adopt is the solution of task 11c.
package adopt

import (
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Claim returns the names of the ReplicaSets that belong to the owner. It adopts those without an owner whose App is
// the owner's name, and releases those of this owner that have another App. The owner and the children come from a
// cache.
func Claim(s *Server, owner Owner, children []Child) ([]string, error) {
	var claimed []string
	var errs []error
	asked, refused := false, error(nil)
	for _, c := range children {
		matches := c.App == owner.Name
		switch {
		case c.Owner == owner.UID && matches:
			claimed = append(claimed, c.Name)
		case c.Owner == owner.UID && !owner.Deleting:
			if err := s.SetOwner(c.Name, ""); err != nil && !errors.Is(err, kube.ErrNotFound) {
				errs = append(errs, fmt.Errorf("release %s: %w", c.Name, err))
			}
		case c.Owner == "" && matches && !owner.Deleting:
			if !asked {
				asked, refused = true, mayAdopt(s, owner)
			}
			err := refused
			if err == nil {
				err = s.SetOwner(c.Name, owner.UID)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("adopt %s: %w", c.Name, err))
				continue
			}
			claimed = append(claimed, c.Name)
		}
	}
	return claimed, errors.Join(errs...)
}

// mayAdopt asks the server whether the owner still exists and is not being deleted, which a cache may not know yet.
func mayAdopt(s *Server, owner Owner) error {
	live, err := s.Get(owner.Name)
	switch {
	case err != nil:
		return fmt.Errorf("read the owner: %w", err)
	case live.UID != owner.UID:
		return fmt.Errorf("%s is another one now", owner.Name)
	case live.Deleting:
		return fmt.Errorf("%s is being deleted", owner.Name)
	}
	return nil
}
