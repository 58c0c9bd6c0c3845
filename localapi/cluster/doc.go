// Package cluster turns an embedded API server into a cluster. It adds controllers that create what every namespace has
// and empty deleted namespaces, collect garbage, and play nodes that run pods. Each can be switched off;
// each is a controller built on this module's framework.
//
//	server, err := localapi.New(localapi.Options{})
//	…
//	c, err := cluster.New(server.RESTConfig(), cluster.Options{})
//	…
//	err = c.Run(ctx) // until ctx is done
package cluster
