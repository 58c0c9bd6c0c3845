// Package stale is the solution of task 10b.
package stale

import "errors"

// ErrStale says that the cache does not show the last write yet.
var ErrStale = errors.New("the cache is out of date")

// most is how many addresses Endpoints may hold. (Really it is 1000.)
const most = 3

// Controller keeps the Endpoints of one Service.
type Controller struct {
	Server *Server
	// Cached returns what the cache has of the Endpoints. It may be late.
	Cached func() Endpoints

	// replaced is the version that the last write has replaced. If the cache has it, the cache is out of date.
	replaced int
}

// Sync makes the Endpoints list the addresses of Pods. It returns ErrStale if it has to be called again later.
func (c *Controller) Sync(addresses []string) error {
	current := c.Cached()
	if current.Version == c.replaced {
		return ErrStale
	}
	wanted := Endpoints{Addresses: addresses}
	if len(addresses) > most {
		wanted = Endpoints{Addresses: addresses[:most], Truncated: true}
	}
	if wanted.same(current) && !wanted.Truncated { // Truncated Endpoints are checked by the server.
		return nil
	}
	if stored := c.Server.Update(wanted); stored.Version != current.Version {
		c.replaced = current.Version
	}
	return nil
}
