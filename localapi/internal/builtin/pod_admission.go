package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
)

// PodAdmission is what admission plugins of a kube-apiserver that are on by default do to pods, before policies and
// webhooks see them: it sets the service account and the default tolerations, and applies the priority class and the
// runtime class. It also sees to it that there is only one default priority class.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/serviceaccount, priority, defaulttolerationseconds,
// runtimeclass.
type PodAdmission struct {
	// RuntimeClass returns a runtime class, read-only. Errors: NotFound.
	RuntimeClass func(name string) (*nodev1.RuntimeClass, error)
	// PriorityClasses returns all priority classes, read-only.
	PriorityClasses func() ([]*schedulingv1.PriorityClass, error)
	// ServiceAccount returns a service account, read-only. If it is nil, pods get only the name of one. Errors:
	// NotFound.
	ServiceAccount func(namespace, name string) (*corev1.ServiceAccount, error)
	// Suffix returns the random end of a generated name.
	Suffix func() string
}

var _ admission.Plugin = (*PodAdmission)(nil)

// Idle implements [admission.Plugin].
func (p *PodAdmission) Idle(r schema.GroupResource) bool {
	return r != corev1.Resource("pods") && r != schedulingv1.Resource("priorityclasses")
}

// podOf returns the pod of a write. It is nil if the write is not one of a pod itself.
func podOf(a *admission.Attributes) *corev1.Pod {
	if a.Resource.GroupResource() != corev1.Resource("pods") || a.Subresource != "" {
		return nil
	}
	pod, _ := a.Object.(*corev1.Pod)
	return pod
}

// Mutate implements [admission.Plugin].
func (p *PodAdmission) Mutate(ctx context.Context, a *admission.Attributes) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	pod = pod.DeepCopy()
	a.Object = pod
	if a.Operation == admissionv1.Update {
		old := a.OldObject.(*corev1.Pod)
		pod.Spec.Priority = cmp.Or(pod.Spec.Priority, old.Spec.Priority)
		pod.Spec.PreemptionPolicy = cmp.Or(pod.Spec.PreemptionPolicy, old.Spec.PreemptionPolicy)
		addDefaultTolerations(&pod.Spec)
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
		pod.Spec.DeprecatedServiceAccount = "default"
	}
	if err := p.useAccount(ctx, a, pod); err != nil {
		return err
	}
	if err := p.prioritize(a, &pod.Spec); err != nil {
		return err
	}
	addDefaultTolerations(&pod.Spec)
	class, err := p.class(a, pod)
	if err != nil || class == nil {
		return err
	}
	if o := class.Overhead; o != nil {
		if len(pod.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(o.PodFixed, pod.Spec.Overhead) {
			return a.Forbidden(errOtherOverhead)
		}
		pod.Spec.Overhead = o.PodFixed.DeepCopy()
	}
	if class.Scheduling == nil {
		return nil
	}
	return schedule(a, &pod.Spec, class.Scheduling.DeepCopy())
}

// Validate implements [admission.Plugin].
func (p *PodAdmission) Validate(_ context.Context, a *admission.Attributes) error {
	if class, ok := a.Object.(*schedulingv1.PriorityClass); ok && class.GlobalDefault {
		return p.onlyDefault(a, class)
	}
	pod := podOf(a)
	if pod == nil || a.Operation != admissionv1.Create {
		return nil
	}
	class, err := p.class(a, pod)
	switch {
	case err != nil:
		return err
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return a.Forbidden(errOtherOverhead)
		}
	case pod.Spec.Overhead != nil:
		return a.Forbidden(errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined " +
			"Overhead"))
	}
	return nil
}

var errOtherOverhead = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

// class returns the runtime class of a pod, or nil if it names none.
func (p *PodAdmission) class(a *admission.Attributes, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	if pod.Spec.RuntimeClassName == nil {
		return nil, nil
	}
	if *pod.Spec.RuntimeClassName == "" {
		return nil, errors.New("resource name may not be empty")
	}
	class, err := p.RuntimeClass(*pod.Spec.RuntimeClassName)
	if apierrors.IsNotFound(err) {
		return nil, a.Forbidden(fmt.Errorf("pod rejected: RuntimeClass %q not found", *pod.Spec.RuntimeClassName))
	}
	return class, err
}

// useAccount gives a pod what it gets of its service account. It waits up to ten seconds for the account default, which
// a controller creates. A mirror pod uses none.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/serviceaccount/admission.go.
func (p *PodAdmission) useAccount(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) error {
	const wait, attempts = 100 * time.Millisecond, 100
	if _, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrors || p.ServiceAccount == nil {
		return nil
	}
	name := pod.Spec.ServiceAccountName
	account, err := p.ServiceAccount(a.Namespace, name)
	for i := 0; i < attempts && name == "default" && apierrors.IsNotFound(err) && ctx.Err() == nil; i++ {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		account, err = p.ServiceAccount(a.Namespace, name)
	}
	if apierrors.IsNotFound(err) {
		err = apierrors.NewNotFound(corev1.Resource("serviceaccount"), name)
	}
	if err != nil {
		return a.Forbidden(fmt.Errorf("error looking up service account %s/%s: %w", a.Namespace, name, err))
	}
	if ptr.Deref(pod.Spec.AutomountServiceAccountToken, ptr.Deref(account.AutomountServiceAccountToken, true)) {
		mountToken(&pod.Spec, p.Suffix())
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = slices.Clone(account.ImagePullSecrets)
	}
	return nil
}

// mountToken mounts the volume with the token of the service account in the containers that have nothing at its place.
func mountToken(spec *corev1.PodSpec, suffix string) {
	const prefix, path = "kube-api-access-", "/var/run/secrets/kubernetes.io/serviceaccount"
	name := prefix + suffix
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, prefix) })
	if i >= 0 {
		name = spec.Volumes[i].Name
	}
	mounted := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
				c.VolumeMounts = append(c.VolumeMounts,
					corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: path})
				mounted = true
			}
		}
	}
	if !mounted || i >= 0 {
		return
	}
	const expires = 60*60 + 7 // seconds
	token := &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](expires)}
	authority := &corev1.ConfigMapProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
		Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
	}
	namespace := &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
		Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
	}}}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: token}, {ConfigMap: authority}, {DownwardAPI: namespace},
			},
		},
	}})
}

// schedule adds the constraints of a runtime class to those of a pod.
func schedule(a *admission.Attributes, spec *corev1.PodSpec, s *nodev1.Scheduling) error {
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		if value, ok := spec.NodeSelector[key]; ok && value != s.NodeSelector[key] {
			return a.Forbidden(fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; "+
				"pod.spec.nodeSelector[%s] = %s", key, s.NodeSelector[key], key, value))
		}
	}
	if spec.NodeSelector == nil {
		spec.NodeSelector = s.NodeSelector
	}
	maps.Copy(spec.NodeSelector, s.NodeSelector)
	spec.Tolerations = mergeTolerations(slices.Concat(spec.Tolerations, s.Tolerations))
	return nil
}

// mergeTolerations returns the tolerations that no other one covers. Of equal ones it returns the first.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/util/tolerations/tolerations.go MergeTolerations.
func mergeTolerations(all []corev1.Toleration) (merged []corev1.Toleration) {
	for i, t := range all {
		covered := slices.ContainsFunc(merged, func(other corev1.Toleration) bool { return covers(&other, &t) }) ||
			slices.ContainsFunc(all[i+1:], func(other corev1.Toleration) bool {
				return !equality.Semantic.DeepEqual(other, t) && covers(&other, &t)
			})
		if !covered {
			merged = append(merged, t)
		}
	}
	return merged
}

// covers reports whether whatever t tolerates is tolerated by other as well.
func covers(other, t *corev1.Toleration) bool {
	switch {
	case equality.Semantic.DeepEqual(other, t):
		return true
	case t.Key != other.Key && (other.Key != "" || other.Operator != corev1.TolerationOpExists):
		return false // without a key, Exists matches all keys
	case t.Effect != other.Effect && other.Effect != "":
		return false
	}
	if most := other.TolerationSeconds; other.Effect == corev1.TaintEffectNoExecute && most != nil &&
		(t.TolerationSeconds == nil || *t.TolerationSeconds > *most) {
		return false
	}
	switch other.Operator {
	case corev1.TolerationOpEqual, "":
		return t.Operator == corev1.TolerationOpEqual && t.Value == other.Value
	}
	return other.Operator == corev1.TolerationOpExists
}

// prioritize gives a pod the priority of its class, or of the default class if it names none. The pod may state the
// same values itself, but no others.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/priority/admission.go admitPod.
func (p *PodAdmission) prioritize(a *admission.Attributes, spec *corev1.PodSpec) error {
	all, err := p.PriorityClasses()
	if err != nil {
		return err
	}
	class := &schedulingv1.PriorityClass{PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority)}
	if name := spec.PriorityClassName; name != "" {
		i := slices.IndexFunc(all, func(c *schedulingv1.PriorityClass) bool { return c.Name == name })
		if i < 0 {
			return a.Forbidden(fmt.Errorf("no PriorityClass with name %v was found", name))
		}
		class = all[i]
	} else if c := defaultPriorityClass(all); c != nil {
		class, spec.PriorityClassName = c, c.Name
	}
	const problem = "the %s (%v) must not be provided in pod spec; priority admission controller computed %v from " +
		"the given PriorityClass name"
	setDefaultPtr(&spec.Priority, class.Value)
	if v := *spec.Priority; v != class.Value {
		return a.Forbidden(fmt.Errorf(problem, "integer value of priority", v, class.Value))
	}
	if policy := class.PreemptionPolicy; policy != nil {
		setDefaultPtr(&spec.PreemptionPolicy, *policy)
		if v := *spec.PreemptionPolicy; v != *policy {
			return a.Forbidden(fmt.Errorf(problem, "string value of PreemptionPolicy", v, *policy))
		}
	}
	return nil
}

// defaultPriorityClass returns the class of pods that name none, or nil. Two requests at once may make two of them: the
// lower one counts.
func defaultPriorityClass(all []*schedulingv1.PriorityClass) (lowest *schedulingv1.PriorityClass) {
	for _, c := range all {
		if c.GlobalDefault && (lowest == nil || c.Value < lowest.Value) {
			lowest = c
		}
	}
	return lowest
}

// onlyDefault rejects a default class beside another one.
func (p *PodAdmission) onlyDefault(a *admission.Attributes, class *schedulingv1.PriorityClass) error {
	all, err := p.PriorityClasses()
	if err != nil {
		return err
	}
	if c := defaultPriorityClass(all); c != nil && (a.Operation == admissionv1.Create || c.Name != class.Name) {
		return a.Forbidden(fmt.Errorf("PriorityClass %v is already marked as default. Only one default can exist",
			c.Name))
	}
	return nil
}

// addDefaultTolerations lets a pod stay on an unreachable node for five minutes.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/defaulttolerationseconds/admission.go.
func addDefaultTolerations(spec *corev1.PodSpec) {
	const fiveMinutes = 5 * 60
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesEviction(spec.Tolerations, taint) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: ptr.To[int64](fiveMinutes),
			})
		}
	}
}

func toleratesEviction(tolerations []corev1.Toleration, taint string) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
