// Command crd is a controller of a resource of its own: a Website has a domain, which no other Website may have, and a page. The
// controller keeps a ConfigMap with the page and an entry in a name server outside the cluster, tells in the status how it
// goes and in events what it did, and takes the entry back, by a finalizer, before a Website goes.
//
// website.go is the type, crd.yaml its definition, controller.go what is done about it.
package main
