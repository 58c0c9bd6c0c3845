// Package connection is what informers know of the server that they follow: whether it is reachable, and whether it
// is still the same.
//
// Read failure.go, what a failed request means; status.go, how one reflector stands with the server;
// requesterror.go and counters.go, what Health and Stats show of that. history.go and identity.go are what all
// informers of one server know together: when its history ends, and who it is. outage.go joins the failures of all
// of them to one line of the log.
package connection
