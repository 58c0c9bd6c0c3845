package builtin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	api "github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Quota enforces ResourceQuotas and maintains their status. In a cluster, a plugin of kube-apiserver and a controller
// of kube-controller-manager do that.
//
// A write is charged to the status of the quotas before it is made. The quotas are counted anew when a request is over
// that has failed or may have freed something, and before they refuse a write. What is counted are the stored objects
// and those that are charged and not yet stored, so that no write is missed between the two. A status that somebody
// else has written, or that an earlier server has left, is counted anew before it is used.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/resourcequota, k8s.io/kubernetes v1.37.2
// pkg/controller/resourcequota.
type Quota struct {
	// Others are the objects of the server. Quotas returns the quotas of a namespace, or of all, sorted by name.
	Others api.Others
	Quotas func(namespace string) ([]*corev1.ResourceQuota, error)
	// Served returns a version in which a namespaced resource is served, or false.
	Served func(gr schema.GroupResource) (schema.GroupVersionResource, bool)
	// InUse is set while there are quotas.
	InUse atomic.Bool

	mu      sync.Mutex // held while quotas are counted and charged
	charges map[*admission.Review]*charge
	right   map[types.UID]*corev1.ResourceQuota // quotas as they were when their status was last made right
}

// charge is what a request that is not over has to do with quotas.
type charge struct {
	object  runtime.Object // as it will be stored; nil if none is charged
	recount bool           // something may become free
}

var _ admission.Settler = (*Quota)(nil)

// Idle implements [admission.Plugin].
func (q *Quota) Idle(r schema.GroupResource) bool {
	return r != quotas && !q.InUse.Load()
}

// Mutate implements [admission.Plugin].
func (q *Quota) Mutate(context.Context, *admission.Attributes) error { return nil }

// Validate implements [admission.Plugin].
func (q *Quota) Validate(ctx context.Context, a *admission.Attributes) error {
	gr := a.Resource.GroupResource()
	if a.Namespace == "" || gr == corev1.Resource("namespaces") {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	all, err := q.Quotas(a.Namespace)
	if err != nil || len(all) == 0 && gr != quotas {
		return err
	}
	c := q.charges[a.Review]
	if c == nil {
		c = &charge{}
	}
	c.recount = c.recount || gr == quotas || a.Operation == admissionv1.Delete || a.Subresource == "eviction" ||
		c.object != nil // of an earlier attempt, which has failed
	c.object = nil
	if !a.DryRun {
		q.charges[a.Review] = c
	}
	for _, quota := range all {
		if err := q.charge(ctx, a, c, quota); err != nil {
			c.recount = true // of the quotas before this one
			return err
		}
	}
	if isCharged(a) {
		c.object = a.Object
	}
	return nil
}

// isCharged reports whether a write may use up something.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/quota/v1/evaluator/core, Handles of each evaluator.
func isCharged(a *admission.Attributes) bool {
	switch obj := a.Object.(type) {
	case *corev1.Pod:
		if old, ok := a.OldObject.(*corev1.Pod); ok {
			return a.Subresource == "resize" || a.Subresource == "" && terminating(old) != terminating(obj)
		}
	case *corev1.Service, *corev1.PersistentVolumeClaim:
		return a.Subresource == ""
	}
	return a.Subresource == "" && a.Operation == admissionv1.Create
}

// charge checks a write and charges it to a quota.
func (q *Quota) charge(ctx context.Context, a *admission.Attributes, c *charge, quota *corev1.ResourceQuota) error {
	gr := a.Resource.GroupResource()
	before, after := usage(quota, gr, a.OldObject), usage(quota, gr, a.Object)
	c.recount = c.recount || a.OldObject != nil && !equality.Semantic.DeepEqual(before, after)
	if !isCharged(a) {
		return nil
	}
	if pod, ok := a.Object.(*corev1.Pod); ok && inScope(quota, pod) {
		if err := unstated(quota, pod); err != nil {
			return a.Forbidden(fmt.Errorf("failed quota: %s: %w", quota.Name, err))
		}
	}
	for name, quantity := range after {
		quantity = quantity.DeepCopy()
		quantity.Sub(before[name])
		if after[name] = quantity; quantity.Sign() <= 0 {
			delete(after, name)
		}
	}
	if len(after) == 0 {
		return nil
	}
	return q.update(ctx, quota, func(quota *corev1.ResourceQuota) error {
		err := exceeded(a, quota, after)
		if err != nil { // perhaps no longer
			if err := q.recount(ctx, quota, schema.GroupResource{}); err != nil {
				return err
			}
			err = exceeded(a, quota, after)
		}
		if err == nil && !a.DryRun {
			addResources(quota.Status.Used, after)
		}
		return err
	})
}

// exceeded returns the error for a write that uses up more than there is.
func exceeded(a *admission.Attributes, quota *corev1.ResourceQuota, more corev1.ResourceList) error {
	var requested, used, limited []string
	for _, name := range sortedKeys(more) {
		hard, sum := quota.Status.Hard[name], quota.Status.Used[name].DeepCopy()
		if sum.Add(more[name]); sum.Cmp(hard) > 0 {
			requested = append(requested, string(name)+"="+amount(more[name]))
			used = append(used, string(name)+"="+amount(quota.Status.Used[name]))
			limited = append(limited, string(name)+"="+amount(hard))
		}
	}
	if requested == nil {
		return nil
	}
	return a.Forbidden(fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s", quota.Name,
		strings.Join(requested, ","), strings.Join(used, ","), strings.Join(limited, ",")))
}

// Settle implements [admission.Settler].
func (q *Quota) Settle(ctx context.Context, r *admission.Review, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.charges[r]
	if delete(q.charges, r); c == nil || !c.recount && done {
		return
	}
	a := &r.Request
	if err := q.count(ctx, a.Namespace, a.Resource.GroupResource()); err != nil { // the write is done already
		klog.FromContext(ctx).Error(err, "Quotas were not counted", "namespace", a.Namespace)
	}
}

// Start counts the quotas that an earlier server has left.
func (q *Quota) Start(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.charges, q.right = map[*admission.Review]*charge{}, map[types.UID]*corev1.ResourceQuota{}
	return q.count(ctx, "", quotas)
}

// count counts the objects of a resource in the quotas of a namespace that limit them, or all objects in all quotas if
// a quota was written.
func (q *Quota) count(ctx context.Context, namespace string, gr schema.GroupResource) error {
	all, err := q.Quotas(namespace)
	if gr == quotas { // some may be gone
		maps.DeleteFunc(q.right, func(_ types.UID, q *corev1.ResourceQuota) bool { return q.Namespace == namespace })
	}
	for _, quota := range all {
		uses := func(name corev1.ResourceName) bool { return userOf(name) == gr }
		if gr != quotas && !slices.ContainsFunc(sortedKeys(quota.Spec.Hard), uses) {
			continue
		}
		recount := func(quota *corev1.ResourceQuota) error { return q.recount(ctx, quota, gr) }
		if err := q.update(ctx, quota, recount); err != nil {
			return err
		}
	}
	return err
}

// update makes a quota's status right, and then has change change it. It ignores a quota that is gone.
func (q *Quota) update(ctx context.Context, quota *corev1.ResourceQuota,
	change func(*corev1.ResourceQuota) error,
) error {
	var last *corev1.ResourceQuota
	err := q.Others.UpdateStatus(ctx, quotas.WithVersion("v1"), quota.Namespace, quota.Name,
		func(obj runtime.Object) error {
			last = obj.(*corev1.ResourceQuota)
			if was := q.right[last.UID]; was == nil || !equality.Semantic.DeepEqual(was.Spec, last.Spec) ||
				!equality.Semantic.DeepEqual(was.Status, last.Status) {
				if err := q.recount(ctx, last, schema.GroupResource{}); err != nil {
					return err
				}
			}
			return change(last)
		})
	if err == nil {
		q.right[last.UID] = last.DeepCopy()
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// recount sets the status of a quota: of the objects of one resource, or of all if gr is empty. What is not served
// cannot be counted, and keeps its quantity.
func (q *Quota) recount(ctx context.Context, quota *corev1.ResourceQuota, gr schema.GroupResource) error {
	old, used := quota.Status.Used, corev1.ResourceList{}
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard.DeepCopy(), used
	counted := map[schema.GroupResource]corev1.ResourceList{}
	for name := range quota.Spec.Hard {
		user := userOf(name)
		version, served := q.Served(user)
		if was, known := old[name]; !served || !gr.Empty() && user != gr {
			if known {
				used[name] = was
			}
			continue
		}
		if counted[user] == nil {
			sum, err := q.sum(ctx, quota, version)
			if err != nil {
				return err
			}
			counted[user] = sum
		}
		used[name] = units(0)
		addResources(used, corev1.ResourceList{name: counted[user][name]})
	}
	return nil
}

// sum returns what the objects of a resource use up, those that are stored and those that are about to be. An object
// that is about to be replaced uses up the greater of both.
func (q *Quota) sum(ctx context.Context, quota *corev1.ResourceQuota,
	version schema.GroupVersionResource,
) (corev1.ResourceList, error) {
	gr, sum, each := version.GroupResource(), corev1.ResourceList{}, map[types.UID]corev1.ResourceList{}
	objects, err := q.Others.List(ctx, version, quota.Namespace)
	if err != nil {
		return nil, fmt.Errorf("count %s: %w", gr, err)
	}
	for r, c := range q.charges {
		if a := &r.Request; c.object != nil && a.Namespace == quota.Namespace && a.Resource.GroupResource() == gr {
			objects, c.recount = append(objects, c.object), true // it may be gone before its request is over
		}
	}
	for _, obj := range objects {
		uid := obj.(metav1.Object).GetUID()
		if each[uid] == nil {
			each[uid] = corev1.ResourceList{}
		}
		raiseResources(each[uid], usage(quota, gr, obj))
	}
	for _, used := range each {
		addResources(sum, used)
	}
	return sum, nil
}
