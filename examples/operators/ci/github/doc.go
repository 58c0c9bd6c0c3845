// Package github returns the commit that a branch of a repository is at. It asks GitHub, or reads a file.
package github
