package garbagecollector

import (
	"context"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/flyball-dev/flyball/informer"
)

// metadataListerWatcher lists and watches the metadata of one resource, in all namespaces.
type metadataListerWatcher struct {
	client metadata.ResourceInterface
}

var _ informer.ListerWatcher[*metav1.PartialObjectMetadata] = metadataListerWatcher{}

// List implements [informer.ListerWatcher].
func (lw metadataListerWatcher) List(ctx context.Context, o informer.ListOptions, yield func(*metav1.PartialObjectMetadata) error) (informer.ListResult, error) {
	list, err := lw.client.List(ctx, metav1.ListOptions{
		ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.Match, Limit: o.Limit, Continue: o.Continue,
	})
	if err != nil {
		return informer.ListResult{}, err
	}
	for i := range list.Items {
		if err := yield(&list.Items[i]); err != nil {
			return informer.ListResult{}, err
		}
	}
	return informer.ListResult{ResourceVersion: list.ResourceVersion, Continue: list.Continue}, nil
}

// Watch implements [informer.ListerWatcher].
func (lw metadataListerWatcher) Watch(ctx context.Context, o informer.WatchOptions) (informer.Watch[*metav1.PartialObjectMetadata], error) {
	options := metav1.ListOptions{ResourceVersion: o.ResourceVersion, AllowWatchBookmarks: true}
	if o.SendInitialEvents {
		options.SendInitialEvents = &o.SendInitialEvents
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	if o.Timeout > 0 {
		seconds := int64(max(o.Timeout, time.Second) / time.Second)
		options.TimeoutSeconds = &seconds
	}
	stream, err := lw.client.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return metadataWatch{stream}, nil
}

// metadataWatch is a stream of the metadata client, pulled.
type metadataWatch struct {
	stream watch.Interface
}

// Next implements [informer.Watch].
func (w metadataWatch) Next(ctx context.Context) (informer.Event[*metav1.PartialObjectMetadata], error) {
	var none informer.Event[*metav1.PartialObjectMetadata]
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case e, open := <-w.stream.ResultChan():
		if !open {
			return none, io.EOF
		}
		if e.Type == watch.Error {
			return none, apierrors.FromObject(e.Object)
		}
		object, ok := e.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return none, &informer.DecodeError{What: "watch event", Err: apierrors.FromObject(e.Object)}
		}
		return informer.Event[*metav1.PartialObjectMetadata]{
			Type:             informer.EventType(e.Type),
			Object:           object,
			ResourceVersion:  object.ResourceVersion,
			InitialEventsEnd: object.Annotations[metav1.InitialEventsAnnotationKey] == "true",
		}, nil
	}
}

// Close implements [informer.Watch].
func (w metadataWatch) Close() error {
	w.stream.Stop()
	return nil
}

// strip keeps of the metadata what the graph needs, in a new object: the rest is let go with the old one.
func strip(o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         o.Namespace,
		Name:              o.Name,
		UID:               o.UID,
		ResourceVersion:   o.ResourceVersion,
		DeletionTimestamp: o.DeletionTimestamp,
		Finalizers:        o.Finalizers,
		OwnerReferences:   o.OwnerReferences,
	}}, nil
}
