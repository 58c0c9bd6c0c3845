// Command oneshot is a command-line tool with controllers inside, to start one's own from: it keeps the digests of folders, and
// tells which have changed.
//
//	oneshot -store DIR add NAME PATH    remember a folder, and take its digest
//	oneshot -store DIR check            take all digests again
//
// There is no cluster and no daemon. Every call opens the store, an embedded Kubernetes API on it, writes what is wanted, runs the
// controller until there is nothing more to do, prints what became of it, and exits: 1 if something failed. The resource is
// defined in crd.yaml; the controller (controller.go) would run on a cluster as it is. flyball serve --store DIR opens the store
// to kubectl.
package main
