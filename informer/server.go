package informer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/internal/wire"
)

// History numbers the histories of the server, as far as the factory's informers have noticed: it rises when the history went
// back or another server took the place of the last one. An informer whose own number is lower still holds what was before.
//
// Anything written while the number was lower is of an earlier history, and so are the resource versions that were answered.
func (f *Factory) History() int64 { return f.history.current() }

// absent is the identity of a server without a kube-system namespace.
const absent = "none"

// identity returns the UID of the namespace kube-system, which exists for as long as the cluster does: nobody can delete it. Every
// API server makes it when it finds none in its storage.
//
// Errors: as the server's: reading it may be forbidden.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controlplane/controller/systemnamespaces; the UID is what is used for a cluster's identity,
// as by OpenTelemetry's k8s.cluster.uid.
func (f *Factory) identity(ctx context.Context) (string, error) {
	const partial = wire.JSONMedia + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + wire.JSONMedia
	data, err := f.client.Get().AbsPath("/api/v1/namespaces", metav1.NamespaceSystem).SetHeader("Accept", partial).
		Throttle(nil).MaxRetries(0).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return absent, nil
	}
	if err != nil {
		return "", err
	}
	var namespace metav1.PartialObjectMetadata
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &namespace); err != nil {
		return "", &objects.DecodeError{What: "namespace " + metav1.NamespaceSystem, Err: err}
	}
	return string(namespace.UID), nil
}
