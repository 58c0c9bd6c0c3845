// Package discovered lists and watches the objects of a kind whose resource is looked up first.
//
// Read resources.go, the resources of kinds; listerwatcher.go, the ListerWatcher of a kind.
package discovered
