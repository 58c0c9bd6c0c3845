package optest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// Story runs the story to its end, in virtual time, and checks that it reports the given number of things shown.
func Story(t *testing.T, tell func(ctx context.Context, out io.Writer) error, things int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := tell(t.Context(), &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "Shown in ") ||
			!strings.Contains(last, fmt.Sprintf(": %d things ", things)) {
			t.Errorf("it ends with %q", last)
		}
	})
}

// Refuses runs a command with each of the command lines, and checks that it fails with the given error.
func Refuses(t *testing.T, run func(ctx context.Context, args []string, out, stderr io.Writer) error,
	says map[string]string,
) {
	t.Helper()
	for line, want := range says {
		var stderr bytes.Buffer
		if err := run(t.Context(), strings.Fields(line), &stderr, &stderr); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
}
