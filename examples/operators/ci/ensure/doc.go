// Package ensure brings single objects into the state that several of the CI operators need. It writes nothing if they
// are in that state.
package ensure
