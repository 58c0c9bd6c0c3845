package informer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// list is stateList.
func (r *Reflector[T]) list(ctx context.Context) state {
	r.link.lists.Add(1)
	if r.complete {
		r.link.relists.Add(1)
		klog.FromContext(ctx).V(2).Info("Listing again", "resourceVersion", r.position)
	}
	objs, version, asked, err := r.pages(ctx)
	if err != nil {
		return r.listFailed(ctx, asked, err)
	}
	r.link.heard()
	back := older(version, r.position)
	if back && !r.newest {
		// A replica that lags answered although it was told not to.
		r.newest = true
		return stateList
	}
	if back {
		r.link.rebuilds.Add(1)
		klog.FromContext(ctx).Info("The server's history went back: rebuilding the cache", "position", r.position, "resourceVersion", version)
	}
	replace := Delta[T]{Type: DeltaReplace, Objects: objs, ResourceVersion: version, Scope: r.o.Scope, Rebuild: back}
	if r.fifo.Push(ctx, replace) != nil {
		return stateList
	}
	r.position, r.complete, r.newest, r.unpaged, r.progress = version, true, false, false, false
	r.link.listed(ctx)
	return stateWatch
}

// pages fetches all pages of one list. asked is the request that failed.
//
// Source: the versions asked for are those of client-go v0.37.2: any age at first, later nothing older than what was seen, the
// newest after a refusal. A list bounded by a version is not paged, so that the server can answer it from its cache.
func (r *Reflector[T]) pages(ctx context.Context) (objs []T, version string, asked ListOptions, err error) {
	switch {
	case r.newest:
	case r.position == "":
		asked.ResourceVersion = "0"
	default:
		asked.ResourceVersion, asked.Match = r.position, metav1.ResourceVersionMatchNotOlderThan
	}
	if asked.Match == "" && !r.unpaged && r.o.PageSize > 0 {
		asked.Limit = r.o.PageSize
	}
	keep := func(obj T) error {
		obj, err := r.transform(obj)
		if err != nil {
			return err
		}
		objs = append(objs, obj)
		return nil
	}
	for {
		page, err := r.lw.List(ctx, asked, keep)
		if err != nil {
			return nil, "", asked, err
		}
		version = page.ResourceVersion
		if page.Continue == "" {
			return objs, version, asked, nil
		}
		if page.Continue == asked.Continue {
			return nil, "", asked, &DecodeError{What: "list", Err: fmt.Errorf("the server repeats the continue token")}
		}
		asked = ListOptions{Limit: asked.Limit, Continue: page.Continue}
	}
}

// listFailed decides what comes after a list that failed.
func (r *Reflector[T]) listFailed(ctx context.Context, asked ListOptions, err error) state {
	if ctx.Err() != nil {
		return stateList
	}
	f := classify(ctx, err)
	switch {
	case f == failExpired && asked.Continue != "" && !r.unpaged:
		// Paging took longer than the server keeps history. All at once does not need any.
		r.newest, r.unpaged = true, true
		return stateList
	case (f == failExpired || f == failAhead) && asked.ResourceVersion != "":
		r.newest = true
		return stateList
	}
	r.link.failed(ctx, "list", err)
	return r.pauseThen(retryAfter(err), stateList)
}
