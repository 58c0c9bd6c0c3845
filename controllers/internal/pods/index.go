package pods

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// ControllerIndex is the name of the index that [IndexByController] fills.
const ControllerIndex = "podController"

// IndexByController is an index function that files a pod under the key of its controller, [ControllerKey], and a
// pod that has none under the key of its namespace's orphans, [OrphanKey].
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, AddPodControllerIndexer
func IndexByController(pod *corev1.Pod) ([]string, error) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return []string{OrphanKey(pod.Namespace)}, nil
	}
	return []string{controllerKey(pod.Namespace, ref.Kind, ref)}, nil
}

// ControllerKey is the index value of the pods that owner, an object of the given kind, controls. The UID is part of
// it: pods of an earlier owner of the same name are not found.
func ControllerKey(owner metav1.Object, kind string) string {
	return controllerKey(owner.GetNamespace(), kind, &metav1.OwnerReference{Name: owner.GetName(), UID: owner.GetUID()})
}

// OrphanKey is the index value of the pods in a namespace that nobody controls. No controller's key equals it, since
// those contain slashes and a namespace's name does not.
func OrphanKey(namespace string) string {
	return namespace
}

func controllerKey(namespace, kind string, ref *metav1.OwnerReference) string {
	return namespace + "/" + kind + "/" + ref.Name + "/" + string(ref.UID)
}

// AddControllerIndex makes sure that the informer has the index [ControllerIndex]. Controllers share one pod informer,
// so the first of them adds it and the others find it there.
func AddControllerIndex(inf informer.Informer[*corev1.Pod]) error {
	if err := inf.AddIndex(ControllerIndex, IndexByController); err != nil && !errors.Is(err, informer.ErrIndexExists) {
		return fmt.Errorf("index pods by controller: %w", err)
	}
	return nil
}
