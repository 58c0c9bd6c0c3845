package serve

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/manager"
)

// settleTimeout bounds [Settle]: the controllers may find a lot to do in a store.
const settleTimeout = 5 * time.Second

// Settle waits until a manager has started and has nothing left to do, so that a tap that then pauses it holds up none
// of the work of the start.
func Settle(ctx context.Context, m *manager.Manager) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	m.WaitUntilIdle(ctx)
}
