//go:generate -command controller-gen go tool -modfile=../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=.

// +groupName=examples.flyball.dev
// +versionName=v1

// Command oneshot is a command-line tool with controllers inside, meant as a template for your own. It records digests
// of folders, and reports which folders have changed.
//
//	oneshot -store DIR add NAME PATH    remember a folder, and compute its digest
//	oneshot -store DIR check            compute all digests again
//
// There is no cluster and no daemon. Every call opens the store with an embedded Kubernetes API on it, writes the
// desired state, runs the controller until there is nothing more to do, prints the result, and exits: with 1 if
// something failed. controller.go has the resource, from which "make generate" makes its definition, and the
// controller, which would run on a cluster unchanged. flyball serve --store DIR gives kubectl access to the store.
package main
