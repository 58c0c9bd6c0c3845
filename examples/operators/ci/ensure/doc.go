// Package ensure brings single objects into the state that several of the CI operators need: it writes nothing when they are.
package ensure
