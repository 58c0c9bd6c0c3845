// Package versions compares the resource versions of one resource.
//
// Source: KEP-5504, they are comparable as integers.
//
// Reading order: versions.go, comparing two; minimums.go, the versions that a cache has to reach.
package versions
