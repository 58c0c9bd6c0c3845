// Package tutorial is the program of docs/simtest.md: a controller with a bug, its mended form, and the test that finds
// the bug.
package tutorial
