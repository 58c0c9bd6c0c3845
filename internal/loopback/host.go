package loopback

import "net"

// Host reports whether a host, as in an address to listen on, is localhost or a loopback address.
func Host(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
