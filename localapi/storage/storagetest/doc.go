// Package storagetest is the tests that every [storage.Storage] has to pass. A backend's author calls [Run] from a test.
package storagetest
