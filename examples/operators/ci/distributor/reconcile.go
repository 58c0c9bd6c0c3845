package distributor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/reconcile"
)

// Reconcile brings a tag to a cluster.
func (d *distributor) Reconcile(ctx context.Context, k Key) (reconcile.Result, error) {
	err := d.bring(ctx, k)
	if apierrors.IsConflict(err) { // another worker changed the same stream: not an error
		klog.FromContext(ctx).V(2).Info("Conflict, trying again", "err", err)
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{}, err
}

func (d *distributor) bring(ctx context.Context, k Key) error {
	target := d.builds[k.Cluster]
	if target == nil {
		return reconcile.Terminal(fmt.Errorf("there is no build cluster %q", k.Cluster))
	}
	tag, err := imagestreamtag.Get(ctx, d.hub, k.Ref)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	from := d.pullSpec(tag)
	if d.isForbidden(from) || d.isForbidden(tag.Current.DockerImageReference) {
		return nil
	}
	if err := ensure.Namespace(ctx, target, k.Namespace); err != nil {
		return err
	}
	if err := ensureAccess(ctx, target, k.Namespace); err != nil {
		return err
	}
	if err := ensureStream(ctx, target, tag); err != nil {
		return err
	}
	return d.ensureImage(ctx, target, k, tag, from)
}

// pullSpec returns where the image of a tag is pulled from.
func (d *distributor) pullSpec(tag *imagestreamtag.Tag) string {
	if spec := tag.Stream.SpecTag(tag.Tag); spec != nil && spec.Reference && spec.From != nil &&
		spec.From.Kind == api.DockerImage {
		return spec.From.Name
	}
	return fmt.Sprintf("%s/%s/%s@%s", d.o.RegistryDomain, tag.Namespace, tag.Ref.Stream, tag.Current.Image)
}

func (d *distributor) isForbidden(reference string) bool {
	return slices.ContainsFunc(d.o.ForbiddenRegistries, func(prefix string) bool {
		return strings.HasPrefix(reference, prefix)
	})
}

// ensureImage requests the import of a tag unless it is there, and handles the answer to an earlier request.
func (d *distributor) ensureImage(ctx context.Context, target client.Client, k Key, tag *imagestreamtag.Tag,
	from string,
) error {
	wanted := importOf(k, from)
	before := &api.ImageStreamImport{}
	err := target.Get(ctx, client.ObjectKeyFromObject(wanted), before)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get import: %w", err)
	}
	found := err == nil
	answered := found && isAnswered(before)
	same := found && before.Spec.Images[0].From == wanted.Spec.Images[0].From
	if found && !answered && same {
		d.failures.set(k, true)
		return nil // the answer is an event
	}
	d.failures.set(k, false)
	current, err := imageIn(ctx, target, k.Ref, found)
	if err != nil {
		return err
	}
	if found {
		if err := client.IgnoreNotFound(target.Delete(ctx, before, client.OnlyThis(before))); err != nil {
			return fmt.Errorf("delete answered import: %w", err)
		}
	}
	if answered && same {
		if err := d.judge(ctx, k, &before.Status.Images[0]); err != nil {
			return err
		}
		if current != tag.Current.Image {
			return fmt.Errorf("%s was imported from %s, and points at %q instead of %q", k, from, current,
				tag.Current.Image)
		}
	}
	if current == tag.Current.Image {
		return nil
	}
	if err := ensure.PullSecret(ctx, target, k.Namespace); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(target.Create(ctx, wanted)); err != nil {
		return fmt.Errorf("create import: %w", err)
	}
	d.failures.set(k, true)
	klog.FromContext(ctx).Info("Importing", "from", from)
	return nil
}

// judge counts the answer to an import, and returns its error.
func (d *distributor) judge(ctx context.Context, k Key, answer *api.ImageImportStatus) error {
	if answer.Image == nil {
		d.o.Metrics.count(k, false)
		return fmt.Errorf("imageStreamImport did not succeed: reason: %s, message: %s", answer.Status.Reason,
			answer.Status.Message)
	}
	d.o.Metrics.count(k, true)
	klog.FromContext(ctx).Info("Imported", "image", answer.Image.Name)
	return nil
}

// imageIn returns the image that the tag points at in the build cluster. If live, it asks the server.
func imageIn(ctx context.Context, target client.Client, ref imagestreamtag.Ref, live bool) (string, error) {
	stream := &api.ImageStream{}
	if err := target.Get(ctx, ref.StreamKey(), stream, client.ReadOptions{Live: live, ReadOnly: !live}); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if history := stream.Tag(ref.Tag); history != nil && len(history.Items) > 0 {
		return history.Items[0].Image, nil
	}
	return "", nil
}
