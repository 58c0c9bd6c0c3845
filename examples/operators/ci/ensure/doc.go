// Package ensure creates or updates the objects that several of the CI operators need. It writes nothing if an object
// is already as needed.
package ensure
