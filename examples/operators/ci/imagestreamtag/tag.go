package imagestreamtag

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// Tag is a tag and the image that it points at now.
type Tag struct {
	Ref
	Stream *api.ImageStream
	// Current is the newest entry of the tag's history.
	Current api.TagEvent
	Created metav1.Time
	// Image describes the image. It is nil if nothing is known of it.
	Image *api.Image
}

// Get looks a tag up. Its objects may be shared with the cache.
//
// Errors: NotFound, if there is no such stream or the tag has no image; those of the reader.
//
// Source: pkg/util/imagestreamtagwrapper of openshift/ci-tools.
func Get(ctx context.Context, c client.Reader, ref Ref, opts ...client.GetOption) (*Tag, error) {
	opts = append(opts, client.ReadOnly)
	stream := &api.ImageStream{}
	if err := c.Get(ctx, ref.StreamKey(), stream, opts...); err != nil {
		return nil, fmt.Errorf("get image stream of %s: %w", ref, err)
	}
	history := stream.Tag(ref.Tag)
	if history == nil || len(history.Items) == 0 {
		return nil, fmt.Errorf("get %s: %w", ref,
			apierrors.NewNotFound(api.ImageGroup.WithResource("imagestreamtags").GroupResource(), ref.Name()))
	}
	tag := &Tag{Ref: ref, Stream: stream, Current: history.Items[0], Created: history.Items[0].Created}
	image, err := getImage(ctx, c, tag.Current.Image, opts...)
	if err != nil {
		return nil, fmt.Errorf("get image of %s: %w", ref, err)
	}
	tag.Image = image
	return tag, nil
}

// getImage returns nil if nothing is known of the image.
func getImage(ctx context.Context, c client.Reader, digest string, opts ...client.GetOption) (*api.Image, error) {
	if digest == "" {
		return nil, nil
	}
	image := &api.Image{}
	err := c.Get(ctx, client.ObjectKey{Name: api.ImageName(digest)}, image, opts...)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return image, err
}

// Labels returns the labels of the tag's image. For a manifest list, they are those of its image for amd64.
func (t *Tag) Labels(ctx context.Context, c client.Reader) (map[string]string, error) {
	if t.Image == nil {
		return nil, nil
	}
	for _, m := range t.Image.Manifests {
		if m.Architecture != "amd64" {
			continue
		}
		image, err := getImage(ctx, c, m.Digest, client.ReadOnly)
		if err != nil || image == nil {
			return nil, err
		}
		return image.DockerLabels, nil
	}
	return t.Image.DockerLabels, nil
}

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

// softDelete is the annotation of a tag in a stream's spec that is kept for a while before it is removed.
const softDelete = "release.openshift.io/soft-delete"

// Handler returns a handler that queues what keys returns for every tag that an event is about. For a stream that
// appears or goes, these are all its tags. Otherwise they are the tags whose history has changed or which are marked as
// deleted.
//
// Source: pkg/util/imagestreamtagmapper of openshift/ci-tools.
func Handler[K comparable](keys func(ctx context.Context, tag Ref) []K) handler.EventHandler[*api.ImageStream, K] {
	queue := func(ctx context.Context, refs []Ref, q reconcile.Enqueuer[K]) {
		for _, ref := range refs {
			for _, key := range keys(ctx, ref) {
				q.Add(key)
			}
		}
	}
	return handler.EventHandler[*api.ImageStream, K]{
		OnAdd: func(ctx context.Context, obj *api.ImageStream, _ bool, q reconcile.Enqueuer[K]) {
			queue(ctx, All(obj), q)
		},
		OnUpdate: func(ctx context.Context, old, obj *api.ImageStream, q reconcile.Enqueuer[K]) {
			queue(ctx, changed(old, obj), q)
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[*api.ImageStream], q reconcile.Enqueuer[K]) {
			queue(ctx, All(gone.Object), q)
		},
	}
}

// All returns the tags that a stream has.
func All(s *api.ImageStream) (refs []Ref) {
	if s == nil {
		return nil
	}
	for _, t := range s.Status.Tags {
		refs = append(refs, Ref{s.Namespace, s.Name, t.Tag})
	}
	return refs
}

// changed returns the tags that an update is about, in order and without duplicates.
func changed(old, obj *api.ImageStream) (refs []Ref) {
	if obj.DeletionTimestamp != nil {
		return All(obj)
	}
	seen := map[string]bool{}
	add := func(tag string) {
		if !seen[tag] {
			seen[tag] = true
			refs = append(refs, Ref{obj.Namespace, obj.Name, tag})
		}
	}
	for i := range obj.Status.Tags {
		now := &obj.Status.Tags[i]
		if before := old.Tag(now.Tag); before == nil || !reflect.DeepEqual(before, now) {
			add(now.Tag)
		}
	}
	for _, before := range old.Status.Tags { // a tag that is gone has changed as well
		if obj.Tag(before.Tag) == nil {
			add(before.Tag)
		}
	}
	for _, t := range obj.Spec.Tags {
		if _, deleted := t.Annotations[softDelete]; deleted {
			add(t.Name)
		}
	}
	return refs
}
