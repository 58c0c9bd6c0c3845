// Package ranges allocates cluster IPs and node ports.
package ranges
