package client

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DryRun returns a client of c that makes the server do everything but store: admission and validation answer as they
// would, and nothing changes. Reads are c's: they do not see what was not written.
func DryRun(c Client) Client {
	mustHave(c, "DryRun")
	return &dry{c}
}

type dry struct{ Client }

// with appends the option that makes a call dry. It goes last: an option struct before it must not undo it.
func with[O any](opts []O, dryRun O) []O { return append(slices.Clip(opts), dryRun) }

func (d *dry) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	return d.Client.Create(ctx, obj, with[CreateOption](opts, DryRunAll)...)
}

func (d *dry) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	return d.Client.Update(ctx, obj, with[UpdateOption](opts, DryRunAll)...)
}

func (d *dry) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	return d.Client.Patch(ctx, obj, patch, with[PatchOption](opts, DryRunAll)...)
}

func (d *dry) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	return d.Client.Apply(ctx, obj, with[ApplyOption](opts, DryRunAll)...)
}

func (d *dry) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	return d.Client.Delete(ctx, obj, with[DeleteOption](opts, DryRunAll)...)
}

func (d *dry) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	return d.Client.DeleteAllOf(ctx, obj, with[DeleteAllOfOption](opts, DryRunAll)...)
}

func (d *dry) Status() SubResourceClient { return d.SubResource("status") }

func (d *dry) SubResource(name string) SubResourceClient {
	return &drySub{d.Client.SubResource(name)}
}

type drySub struct{ SubResourceClient }

func (d *drySub) Create(ctx context.Context, obj, sub Object, opts ...CreateOption) error {
	return d.SubResourceClient.Create(ctx, obj, sub, with[CreateOption](opts, DryRunAll)...)
}

func (d *drySub) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	return d.SubResourceClient.Update(ctx, obj, with[UpdateOption](opts, DryRunAll)...)
}

func (d *drySub) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	return d.SubResourceClient.Patch(ctx, obj, patch, with[PatchOption](opts, DryRunAll)...)
}

func (d *drySub) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	return d.SubResourceClient.Apply(ctx, obj, with[ApplyOption](opts, DryRunAll)...)
}
