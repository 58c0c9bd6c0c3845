// Package ranges computes with ranges of IP addresses. It knows nothing of clusters.
package ranges
