// Package stale is task 10b: a mend that made it worse.
//
// The Endpoints controller compares what it wants with what its cache has, and writes the difference. If the cache is
// late it sees no difference where there is one, and the Endpoints stay wrong:
// https://github.com/kubernetes/kubernetes/issues/125638.
//
// So kube-controller-manager v1.31.0 remembers the version that it has replaced (pkg/controller/endpoint,
// endpoints_tracker.go). As long as the cache shows that version, the cache is out of date, and the sync ends with an
// error. The queue tries again a little later.
//
// Since then, the Endpoints of some Services are never written again. The log says, again and again, that the cache is
// out of date. It is not. It happens to Services with many Pods. It can also happen where a webhook, a program that the
// server asks before it stores an object, changes what is written:
// https://github.com/kubernetes/kubernetes/issues/127370 and https://github.com/kubernetes/kubernetes/issues/126578.
//
// Run the tests, read the code, and say in one sentence what the controller believes after an Update. Then mend it.
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
	c.Server.Update(wanted)
	c.replaced = current.Version
	return nil
}
