package imagestreamtag

import (
	"context"
	"reflect"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

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
