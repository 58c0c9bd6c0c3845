package distributor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/informer"
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

const (
	// roleName is the name of the Role and the RoleBinding that let ci-operator use the images.
	roleName = "ci-operator-image-manager"
	// configAnnotation of a stream is copied to the build clusters.
	configAnnotation = "release.openshift.io/config"
)

// Rules returns the rules of the Role in the build clusters. A user that creates the Role must have them as well.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{api.ImageGroup.Group},
		Resources: []string{"imagestreams", "imagestreams/layers", "imagestreamtags"},
		Verbs:     []string{"create", "get", "list", "patch", "update", "watch"},
	}}
}

// Caches restricts the caches to the Roles and RoleBindings that are made here.
func Caches() []client.CacheOf {
	mine := informer.InformerOptions{FieldSelector: "metadata.name=" + roleName}
	return []client.CacheOf{{Object: &rbacv1.Role{}, Informer: mine}, {Object: &rbacv1.RoleBinding{}, Informer: mine}}
}

// ensureAccess grants ci-operator access to the images of the namespace.
func ensureAccess(ctx context.Context, c client.Client, namespace string) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: roleName}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, role, func() error {
		role.Rules = Rules()
		return nil
	})
	if err != nil {
		return fmt.Errorf("ensure role in %s: %w", namespace, err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: roleName}}
	_, err = controllerutil.CreateOrUpdate(ctx, c, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: roleName}
		binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ci", Name: "ci-operator"}}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ensure role binding in %s: %w", namespace, err)
	}
	return nil
}

// ensureStream creates the tag's stream in the build cluster, or updates it. It keeps the tags of others.
func ensureStream(ctx context.Context, c client.Client, tag *imagestreamtag.Tag) error {
	stream := &api.ImageStream{}
	err := c.Get(ctx, tag.StreamKey(), stream)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("get image stream %s: %w", tag.StreamKey(), err)
	}
	before := stream.DeepCopyObject().(*api.ImageStream)
	stream.Namespace, stream.Name = tag.Namespace, tag.Ref.Stream
	stream.Spec.LookupPolicy.Local = true
	if config, found := tag.Stream.Annotations[configAnnotation]; found {
		metav1.SetMetaDataAnnotation(&stream.ObjectMeta, configAnnotation, config)
	}
	spec := stream.SpecTag(tag.Tag)
	if spec == nil {
		stream.Spec.Tags = append(stream.Spec.Tags, api.TagReference{Name: tag.Tag})
		spec = &stream.Spec.Tags[len(stream.Spec.Tags)-1]
	}
	spec.ReferencePolicy.Type = api.LocalReference
	switch {
	case missing:
		err = c.Create(ctx, stream)
	case !reflect.DeepEqual(before, stream):
		err = c.Update(ctx, stream) // fails with a conflict if another writer has changed it
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("ensure image stream %s: %w", tag.StreamKey(), err)
	}
	return nil
}

// importOf returns the import of a tag's image.
func importOf(k Key, from string) *api.ImageStreamImport {
	policy := api.LocalReference
	if strings.HasPrefix(from, "quay.io/") || strings.HasPrefix(from, "quay-proxy.ci.openshift.org/") {
		policy = api.SourceReference // the image's own registry; a copy would gain nothing
	}
	digest := sha256.Sum256([]byte(k.Ref.String()))
	return &api.ImageStreamImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace, Name: fmt.Sprintf("distributed-%x", digest[:10]),
			Labels: map[string]string{api.CreatedByLabel: Name},
		},
		Spec: api.ImageStreamImportSpec{Stream: k.Stream, Import: true, Images: []api.ImageImportSpec{{
			From: api.ObjectReference{Kind: api.DockerImage, Name: from}, To: api.LocalReferenceTo{Name: k.Tag},
			ReferencePolicy: api.ReferencePolicy{Type: policy},
			ImportPolicy:    api.ImportPolicy{ImportMode: api.PreserveOriginal},
		}}},
	}
}
