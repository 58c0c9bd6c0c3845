package imagestreamtag

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
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
