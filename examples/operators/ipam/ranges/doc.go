// Package ranges reckons with ranges of IP addresses. It knows nothing of clusters.
package ranges
