// Package connections bounds the connections of a server, so that the rest of the process has file descriptors left.
//
// A bound alone would let anybody who opens connections, and sends nothing, keep all others out. So a new connection
// takes the place of the one that has waited for a request for longest. Only if requests are under way on all of them,
// the new one is closed.
package connections
