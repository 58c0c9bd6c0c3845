package client

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// reached says whether a cache at watermark mark holds everything up to version. Versions that cannot be compared are reached
// only exactly.
//
// Source: KEP-5504, resource versions of one resource are comparable as integers.
func reached(mark, version string) bool {
	if mark == "" {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(mark, version)
	if err != nil {
		return mark == version
	}
	return c >= 0
}

// earlier says whether a is known to come before b.
func earlier(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// comparable says whether version is a number.
func comparableVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// later returns the later of two versions; "", and what cannot be compared, is before all.
func later(a, b string) string {
	if !comparableVersion(b) {
		return a
	}
	if a == "" || earlier(a, b) {
		return b
	}
	return a
}
