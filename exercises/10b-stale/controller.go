// Package stale is task 10b: a fix that made things worse.
//
// The Endpoints controller compares the wanted state with its cache, and writes the difference. If the cache is behind,
// it may see no difference where there is one, and the Endpoints stay wrong:
// https://github.com/kubernetes/kubernetes/issues/125638.
//
// So kube-controller-manager v1.31.0 remembers the version that it has replaced (pkg/controller/endpoint,
// endpoints_tracker.go). As long as the cache has that version, the cache is out of date. The sync then ends with an
// error, and the queue tries again a little later.
//
// Since then, the Endpoints of some Services are never written again. The log repeats that the cache is out of date,
// although it is not. It happens to Services with many Pods. It can also happen where a webhook, a program that the
// server calls before it stores an object, changes the object: https://github.com/kubernetes/kubernetes/issues/127370
// and https://github.com/kubernetes/kubernetes/issues/126578.
//
// Run the tests, read the code, and say in one sentence what the controller assumes after an Update. Then fix it.
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
	c.Server.Update(wanted)
	c.replaced = current.Version
	return nil
}
