package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/flyball-dev/flyball/informer/internal/connection"
)

// TestOutageIsTwoLines: an unreachable server is one line of the log, and its return another, however many informers
// notice. A resource that fails alone has lines of its own, and does not hide an outage.
func TestOutageIsTwoLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const informers = 10
		log := ktesting.NewLogger(ktesting.NopTL{},
			ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		factory := &Factory{server: connection.NewServer(nil)}
		var servers []*server
		for i := range informers {
			s := newServer()
			s.put("a")
			servers = append(servers, s)
			inf := NewSharedInformer[object](s,
				Options[object]{Resource: fmt.Sprint("kind", i), Server: factory, WatchTimeout: 24 * time.Hour})
			defer start(t, func(ctx context.Context) error { return inf.Run(klog.NewContext(ctx, log)) })()
		}
		read := 0
		lines := func() []string {
			text := log.GetSink().(ktesting.Underlier).GetBuffer().String()
			all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if text == "" {
				all = nil
			}
			defer func() { read = len(all) }()
			return all[read:]
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			got := lines()
			if len(got) != len(want) || !slices.EqualFunc(got, want, strings.Contains) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		away := func(err error, which ...*server) {
			for _, s := range which {
				s.fail(slices.Repeat([]error{err}, 1000), slices.Repeat([]error{err}, 1000))
				s.cut(err)
			}
		}
		back := func(which ...*server) {
			for _, s := range which {
				s.recover()
			}
		}
		refused := fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED)
		time.Sleep(time.Hour)
		for _, s := range servers {
			s.cut(errors.New("unexpected EOF"))
		}
		time.Sleep(time.Minute)
		expect("every connection broke once")

		away(refused, servers...)
		time.Sleep(4 * time.Minute)
		expect("away", `API server is unavailable`)
		back(servers[1:]...)
		time.Sleep(50 * time.Second)
		expect("all but one are back")
		back(servers[0])
		time.Sleep(time.Minute)
		expect("back", `API server is available again`)

		away(refused, servers...)
		time.Sleep(19*time.Minute + 30*time.Second)
		const still = `API server is unavailable`
		expect("away for twenty minutes", still, still, still, still)
		back(servers...)
		time.Sleep(time.Minute)
		expect("back", `API server is available again`)

		away(scriptedError("503"), servers[0])
		time.Sleep(14 * time.Minute)
		const one = `API server is unavailable resource="kind0"`
		expect("one is away", one, one, one)
		for _, s := range servers[1:] {
			s.cut(io.EOF) // Their watches end in good order.
		}
		time.Sleep(time.Second)
		away(errors.New("unexpected EOF"), servers[1:]...)
		time.Sleep(2 * time.Minute)
		expect("all are away, too", `API server is unavailable resource="kind`)
		back(servers[1:]...)
		time.Sleep(time.Minute)
		expect("all but that one are back", `API server is available again`)
		time.Sleep(6 * time.Minute)
		expect("that one fails on", `Failed to list or watch resource resource="kind0"`)
		back(servers[0])
		time.Sleep(time.Minute)
		expect("that one is back", `Listing and watching resource again resource="kind0"`)

		away(refused, servers...)
		time.Sleep(time.Minute)
		expect("away", `API server is unavailable`)
		back(servers...)
		for _, s := range servers {
			s.fail(slices.Repeat([]error{scriptedError("403")}, 1000),
				slices.Repeat([]error{scriptedError("403")}, 1000))
		}
		time.Sleep(time.Minute)
		if got := lines(); len(got) != informers+1 ||
			strings.Count(strings.Join(got, "\n"), "API server is available again") != 1 {
			t.Errorf("the server is back and refuses: %d lines: %q", len(got), got)
		}
	})
}
