// Package storagetest is the tests that every [storage.Storage] has to pass. A backend's author calls [Run] from a
// test, and [RunKilled] if the stores outlive their process.
//
// # The known defects
//
// Stores under a Kubernetes API get the same things wrong again and again. Each of these is a case of [Run], named
// Defect and its number; where the fault can be in the layer above the store, the case goes through an API server on
// the backend.
//
//	 1  create and delete do not fill what they answer
//	 2  lists have placeholders instead of data
//	 3  lists of all namespaces are empty
//	 4  lists have the kind of another type
//	 5  patches answer the object as it was
//	 6  an update is a delete and a create: two events, a new identity, no conflict
//	 7  UIDs are made of name and generation: not unique
//	 8  errors are told apart by their text
//	 9  a watch ignores its revision: what happens between list and watch is lost
//	10  a watch starts a goroutine per call
//	11  a slow watcher blocks the store
//	12  watching "a" sees "ab"
//	13  events are out of order under concurrent writers
//	14  a guard is checked before the write: lost updates
//	15  the revision starts again when the store is reopened
//	16  a tenant is a path: two tenants cannot share a store
//	17  a second process damages a store, or fails for a reason that nobody understands
//	18  objects with a time to live stay, or others go (there is none here: nothing expires by itself)
//	19  a manager that records events deadlocks at its start
//	20  events are stored out of order, or dropped
package storagetest
