// Command ci runs the operators of a CI system: see README.md.
package main

import (
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/internal/program"
)

func main() { program.Main("ci", process.Main) }
