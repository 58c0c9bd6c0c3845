package trace

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/klog/v2"
)

// longestLine bounds a line that is recorded, and longestError the text of an error, in bytes.
const (
	longestLine  = 500
	longestError = 1000
)

// Logger returns a logger that also records what the reconcile logs with it.
func (n *Run) Logger(l klog.Logger) klog.Logger {
	sink := l.GetSink()
	if sink == nil {
		return l
	}
	if d, ok := sink.(deep); ok {
		sink = d.WithCallDepth(1)
	}
	return l.WithSink(&recording{sink, n})
}

// deep is logr.CallDepthLogSink.
type deep interface{ WithCallDepth(depth int) klog.LogSink }

// recording is a logr.LogSink.
type recording struct {
	klog.LogSink
	run *Run
}

// Info implements logr.LogSink.
func (s *recording) Info(level int, msg string, pairs ...any) {
	s.line(msg, pairs)
	s.LogSink.Info(level, msg, pairs...)
}

// Error implements logr.LogSink.
func (s *recording) Error(err error, msg string, pairs ...any) {
	s.line(msg, append([]any{"err", err}, pairs...))
	s.LogSink.Error(err, msg, pairs...)
}

// WithValues implements logr.LogSink.
func (s *recording) WithValues(pairs ...any) klog.LogSink {
	return &recording{s.LogSink.WithValues(pairs...), s.run}
}

// WithName implements logr.LogSink.
func (s *recording) WithName(name string) klog.LogSink {
	return &recording{s.LogSink.WithName(name), s.run}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s *recording) WithCallDepth(depth int) klog.LogSink {
	if d, ok := s.LogSink.(deep); ok {
		return &recording{d.WithCallDepth(depth), s.run}
	}
	return s
}

func (s *recording) line(msg string, pairs []any) {
	var b strings.Builder
	b.WriteString(msg)
	for n := 0; n+1 < len(pairs) && b.Len() < longestLine; n += 2 {
		fmt.Fprintf(&b, " %v=%v", pairs[n], pairs[n+1])
	}
	text := cut(b.String(), longestLine)
	s.run.add(func(step *Step) { step.Kind, step.Text = Logged, text })
}

// cut returns at most the first n bytes of a text.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// textOf returns an error that has only the text of err, which may hold an object, or an answer of a server.
func textOf(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(cut(err.Error(), longestError))
}
