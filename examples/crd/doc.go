//go:generate -command controller-gen go tool -modfile=../../tools/go.mod controller-gen
//go:generate controller-gen crd object rbac:roleName=website-controller paths=. output:dir=.

// +groupName=examples.flyball.dev
// +versionName=v1

// Command crd is a controller of a custom resource. A Website has a page and a domain, which no other Website may have.
// The controller maintains a ConfigMap with the page and an entry in a name server outside the cluster. It reports its
// progress in the status and its actions as events. A finalizer makes sure that it removes the entry before a Website
// is gone.
//
// website.go has the type, with markers from which "make generate" makes its definition
// (examples.flyball.dev_websites.yaml) and zz_generated.deepcopy.go. controller.go has the controller, with
// markers from which its role is made (role.yaml). The tests fail if the role allows less or more than the controller
// asks for.
package main
