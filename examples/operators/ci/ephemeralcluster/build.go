package ephemeralcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
)

const (
	// DoneSignal is the name of the Secret that tells a job that its cluster is no longer needed.
	DoneSignal = "test-done-signal"
	// Credentials is the name of the Secret that a job writes the kubeconfig to. With a claim, Hive makes two others
	// instead.
	Credentials     = testName
	hiveKubeconfig  = testName + "-hive-admin-kubeconfig"
	hivePassword    = testName + "-hive-admin-password"
	kubeconfigKey   = "kubeconfig"
	hivePasswordKey = "password"
	// passwordKey is the key in the copy.
	passwordKey = "kubeAdminPassword"
)

// namespaceOf returns the namespace in which the job runs, or "" while there is none.
func namespaceOf(ctx context.Context, build client.Client, job *api.ProwJob,
	opts ...client.ListOption,
) (string, error) {
	var list corev1.NamespaceList
	if err := build.List(ctx, &list, append(opts, client.MatchingLabels{api.JobIDLabel: job.Name})...); err != nil {
		return "", fmt.Errorf("list namespaces of build cluster %s: %w", job.Spec.Cluster, err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(n corev1.Namespace) bool { return n.DeletionTimestamp != nil })
	if len(list.Items) == 0 {
		return "", nil
	}
	return list.Items[0].Name, nil
}

// credentialsOf reads the credentials of the cluster that a job has made. missing names what is not there yet.
func credentialsOf(ctx context.Context, build client.Client, namespace string,
	claimed bool,
) (found map[string][]byte, missing string, err error) {
	if namespace == "" {
		return nil, api.NamespaceNotFoundMessage, nil
	}
	read := func(name, key string) ([]byte, error) {
		secret := &corev1.Secret{}
		// Too rare for a cache.
		err := build.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret, client.Live)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get secret %s/%s: %w", namespace, name, err)
		}
		return secret.Data[key], nil
	}
	if !claimed {
		kubeconfig, err := read(Credentials, kubeconfigKey)
		if err != nil || len(kubeconfig) == 0 {
			return nil, api.KubeconfigNotReadyMessage, err
		}
		return map[string][]byte{kubeconfigKey: kubeconfig}, "", nil
	}
	kubeconfig, err1 := read(hiveKubeconfig, kubeconfigKey)
	password, err2 := read(hivePassword, hivePasswordKey)
	if err := errors.Join(err1, err2); err != nil || len(kubeconfig) == 0 || len(password) == 0 {
		return nil, api.HiveNotReadyMessage, err
	}
	return map[string][]byte{kubeconfigKey: kubeconfig, passwordKey: password}, "", nil
}

// keepCredentials writes the credentials to a Secret that ec owns, and returns its name.
//
// Errors: when a Secret of that name has another owner.
func (p *provisioner) keepCredentials(ctx context.Context, ec *api.EphemeralCluster,
	data map[string][]byte,
) (string, error) {
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ec.Namespace, Name: ec.Name + "-credentials"},
		Data:       data,
	}
	if err := controllerutil.SetControllerReference(ec, wanted, p.hub.Scheme()); err != nil {
		return "", err
	}
	current := &corev1.Secret{}
	err := p.hub.Get(ctx, client.ObjectKeyFromObject(wanted), current, client.Live)
	switch {
	case apierrors.IsNotFound(err):
		err = p.hub.Create(ctx, wanted)
	case err == nil && !metav1.IsControlledBy(current, ec):
		err = errors.New("it exists, and is not owned by the EphemeralCluster")
	case err == nil && !equality.Semantic.DeepEqual(current.Data, data):
		current.Data = data
		err = p.hub.Update(ctx, current)
	}
	if err != nil {
		return "", fmt.Errorf("keep credentials in secret %s: %w", wanted.Name, err)
	}
	return wanted.Name, nil
}

// signal creates the Secret that the job waits for, unless it exists.
func signal(ctx context.Context, build client.Client, namespace string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: DoneSignal}}
	err := build.Get(ctx, client.ObjectKeyFromObject(secret), secret, client.Live)
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(build.Create(ctx, secret))
	}
	if err != nil {
		return fmt.Errorf("create secret %s/%s: %w", namespace, DoneSignal, err)
	}
	return nil
}

// abort ends the job, unless it has ended.
func (p *provisioner) abort(ctx context.Context, job *api.ProwJob, why string) error {
	if job.Complete() {
		return nil
	}
	base := job.DeepCopyObject().(*api.ProwJob)
	job.Finish(api.AbortedState, why)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := p.hub.Status().Patch(ctx, job, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("abort ProwJob: %w", err)
	}
	return nil
}
