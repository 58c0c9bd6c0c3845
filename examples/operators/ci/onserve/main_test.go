package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

func TestMain(m *testing.M) { optest.FlyballMain(m) }

// TestPlay: the operators do on clusters in processes of their own what they do in the story, and all of it ends.
func TestPlay(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), optest.Flyball(t), true, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if text := out.String(); !strings.Contains(text, "export KUBECONFIG=") || !strings.Contains(text, "is rolled") {
		t.Errorf("it printed\n%s", text)
	}
}

// TestWithoutFlyball: a program that is not there is named.
func TestWithoutFlyball(t *testing.T) {
	if err := run(t.Context(), "/does/not/exist", false, os.Stderr); err == nil ||
		!strings.Contains(err.Error(), "start /does/not/exist serve: ") {
		t.Errorf("the error is %v", err)
	}
}
