package main

import (
	"testing"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

func TestStory(t *testing.T) { optest.Story(t, tell, 12) }

func TestFlags(t *testing.T) {
	optest.Refuses(t, run, map[string]string{
		"nonsense":                     `unknown argument "nonsense"`,
		"--port=99999":                 "--port 99999",
		"--show-for=x":                 "invalid argument",
		"--kubeconfig=/does/not/exist": "/does/not/exist",
	})
}
