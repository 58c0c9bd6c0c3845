package versions

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Reached reports whether a cache at watermark mark holds everything up to version. Versions that do not compare are
// reached only if they are equal.
func Reached(mark, version string) bool {
	if mark == "" {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(mark, version)
	if err != nil {
		return mark == version
	}
	return c >= 0
}

// Earlier reports whether a is known to come before b. That is not known of versions that do not compare, "" among
// them.
func Earlier(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

// Comparable reports whether version is a number.
func Comparable(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// Later returns the later of two versions. "", and versions that do not compare, come before all others.
func Later(a, b string) string {
	if !Comparable(b) {
		return a
	}
	if a == "" || Earlier(a, b) {
		return b
	}
	return a
}
