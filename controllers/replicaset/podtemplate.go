package replicaset

import (
	"errors"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNoLabels is returned for a template without labels: no selector could match its pods.
var errNoLabels = errors.New("unable to create pods, no labels")

// podFor returns the pod that set's template describes, controlled by set. It copies the labels, annotations and
// finalizers of the template, and no other metadata. The server completes the name.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, GetPodFromTemplate and createPods
func podFor(set *appsv1.ReplicaSet) (*corev1.Pod, error) {
	template := &set.Spec.Template
	if len(template.Labels) == 0 {
		return nil, errNoLabels
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    namePrefix(set.Name),
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)},
		},
		Spec: *template.Spec.DeepCopy(),
	}, nil
}

// namePrefix returns "<name>-", or the bare name if the dash would make it an invalid prefix of a pod's name.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, getPodsPrefix
func namePrefix(name string) string {
	prefix := name + "-"
	if len(validation.NameIsDNSSubdomain(prefix, true)) > 0 {
		return name
	}
	return prefix
}
