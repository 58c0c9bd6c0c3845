package ensure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

// The Secret that [PullSecret] copies.
const (
	PullSecretNamespace = "ci"
	PullSecretName      = "registry-pull-credentials"
)

const (
	userMonitoring    = "openshift.io/user-monitoring"
	clusterMonitoring = "openshift.io/cluster-monitoring"
)

// withoutCopies are the namespaces that get no copy of the pull secret, because they have their own.
var withoutCopies = []string{PullSecretNamespace, "test-credentials"}

// Namespace creates the namespace if it is missing, and switches monitoring off for it.
//
// Source: EnsureNamespaceNotMonitored in pkg/controller/util/namespace.go of openshift/ci-tools.
func Namespace(ctx context.Context, c client.Client, name string) error {
	ns := &corev1.Namespace{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		ns = &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{userMonitoring: "false"}},
		}
		err = client.IgnoreAlreadyExists(c.Create(ctx, ns))
	}
	if err != nil {
		return fmt.Errorf("ensure namespace %s: %w", name, err)
	}
	before := ns.DeepCopy()
	metav1.SetMetaDataLabel(&ns.ObjectMeta, userMonitoring, "false")
	delete(ns.Labels, clusterMonitoring)
	if maps.Equal(before.Labels, ns.Labels) {
		return nil
	}
	if err := c.Patch(ctx, ns, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("label namespace %s: %w", name, err)
	}
	return nil
}

// PullSecret creates or updates a copy of the registry's credentials in the namespace. It reads Secrets from the
// server: it is called too rarely to justify a cache of Secrets.
//
// Errors: when there are no credentials to copy.
//
// Source: EnsureImagePullSecret in pkg/controller/util/secret.go of openshift/ci-tools.
func PullSecret(ctx context.Context, c client.Client, namespace string) error {
	if slices.Contains(withoutCopies, namespace) {
		return nil
	}
	source := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: PullSecretNamespace, Name: PullSecretName}, source,
		client.Live); err != nil {
		return fmt.Errorf("get the pull secret to copy: %w", err)
	}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PullSecretName}, Data: source.Data, Type: source.Type,
	}
	current := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), current, client.Live)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, wanted)
	case err == nil && current.Type != wanted.Type: // the type cannot be changed
		if err = c.Delete(ctx, current, client.OnlyThis(current)); err == nil {
			err = c.Create(ctx, wanted)
		}
	case err == nil && !equality.Semantic.DeepEqual(current.Data, wanted.Data):
		current.Data = wanted.Data
		err = c.Update(ctx, current)
	}
	if err != nil {
		return fmt.Errorf("ensure pull secret in %s: %w", namespace, err)
	}
	return nil
}
