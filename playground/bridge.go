//go:build !js

package main

// main does nothing: only a browser runs this program.
func main() {}
