package rollout

import (
	"math"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// A tampered annotation can ask for more pods than 32 bits can count.
//
// Differs: kube-controller-manager computes with 32 bits, and would take the overflow for the share.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, getReplicaSetFraction
func TestFairShareIsBounded(t *testing.T) {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{replicasets.MaxReplicasAnnotation: "1"}},
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](10)},
	}
	if got, want := (Limits{Replicas: math.MaxInt32}).fairShare(rs, 0), int32(math.MaxInt32-10); got != want {
		t.Errorf("fair share %d, want %d", got, want)
	}
}
