// Package connections bounds the connections of a server, so that the rest of the process has file descriptors left.
//
// With a bound alone, a client that opens connections and sends nothing would keep all others out. So a new connection
// takes the place of the one that has waited longest for a request. The new one is closed only if requests are under
// way on all others.
package connections
