package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

// Claimer adopts and releases objects for one owner. Owner, Kind, Selector and Patch are required.
//
// A Claimer holds no state, so each sync may make its own.
//
// Concurrency: Claim may be called by several goroutines if CanAdopt and Patch may.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_ref_manager.go
type Claimer[T metav1.Object] struct {
	// Owner is the object that wants to own. Only its name, namespace, UID and deletion timestamp are read.
	Owner metav1.Object

	// Kind is the owner's kind, as written into the owner reference.
	Kind schema.GroupVersionKind

	// Selector matches the objects that belong to the owner. The caller makes sure that it does not match everything by
	// accident. For an owner that has no selector it is [labels.Nothing].
	Selector labels.Selector

	// CanAdopt is called once before the first adoption of a Claim, and not at all if there is nothing to adopt. So it
	// may be expensive; usually it is [LiveCheck]. An error refuses all adoptions of that Claim. Nil allows all.
	CanAdopt func(ctx context.Context) error

	// Patch sends a strategic merge patch to obj, and returns the object as it is then. The patch carries obj's UID as
	// a precondition.
	Patch func(ctx context.Context, obj T, patch []byte) (T, error)
}

// New returns a Claimer that checks the owner with [LiveCheck] and patches through c.
func New[T client.Object](c client.Client, owner client.Object, kind schema.GroupVersionKind,
	selector labels.Selector,
) *Claimer[T] {
	return &Claimer[T]{
		Owner: owner, Kind: kind, Selector: selector,
		CanAdopt: LiveCheck(owner, func(ctx context.Context) (metav1.Object, error) {
			live := emptyLike(owner)
			return live, c.Get(ctx, client.ObjectKeyFromObject(owner), live, client.Live)
		}),
		Patch: func(ctx context.Context, obj T, patch []byte) (T, error) {
			got := emptyLike(obj)
			got.SetNamespace(obj.GetNamespace())
			got.SetName(obj.GetName())
			return got, c.Patch(ctx, got, client.RawPatch(types.StrategicMergePatchType, patch))
		},
	}
}

// emptyLike returns a new object of the type of obj, which is a pointer to a struct.
func emptyLike[T client.Object](obj T) T {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
}

// verdict is what Claim does about one object.
type verdict int

const (
	ignore  verdict = iota // the owner does not have it and must not adopt it
	keep                   // the owner has it, and it matches
	adopt                  // it has no controller, and it matches
	release                // the owner has it, but it does not match any more
)

// Claim adopts orphans that the selector matches, and releases owned objects that it does not match. It returns those
// of objs that the owner has then, in their order; an adopted object is as Patch returned it. An owner that is being
// deleted neither adopts nor releases: the garbage collector handles its objects.
//
// Errors: adoptions and releases that failed, joined. The other claimed objects are returned with the error. An object
// that is gone is no error.
func (c *Claimer[T]) Claim(ctx context.Context, objs []T) ([]T, error) {
	var claimed []T
	var errs []error
	mayAdopt := once(ctx, c.CanAdopt)
	for _, obj := range objs {
		switch c.judge(obj) {
		case keep:
			claimed = append(claimed, obj)
		case adopt:
			adopted, ok, err := c.adopt(ctx, obj, mayAdopt)
			if err != nil {
				errs = append(errs, err)
			}
			if ok {
				claimed = append(claimed, adopted)
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

// judge decides about one object from what was observed.
func (c *Claimer[T]) judge(obj T) verdict {
	matches := c.Selector.Matches(labels.Set(obj.GetLabels()))
	ownerDeleted := c.Owner.GetDeletionTimestamp() != nil
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		switch {
		case ref.UID != c.Owner.GetUID():
			return ignore
		case matches:
			return keep
		case ownerDeleted:
			return ignore
		default:
			return release
		}
	}
	if ownerDeleted || !matches || obj.GetDeletionTimestamp() != nil {
		return ignore
	}
	if ns := c.Owner.GetNamespace(); ns != "" && ns != obj.GetNamespace() {
		return ignore
	}
	return adopt
}

// adopt writes the owner's reference onto obj, and returns what came of it. It returns false without an error if obj is
// gone.
func (c *Claimer[T]) adopt(ctx context.Context, obj T, mayAdopt func() error) (adopted T, ok bool, err error) {
	// That the owner is not found is an error here, whatever its kind; that obj is not found is none.
	if err := mayAdopt(); err != nil {
		return obj, false, fmt.Errorf("adopt %s (uid %s): %w", klog.KObj(obj), obj.GetUID(), err)
	}
	patch, err := adoptPatch(c.Owner, c.Kind, obj.GetUID())
	if err != nil {
		return obj, false, err
	}
	klog.FromContext(ctx).V(2).Info("Adopting object", "object", klog.KObj(obj), "owner", klog.KObj(c.Owner),
		"ownerKind", c.Kind.Kind)
	adopted, err = c.Patch(ctx, obj, patch)
	if err != nil && !apierrors.IsNotFound(err) {
		return obj, false, fmt.Errorf("adopt %s (uid %s): %w", klog.KObj(obj), obj.GetUID(), err)
	}
	return adopted, err == nil, nil
}

// release removes the owner's reference from obj. The answers "not found" and "invalid" mean that there is nothing left
// to release: the object is gone, or was replaced by another of its name, or has no owner reference any more.
func (c *Claimer[T]) release(ctx context.Context, obj T) error {
	patch, err := releasePatch(c.Owner.GetUID(), obj.GetUID())
	if err != nil {
		return err
	}
	klog.FromContext(ctx).V(2).Info("Releasing object", "object", klog.KObj(obj), "owner", klog.KObj(c.Owner),
		"ownerKind", c.Kind.Kind)
	_, err = c.Patch(ctx, obj, patch)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("release %s (uid %s): %w", klog.KObj(obj), obj.GetUID(), err)
}

// once returns a function that calls check the first time, and returns the same answer from then on.
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

// LiveCheck returns a [Claimer.CanAdopt] that reads the owner through get, which must not read from a cache. It refuses
// if the owner is gone, was replaced by another object of its name, or is being deleted. A cache may not know that yet:
// an owner that was deleted with its objects orphaned would adopt them again.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_ref_manager.go, RecheckDeletionTimestamp
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

// The API server compares metadata.uid in a patch with the stored object and refuses the patch when they differ:
// that makes the uid a precondition, so neither patch can hit an object that replaced the one we saw.

// adopting is the patch that makes an owner the controller of an object. Strategic merge joins ownerReferences by
// uid, so the references of others stay; the server rejects a second one with controller=true.
type adopting struct {
	Metadata struct {
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		UID             types.UID               `json:"uid"`
	} `json:"metadata"`
}

// releasing is the patch that removes one owner reference.
type releasing struct {
	Metadata struct {
		UID             types.UID    `json:"uid"`
		OwnerReferences []removedRef `json:"ownerReferences"`
	} `json:"metadata"`
}

type removedRef struct {
	Directive string    `json:"$patch"`
	UID       types.UID `json:"uid"`
}

func adoptPatch(owner metav1.Object, kind schema.GroupVersionKind, uid types.UID) ([]byte, error) {
	var p adopting
	p.Metadata.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	p.Metadata.UID = uid
	return encode(p)
}

func releasePatch(owner, uid types.UID) ([]byte, error) {
	var p releasing
	p.Metadata.UID = uid
	p.Metadata.OwnerReferences = []removedRef{{Directive: "delete", UID: owner}}
	return encode(p)
}

func encode(patch any) ([]byte, error) {
	b, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return b, nil
}

// controllerIndex is the name of the index that [IndexByController] fills.
const controllerIndex = "controller"

// IndexByController is an index function. Its value for an object is the UID of its controller; for an object that has
// no controller it is the namespace, with a prefix that no UID has.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, AddPodControllerIndexer
func IndexByController[T metav1.Object](obj T) ([]string, error) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return []string{orphansOf(obj.GetNamespace())}, nil
}

func orphansOf(namespace string) string { return "orphans/" + namespace }

// AddIndex makes sure that the informer has the index that [Controlled] and [Candidates] need. Controllers share the
// informers, so the first controller adds it and the others find it there.
func AddIndex[T informer.Object](inf informer.Informer[T]) error {
	err := inf.AddIndex(controllerIndex, IndexByController[T])
	if err != nil && !errors.Is(err, informer.ErrIndexExists) {
		return fmt.Errorf("index by controller: %w", err)
	}
	return nil
}

// Controlled returns the objects whose controller has this UID.
func Controlled[T informer.Object](inf informer.Informer[T], controller types.UID) ([]T, error) {
	return inf.ByIndex(controllerIndex, string(controller))
}

// Candidates returns the objects that a [Claimer] has to look at for owner: those that it controls, and those of its
// namespace that have no controller.
func Candidates[T informer.Object](inf informer.Informer[T], owner metav1.Object) ([]T, error) {
	owned, err := Controlled(inf, owner.GetUID())
	if err != nil {
		return nil, fmt.Errorf("look up the dependents of %s: %w", owner.GetName(), err)
	}
	orphans, err := inf.ByIndex(controllerIndex, orphansOf(owner.GetNamespace()))
	if err != nil {
		return nil, fmt.Errorf("look up orphans: %w", err)
	}
	return append(owned, orphans...), nil
}

// Owners finds the owners that an event of an object concerns, among the owners of one kind in a cache.
type Owners[O metav1.Object] struct {
	Cache interface {
		Get(namespace, name string) (O, bool)
		List(namespace string, selector labels.Selector) []O
	}
	// Kind is the kind that owner references name.
	Kind string
	// Selector returns the selector of an owner, or nil.
	Selector func(O) *metav1.LabelSelector
}

// Resolve returns the owner that ref refers to. It returns false if ref names another kind, or if the owner is gone,
// even if another object has its name now.
func (o Owners[O]) Resolve(namespace string, ref *metav1.OwnerReference) (owner O, ok bool) {
	if ref == nil || ref.Kind != o.Kind {
		return owner, false
	}
	found, ok := o.Cache.Get(namespace, ref.Name)
	if !ok || found.GetUID() != ref.UID {
		return owner, false
	}
	return found, true
}

// Adopters returns the owners whose selector matches an orphan. An empty selector matches nothing.
func (o Owners[O]) Adopters(orphan metav1.Object) (adopters []O) {
	if len(orphan.GetLabels()) == 0 {
		return nil
	}
	for _, owner := range o.Cache.List(orphan.GetNamespace(), nil) {
		selector, err := metav1.LabelSelectorAsSelector(o.Selector(owner))
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(orphan.GetLabels())) {
			adopters = append(adopters, owner)
		}
	}
	return adopters
}
