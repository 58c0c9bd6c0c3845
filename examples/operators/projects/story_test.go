package main

import (
	"testing"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

func TestStory(t *testing.T) { optest.Story(t, tell, 13) }

func TestFlags(t *testing.T) {
	optest.Refuses(t, run, map[string]string{
		"nonsense":     `unknown argument "nonsense"`,
		"--port=99999": "--port 99999",
		"--poll=x":     "invalid argument",
		"--control-plane-kubeconfig=/does/not/exist":                                       "--control-plane-kubeconfig: ",
		"--kubeconfig=/does/not/exist":                                                     "/does/not/exist",
		"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --control-plane-url={{": "unclosed action",
		"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --project-selector=!!":  "LabelSelector",
	})
}
