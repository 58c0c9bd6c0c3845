// Package connection tracks what informers know about the server that they follow: whether it is reachable, and whether
// it is still the same server.
//
// Read failure.go, which classifies failed requests; status.go and counters.go, the state of one reflector's
// connection, which Health and Stats report; history.go and identity.go, what all informers of a server share: when its
// history ends, and its identity; outage.go, which merges the failures of all informers into one line of the log.
package connection
