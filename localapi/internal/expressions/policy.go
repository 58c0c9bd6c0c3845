package expressions

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// Write is a write that conditions or a policy judge.
type Write struct {
	// Attributes have Object and OldObject in the kind of As. All else describes the request.
	*admission.Attributes
	As admission.Equivalent

	Authorizer *rbac.Authorizer // for the variable authorizer; nil allows everything
}

// Conditions are compiled match conditions. They may be used concurrently.
type Conditions interface {
	// Match reports whether all conditions hold. Errors: a condition cannot be evaluated, and the failure policy says
	// that this matters.
	Match(ctx context.Context, w Write) (bool, error)
}

// Policy is a compiled policy. It may be used concurrently.
type Policy interface {
	// Evaluate judges a write. namespace is nil for a cluster-scoped object and for a Namespace. params may be nil.
	Evaluate(ctx context.Context, w Write, namespace *corev1.Namespace, params runtime.Object) Judgement
}

// Judgement is what a policy says of a write, for one value of its parameters.
type Judgement struct {
	Failures []Failure

	// Annotations are for the audit log, by key. Broken are the messages of annotations that could not be computed.
	// They refuse the write.
	Annotations []Annotation
	Broken      []string
}

// Failure is a validation that failed.
type Failure struct {
	Index   int // of the validation in the policy
	Message string
	Reason  metav1.StatusReason // "" means Invalid
}

// Annotation is an audit annotation of a policy.
type Annotation struct{ Key, Value string }
