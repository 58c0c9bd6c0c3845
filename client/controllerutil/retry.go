package controllerutil

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
)

// conflictRetries bounds how often RetryOnConflict tries again.
const conflictRetries = 8

// RetryOnConflict reads obj from the server, calls mutate to change it, and updates it. After a conflict it begins
// again. It is for programs that must write now; a reconciler returns the conflict instead.
//
// Errors: the last conflict, after some tries with growing pauses; any other error at once, including an error of
// mutate.
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
