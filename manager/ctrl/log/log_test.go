package log_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/ctrl/log"
)

// A logger that was made of Log when the program began writes to the logger that is set later.
func TestSetLogger(t *testing.T) {
	early := log.Log.WithName("setup").WithValues("step", 1)
	var lines []string
	log.SetLogger(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	defer klog.ClearLogger()
	early.Info("starting", "version", "v1")
	log.FromContext(log.IntoContext(context.Background(), early), "pod", "a").Error(nil, "stopping")
	got := strings.Join(lines, "\n")
	for _, want := range []string{`"starting"`, `"version"="v1"`, `"step"=1`, `"stopping"`, `"pod"="a"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if len(lines) != 2 {
		t.Errorf("%d lines, want 2:\n%s", len(lines), got)
	}
}
