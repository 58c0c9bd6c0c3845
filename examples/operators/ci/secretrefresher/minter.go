package secretrefresher

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// minter gives service accounts the pull secrets that OpenShift would give them.
type minter struct {
	client.Client
	o Options
}

// AddMinter adds the minter to a cluster's manager.
func AddMinter(c *fleet.Cluster, o Options) error {
	return watch(c, MinterName, o).Complete(&minter{c.Client, o})
}

// Reconcile gives a pull secret to a service account without one. It uses the secret of a minter that died before it
// could refer to it, or creates a new one.
func (m *minter) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	sa := &corev1.ServiceAccount{}
	if err := m.Get(ctx, q.NamespacedName, sa); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(sa.ImagePullSecrets) > 0 || sa.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	all, err := secretsIn(ctx, m, q.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	name := leftOver(sa, all, time.Now())
	if name == "" {
		secret := secretFor(sa)
		if err := m.Create(ctx, secret); err != nil {
			return ctrl.Result{}, fmt.Errorf("create pull secret: %w", err)
		}
		name = secret.Name
	}
	sa.ImagePullSecrets = append(sa.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	if !slices.ContainsFunc(sa.Secrets, func(r corev1.ObjectReference) bool { return r.Name == name }) {
		sa.Secrets = append(sa.Secrets, corev1.ObjectReference{Name: name})
	}
	if err := m.Update(ctx, sa); err != nil {
		return ctrl.Result{}, fmt.Errorf("update service account: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("Gave service account a pull secret", "secret", name)
	return ctrl.Result{}, nil
}

// leftOver returns a pull secret of the service account that is not too old, or "" if there is none.
func leftOver(sa *corev1.ServiceAccount, all map[string]*corev1.Secret, now time.Time) (name string) {
	for _, s := range all {
		mine := s.Annotations[corev1.ServiceAccountUIDKey] == string(sa.UID) && s.Type == corev1.SecretTypeDockercfg &&
			s.DeletionTimestamp == nil
		if mine && now.Before(expiry(s)) && (name == "" || s.Name < name) {
			name = s.Name
		}
	}
	return name
}

// secretFor returns a new pull secret. Plain Kubernetes has no registry to use it with.
func secretFor(sa *corev1.ServiceAccount) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sa.Namespace, GenerateName: sa.Name + "-dockercfg-",
			Annotations: map[string]string{
				corev1.ServiceAccountNameKey: sa.Name, corev1.ServiceAccountUIDKey: string(sa.UID),
			},
		},
		Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte("{}")},
	}
}
