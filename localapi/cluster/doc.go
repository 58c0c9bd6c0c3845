// Package cluster runs beside an embedded API server what makes a cluster of it: namespaces that get service accounts and can be
// deleted, garbage collection, and nodes that run pods. Each can be switched off; each is a controller of this module's framework.
//
//	server, err := localapi.New(localapi.Options{})
//	…
//	c, err := cluster.New(server.RESTConfig(), cluster.Options{})
//	…
//	err = c.Run(ctx) // until ctx is done
package cluster
