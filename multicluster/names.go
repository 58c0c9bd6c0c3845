package multicluster

import "strings"

// splitPath cuts a cluster's name into the parts that prefixes were put before it by.
func splitPath(name string) []string { return strings.Split(name, "/") }
