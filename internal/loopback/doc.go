// Package loopback keeps the web pages of others from a server on this machine.
//
// Everybody on the machine may read a loopback address, and so may any page that a browser on it shows. A page may have
// its own name resolve to 127.0.0.1 (DNS rebinding), and then counts as a page of the server. So on a loopback address
// the Host header must be an IP address or localhost, which no stranger can resolve. And what is no page itself is not
// for pages of other origins, even if they cannot read the answer: a profile costs half a minute of work.
package loopback
