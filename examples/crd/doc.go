// Command crd is a controller of a custom resource. A Website has a page and a domain, which no other Website may have.
// The controller maintains a ConfigMap with the page and an entry in a name server outside the cluster. It reports its
// progress in the status and its actions as events. A finalizer makes sure that it removes the entry before a Website
// is gone.
//
// website.go has the type, crd.yaml its definition, and controller.go the controller.
package main
