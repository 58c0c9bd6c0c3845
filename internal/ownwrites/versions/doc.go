// Package versions compares resource versions.
//
// Reading order: versions.go, comparing two; minimums.go, the versions that a cache has to reach.
package versions
