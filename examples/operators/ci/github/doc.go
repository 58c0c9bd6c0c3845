// Package github asks what commit a branch of a repository is at: GitHub itself, or a file that says so.
package github
