package claim

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// Claimer adopts and releases objects for one owner. Its zero value is of no use: Owner, Kind, Selector and Patch
// are required.
//
// A Claimer holds no state of its own, so one may be built per sync and thrown away.
//
// Concurrency: Claim may be called by several goroutines if CanAdopt and Patch may.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_ref_manager.go
type Claimer[T metav1.Object] struct {
	// Owner is the object that wants to own. Only its name, namespace, UID and deletion timestamp are read.
	Owner metav1.Object

	// Kind is the owner's kind, as written into the owner reference.
	Kind schema.GroupVersionKind

	// Selector says which objects belong to the owner. The caller sees to it that it does not match everything by
	// accident; [labels.Nothing] is the selector of an owner that has none.
	Selector labels.Selector

	// CanAdopt is asked once before the first adoption of a Claim, and never when there is nothing to adopt, so it
	// may be expensive: usually it is [LiveCheck]. An error refuses every adoption of that Claim. Nil allows all.
	CanAdopt func(ctx context.Context) error

	// Patch sends a strategic merge patch to obj. The patch carries obj's UID as a precondition.
	Patch func(ctx context.Context, obj T, patch []byte) error
}

// verdict is what is to become of one object.
type verdict int

const (
	ignore  verdict = iota // not ours, and not to become ours
	keep                   // ours already, and rightly so
	adopt                  // nobody's, and it matches
	release                // ours, but it does not match any more
)

// Claim returns those of objs that the owner holds once it is done, in their order. It adopts orphans that the
// selector matches and releases owned objects that it does not match. An owner that is being deleted keeps what it
// has and touches nothing else: its objects are the garbage collector's business by then.
//
// Errors: adoptions and releases that failed, joined. The objects claimed so far are returned beside the error; a
// caller that needs the whole truth tries again later. An object that vanished meanwhile is no error.
func (c *Claimer[T]) Claim(ctx context.Context, objs []T) ([]T, error) {
	var claimed []T
	var errs []error
	mayAdopt := once(ctx, c.CanAdopt)
	for _, obj := range objs {
		switch c.judge(obj) {
		case keep:
			claimed = append(claimed, obj)
		case adopt:
			ok, err := c.adopt(ctx, obj, mayAdopt)
			if err != nil {
				errs = append(errs, err)
			}
			if ok {
				claimed = append(claimed, obj)
			}
		case release:
			if err := c.release(ctx, obj); err != nil {
				errs = append(errs, err)
			}
		case ignore:
		}
	}
	return claimed, errors.Join(errs...)
}

// judge decides about one object from what was observed, without asking anybody.
func (c *Claimer[T]) judge(obj T) verdict {
	matches := c.Selector.Matches(labels.Set(obj.GetLabels()))
	ownerGoes := c.Owner.GetDeletionTimestamp() != nil
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		switch {
		case ref.UID != c.Owner.GetUID():
			return ignore
		case matches:
			return keep
		case ownerGoes:
			return ignore
		default:
			return release
		}
	}
	if ownerGoes || !matches || obj.GetDeletionTimestamp() != nil {
		return ignore
	}
	if ns := c.Owner.GetNamespace(); ns != "" && ns != obj.GetNamespace() {
		return ignore
	}
	return adopt
}

// adopt writes the owner's reference onto obj. It reports false without an error when obj has gone.
func (c *Claimer[T]) adopt(ctx context.Context, obj T, mayAdopt func() error) (bool, error) {
	// The owner not being found is an error here, whatever its kind; only a missing obj is none.
	if err := mayAdopt(); err != nil {
		return false, fmt.Errorf("adopt %s (uid %s): %w", klog.KObj(obj), obj.GetUID(), err)
	}
	patch, err := adoptPatch(c.Owner, c.Kind, obj.GetUID())
	if err != nil {
		return false, err
	}
	klog.FromContext(ctx).V(2).Info("Adopting object", "object", klog.KObj(obj), "owner", klog.KObj(c.Owner),
		"ownerKind", c.Kind.Kind)
	if err := c.Patch(ctx, obj, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("adopt %s (uid %s): %w", klog.KObj(obj), obj.GetUID(), err)
	}
	return true, nil
}

// release takes the owner's reference off obj. An answer of "not found" or "invalid" means that there is nothing to
// release any more: the object has gone, or was replaced by another of its name, or has no owner reference left.
func (c *Claimer[T]) release(ctx context.Context, obj T) error {
	patch, err := releasePatch(c.Owner.GetUID(), obj.GetUID())
	if err != nil {
		return err
	}
	klog.FromContext(ctx).V(2).Info("Releasing object", "object", klog.KObj(obj), "owner", klog.KObj(c.Owner),
		"ownerKind", c.Kind.Kind)
	err = c.Patch(ctx, obj, patch)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("release %s (uid %s): %w", klog.KObj(obj), obj.GetUID(), err)
}

// once returns a function that asks check the first time and repeats its answer from then on.
func once(ctx context.Context, check func(context.Context) error) func() error {
	asked := check == nil
	var answer error
	return func() error {
		if !asked {
			asked, answer = true, check(ctx)
		}
		return answer
	}
}

// LiveCheck returns a [Claimer.CanAdopt] that reads the owner afresh through get, which must not be served from a
// cache. It refuses when the owner has gone, was replaced by another object of its name, or is being deleted. A
// cache cannot answer that: an owner deleted with its objects orphaned would adopt them right back.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_ref_manager.go, RecheckDeletionTimestamp
func LiveCheck(owner metav1.Object, get func(ctx context.Context) (metav1.Object, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		fresh, err := get(ctx)
		if err != nil {
			return fmt.Errorf("read owner %s: %w", klog.KObj(owner), err)
		}
		if fresh.GetUID() != owner.GetUID() {
			return fmt.Errorf("owner %s is gone: got uid %s, want %s", klog.KObj(owner), fresh.GetUID(), owner.GetUID())
		}
		if at := fresh.GetDeletionTimestamp(); at != nil {
			return fmt.Errorf("owner %s is being deleted since %s", klog.KObj(owner), at)
		}
		return nil
	}
}
