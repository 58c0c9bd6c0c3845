// Package versions compares resource versions.
//
// Reading order: versions.go, two of them; minimums.go, those that a cache has to reach.
package versions
