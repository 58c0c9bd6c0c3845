package multicluster

import "strings"

// splitPath splits a cluster's name at the slashes that separate a provider's prefixes.
func splitPath(name string) []string { return strings.Split(name, "/") }
