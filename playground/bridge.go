//go:build !js

package main

import (
	"net/http"
	"os"
)

// serve answers nothing: only a browser runs this program.
func serve(http.Handler) {}

// fail ends the program.
func fail(error) { os.Exit(1) }
