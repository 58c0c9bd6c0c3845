package imagestreamtag

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/reconcile"
)

// Ref names a tag of an ImageStream.
type Ref struct{ Namespace, Stream, Tag string }

// String returns "namespace/stream:tag".
func (r Ref) String() string { return r.Namespace + "/" + r.Name() }

// Name returns "stream:tag".
func (r Ref) Name() string { return r.Stream + ":" + r.Tag }

// StreamKey returns the name of the ImageStream.
func (r Ref) StreamKey() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Stream}
}

// Request returns the request that names the tag.
func (r Ref) Request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name()}}
}

// New parses a tag's name "stream:tag".
func New(namespace, name string) (Ref, error) {
	stream, tag, ok := strings.Cut(name, ":")
	if !ok || namespace == "" || stream == "" || tag == "" || strings.ContainsAny(tag, ":/") ||
		strings.Contains(namespace+stream, "/") {
		return Ref{}, fmt.Errorf("%q in namespace %q is no image stream tag: want stream:tag", name, namespace)
	}
	return Ref{namespace, stream, tag}, nil
}

// Parse is the inverse of [Ref.String].
func Parse(text string) (Ref, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		return Ref{}, fmt.Errorf("%q is no image stream tag: want namespace/stream:tag", text)
	}
	return New(namespace, name)
}
