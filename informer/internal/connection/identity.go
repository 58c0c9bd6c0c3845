package connection

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/wire"
	"github.com/flyball-dev/flyball/informer/objects"
)

// absent is the identity of a server that has no kube-system namespace.
const absent = "none"

// Identity returns the UID of the namespace kube-system. The namespace cannot be deleted, so it lives as long as the
// cluster. An API server that finds none in its storage creates it.
//
// Errors: those of the request, which may be forbidden.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/controller/systemnamespaces. OpenTelemetry's k8s.cluster.uid
// identifies a cluster by the same UID.
func Identity(ctx context.Context, client rest.Interface) (string, error) {
	const partial = wire.JSONMedia + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + wire.JSONMedia
	answer := client.Get().AbsPath("/api/v1/namespaces", metav1.NamespaceSystem).SetHeader("Accept", partial).
		Throttle(nil).MaxRetries(0).Do(ctx)
	if err := answer.Error(); apierrors.IsNotFound(err) {
		return absent, nil
	} else if err != nil {
		return "", err // Raw's error does not have the server's text.
	}
	data, _ := answer.Raw()
	var namespace metav1.PartialObjectMetadata
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &namespace); err != nil {
		return "", &objects.DecodeError{What: "namespace " + metav1.NamespaceSystem, Err: err}
	}
	return string(namespace.UID), nil
}
