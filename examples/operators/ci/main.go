// Command ci runs the operators of a CI system: see README.md.
package main

import (
	"os"

	"github.com/flyball-dev/flyball/examples/operators/ci/process"
)

func main() { os.Exit(process.Main(os.Args[1:], os.Stderr)) }
