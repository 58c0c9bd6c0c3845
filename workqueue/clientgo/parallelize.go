package clientgo

import (
	"context"
	"sync"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// DoWorkPieceFunc does one piece of work.
type DoWorkPieceFunc func(piece int)

type parallel struct{ chunkSize int }

// Options is an option of [ParallelizeUntil].
type Options func(*parallel)

// WithChunkSize makes a worker take c pieces at a time, for many small pieces.
func WithChunkSize(c int) func(*parallel) {
	return func(o *parallel) { o.chunkSize = c }
}

// ParallelizeUntil calls doWorkPiece for the pieces 0 to pieces-1 from several workers, until all are done or ctx is
// done. A piece that panics is handled as utilruntime.HandleCrash does, and ends its worker.
func ParallelizeUntil(ctx context.Context, workers, pieces int, doWorkPiece DoWorkPieceFunc, opts ...Options) {
	if ctx == nil {
		ctx = context.Background()
	}
	var o parallel
	for _, opt := range opts {
		opt(&o)
	}
	o.chunkSize = max(o.chunkSize, 1)
	chunks := (pieces + o.chunkSize - 1) / o.chunkSize

	// next is the first chunk that no worker has taken.
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, chunks) {
		wg.Go(func() {
			defer utilruntime.HandleCrashWithContext(ctx)
			for {
				start := (int(next.Add(1)) - 1) * o.chunkSize
				for piece := start; piece < min(start+o.chunkSize, pieces); piece++ {
					if ctx.Err() != nil {
						return
					}
					doWorkPiece(piece)
				}
				if start >= pieces {
					return
				}
			}
		})
	}
	wg.Wait()
}
