package claim

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// controllerIndex is the name of the index that [IndexByController] fills.
const controllerIndex = "controller"

// IndexByController is an index function. Its value for an object is the UID of its controller; for an object that has
// no controller it is the namespace, with a prefix that no UID has.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, AddPodControllerIndexer
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
