// Package stale is the solution of task 10b.
package stale

import "errors"

// ErrStale means that the cache does not have the last write yet.
var ErrStale = errors.New("the cache is out of date")

// most is how many addresses Endpoints may have. (In Kubernetes it is 1000.)
const most = 3

// Controller keeps the Endpoints of one Service.
type Controller struct {
	Server *Server
	// Cached returns the Endpoints in the cache, which may be behind.
	Cached func() Endpoints

	// replaced is the version that the last write has replaced. A cache that has this version is out of date.
	replaced int
}

// Sync writes the addresses of Pods into the Endpoints. It returns ErrStale if it has to be called again later.
func (c *Controller) Sync(addresses []string) error {
	current := c.Cached()
	if current.Version == c.replaced {
		return ErrStale
	}
	wanted := Endpoints{Addresses: addresses}
	if len(addresses) > most {
		wanted = Endpoints{Addresses: addresses[:most], Truncated: true}
	}
	if wanted.same(current) && !wanted.Truncated { // The server checks truncated Endpoints.
		return nil
	}
	if stored := c.Server.Update(wanted); stored.Version != current.Version {
		c.replaced = current.Version
	}
	return nil
}
