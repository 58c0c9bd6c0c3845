package simtest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"k8s.io/client-go/util/retry"

	"github.com/flyball-dev/flyball/client"
)

// User acts on the cluster as the script says. Its requests do not fail by faults. They take effect when the scheduler
// lets them, one after the other. A step that fails ends the run and is reported.
type User struct {
	world  *world
	server *server
}

// In returns a user who acts on a cluster of [Scenario.Clusters]. Steps of the two are one sequence.
func (u *User) In(cluster string) *User {
	s := u.world.servers[cluster]
	if s == nil {
		panic("simtest: there is no " + cluster + " among Scenario.Clusters")
	}
	return &User{u.world, s}
}

// Create creates a copy of the object.
func (u *User) Create(obj client.Object) {
	u.Do("create "+describe(u, obj), func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, obj.DeepCopyObject().(client.Object))
	})
}

// Delete deletes the object of that kind, namespace and name. An object that does not exist is no failure.
func (u *User) Delete(obj client.Object) {
	u.Do("delete "+describe(u, obj), func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, bare(obj)))
	})
}

// Update changes the object of that kind, namespace and name, and stores it. It starts again after a conflict.
func Update[T client.Object](u *User, obj T, change func(T)) {
	u.Do("update "+describe(u, obj), func(ctx context.Context, c client.Client) error {
		return modify(ctx, c, obj, change, func(o T) error { return c.Update(ctx, o) })
	})
}

// UpdateStatus is [Update] for the status of an object.
func UpdateStatus[T client.Object](u *User, obj T, change func(T)) {
	u.Do("update the status of "+describe(u, obj), func(ctx context.Context, c client.Client) error {
		return modify(ctx, c, obj, change, func(o T) error { return c.Status().Update(ctx, o) })
	})
}

func modify[T client.Object](ctx context.Context, c client.Client, obj T, change func(T), store func(T) error) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := obj.DeepCopyObject().(T)
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
			return err
		}
		change(current)
		return store(current)
	})
}

// Do performs a step that the caller defines. Stories name it by what.
func (u *User) Do(what string, act func(ctx context.Context, c client.Client) error) {
	u.world.record.steps++
	step := u.world.record.steps
	if u.world.plan.skips(step) {
		return
	}
	u.park(&op{step: what, order: "user " + what})
	if err := act(u.world.ctx, u.server.them); err != nil {
		if slices.ContainsFunc(u.world.holds, func(h *hold) bool { return h.hides != nil }) {
			u.world.record.pruned = true // The program has not seen what the user relies on: it is not to blame.
		} else {
			u.world.fail(RuleScript, what, fmt.Sprintf("the user's step %d, %s: %v", step, what, err))
		}
		runtime.Goexit() // The run ends at the failure.
	}
}

// Settle waits until nothing has changed for [Scenario.Quiet]. The objects are then compared with those of the run
// without faults.
func (u *User) Settle() { u.park(&op{step: "settle", order: "user settle", settle: true}) }

// Wait lets virtual time pass.
func (u *User) Wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-u.world.ctx.Done():
		runtime.Goexit() // The run is over.
	}
}

// park waits until the scheduler lets the step happen.
func (u *User) park(o *op) {
	o.verdict = make(chan verdict, 1)
	if u.world.park(u.world.ctx, o).dropped {
		runtime.Goexit() // The run is over.
	}
}

// describe names an object as stories do.
func describe(u *User, obj client.Object) string {
	kind, err := u.server.them.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Sprintf("%T %s, whose type is not in Scenario.Scheme", obj, obj.GetName())
	}
	if obj.GetNamespace() == "" {
		return kind.Kind + " " + obj.GetName() + in(u.server.cluster)
	}
	return kind.Kind + " " + obj.GetNamespace() + "/" + obj.GetName() + in(u.server.cluster)
}

// bare returns a copy of the object without its identity and version.
func bare(obj client.Object) client.Object {
	o := obj.DeepCopyObject().(client.Object)
	o.SetUID("")
	o.SetResourceVersion("")
	return o
}
