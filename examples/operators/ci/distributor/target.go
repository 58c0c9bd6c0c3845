package distributor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/informer"
)

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
