package interceptor

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
)

// DryRun returns a client of c that makes the server do everything but store: admission and validation answer as they
// would, and nothing changes. Reads are c's: they do not see what was not written.
func DryRun(c client.Client) client.Client {
	mustHave(c, "DryRun")
	return &dry{c}
}

// dry appends the option that makes a call dry. It goes last: an option struct before it must not undo it.
type dry struct{ client.Client }

func (d *dry) Create(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return d.Client.Create(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *dry) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return d.Client.Update(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *dry) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	return d.Client.Patch(ctx, obj, patch, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *dry) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.WriteOption) error {
	return d.Client.Apply(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *dry) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return d.Client.Delete(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *dry) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return d.Client.DeleteAllOf(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *dry) Status() client.SubResourceClient { return d.SubResource("status") }

func (d *dry) SubResource(name string) client.SubResourceClient {
	return &drySub{d.Client.SubResource(name)}
}

type drySub struct{ client.SubResourceClient }

func (d *drySub) Create(ctx context.Context, obj, sub client.Object, opts ...client.WriteOption) error {
	return d.SubResourceClient.Create(ctx, obj, sub, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *drySub) Update(ctx context.Context, obj client.Object, opts ...client.WriteOption) error {
	return d.SubResourceClient.Update(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *drySub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	return d.SubResourceClient.Patch(ctx, obj, patch, append(slices.Clip(opts), client.DryRunAll)...)
}

func (d *drySub) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.WriteOption) error {
	return d.SubResourceClient.Apply(ctx, obj, append(slices.Clip(opts), client.DryRunAll)...)
}
