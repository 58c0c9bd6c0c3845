// Package redirect keeps credentials from other servers than the one that they are for.
//
// An [http.Client] follows redirects, and drops the Authorization header of a request that it sends to another host.
// But the transports of client-go add the header again, and TLS sends the client's certificate to any server that asks.
package redirect
