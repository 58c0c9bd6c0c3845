package clientgo

import (
	"context"

	peer "k8s.io/client-go/util/workqueue"
)

// ParallelizeUntil is client-go's: it calls doWorkPiece for the pieces 0 to pieces-1 from several workers, until all
// are done or ctx is done.
func ParallelizeUntil(ctx context.Context, workers, pieces int, doWorkPiece peer.DoWorkPieceFunc,
	opts ...peer.Options,
) {
	peer.ParallelizeUntil(ctx, workers, pieces, doWorkPiece, opts...)
}
