package controllerutil

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
)

// conflictRetries is how often RetryOnConflict tries again.
const conflictRetries = 8

// RetryOnConflict reads obj from the server, lets mutate change it and updates it, and begins again when somebody was
// faster. An error of mutate ends it. It is for what has to be written now; a reconciler returns the conflict
// instead.
//
// Errors: the last conflict, after some tries with growing pauses; all others at once.
func RetryOnConflict(ctx context.Context, c client.Client, obj client.Object, mutate func() error) error {
	if err := usable(c, obj); err != nil {
		return fmt.Errorf("retry on conflict: %w", err)
	}
	key := client.ObjectKeyFromObject(obj)
	for try := 0; ; try++ {
		if err := c.Get(ctx, key, obj, client.Live); err != nil {
			return err
		}
		if err := mutated(obj, key, mutate); err != nil {
			return err
		}
		err := c.Update(ctx, obj)
		if !apierrors.IsConflict(err) || try == conflictRetries {
			return err
		}
		pause := time.NewTimer(10 * time.Millisecond << try)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w, after %w", context.Cause(ctx), err)
		}
	}
}
