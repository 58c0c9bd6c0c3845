package builtin

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// preconditionError means that a request was meant for another object, or for another version of it.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/interfaces.go Preconditions.Check.
type preconditionError struct {
	what       string // "UID" or "ResourceVersion"
	want, have any
}

func (e preconditionError) Error() string {
	return fmt.Sprintf("Precondition failed: %s in precondition: %v, %s in object meta: %v", e.what, e.want, e.what,
		e.have)
}

// checkPreconditions compares a request's preconditions with obj. Empty ones hold.
func checkPreconditions(obj metav1.Object, uid types.UID, resourceVersion string) error {
	if uid != "" && uid != obj.GetUID() {
		return preconditionError{"UID", uid, obj.GetUID()}
	}
	if resourceVersion != "" && resourceVersion != obj.GetResourceVersion() {
		return preconditionError{"ResourceVersion", resourceVersion, obj.GetResourceVersion()}
	}
	return nil
}
