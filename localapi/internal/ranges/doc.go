// Package ranges hands out cluster IPs and node ports.
package ranges
