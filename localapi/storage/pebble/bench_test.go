package pebble_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	engine "github.com/cockroachdb/pebble/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// BenchmarkPut writes objects of 1 KiB, each flushed to the disk, by one writer and by many: to a store, and to the
// engine below it without guards, revisions or history. Run it with TMPDIR on the disk in question.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("store/writers=%d", writers), func(b *testing.B) {
			s, err := pebble.Open(b.Context(), b.TempDir(), pebble.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			benchmark(b, writers, func(key string, value []byte) error {
				_, err := s.Put(b.Context(), storage.Write{Key: key, Value: value})
				return err
			})
		})
		b.Run(fmt.Sprintf("engine/writers=%d", writers), func(b *testing.B) {
			db, err := engine.Open(b.TempDir(), &engine.Options{Logger: quiet{}})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			benchmark(b, writers,
				func(key string, value []byte) error { return db.Set([]byte(key), value, engine.Sync) })
		})
	}
}

func benchmark(b *testing.B, writers int, put func(key string, value []byte) error) {
	value := make([]byte, 1024)
	for i := range value {
		value[i] = byte(i * 7919 >> 3)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := put(fmt.Sprintf("t/core/pods/default/%08d", i), value); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// BenchmarkOpen opens a store of 10,000 objects of 2 KiB with 20,000 writes of history, and lists them.
func BenchmarkOpen(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "store")
	s, err := pebble.Open(b.Context(), dir, pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := i; n < 10_000; n += 64 {
				w := storage.Write{Key: fmt.Sprintf("t/core/pods/default/%08d", n), Value: make([]byte, 2048)}
				for range 2 {
					var err error
					if w.Expected, err = s.Put(b.Context(), w); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		s, err := pebble.Open(b.Context(), dir, pebble.Options{})
		if err != nil {
			b.Fatal(err)
		}
		page, err := s.List(b.Context(), "", storage.ListOptions{})
		if err != nil || len(page.Records) != 10_000 {
			b.Fatal(len(page.Records), err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
