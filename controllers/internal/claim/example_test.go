package claim_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/controllers/internal/claim"
)

func ExampleClaimer() {
	owner := &metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-x", UID: "2", Labels: map[string]string{"app": "web"},
	}}
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db-y", UID: "3"}}

	c := claim.Claimer[*corev1.Pod]{
		Owner:    owner,
		Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
		CanAdopt: claim.LiveCheck(owner, func(context.Context) (metav1.Object, error) { return owner, nil }),
		Patch: func(_ context.Context, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
			fmt.Printf("patch %s: %s\n", pod.Name, patch)
			return pod, nil
		},
	}
	claimed, err := c.Claim(context.Background(), []*corev1.Pod{orphan, stranger})
	fmt.Println(len(claimed), claimed[0].Name, err)
	// Output:
	// patch web-x: {"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"1","controller":true,"blockOwnerDeletion":true}],"uid":"2"}}
	// 1 web-x <nil>
}
