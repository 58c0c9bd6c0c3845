package cel

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// expression is an expression with the types that its value may have.
type expression struct {
	name, text string
	types      []*celgo.Type
}

var _ plugincel.NamedExpressionAccessor = (*expression)(nil)

// GetExpression implements [plugincel.ExpressionAccessor].
func (e *expression) GetExpression() string { return e.text }

// ReturnTypes implements [plugincel.ExpressionAccessor].
func (e *expression) ReturnTypes() []*celgo.Type { return e.types }

// GetName implements [plugincel.NamedExpressionAccessor].
func (e *expression) GetName() string { return e.name }

// The constructors name the kinds of expressions in a policy.

func variable(v registrationv1.Variable) *expression {
	return &expression{v.Name, v.Expression, []*celgo.Type{celgo.AnyType, celgo.DynType}}
}

func validation(text string) *expression { return &expression{"", text, []*celgo.Type{celgo.BoolType}} }

func message(text string) *expression { return &expression{"", text, []*celgo.Type{celgo.StringType}} }

func annotation(text string) *expression {
	return &expression{"", text, []*celgo.Type{celgo.StringType, celgo.NullType}}
}

// versioned returns a write in the form that the kube-apiserver's libraries take.
func versioned(w expressions.Write) *admission.VersionedAttributes {
	attributes := admission.NewAttributesRecord(w.Object, w.OldObject, w.Kind, w.Namespace, w.Name, w.Resource,
		w.Subresource, admission.Operation(w.Operation), w.Options, w.DryRun, info(w.User))
	v := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: w.As.Kind}
	if w.Object != nil {
		v.VersionedObject.Set(w.Object)
	}
	if w.OldObject != nil {
		v.VersionedOldObject.Set(w.OldObject)
	}
	return v
}

func info(u auth.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}

// request returns the variable request.
func request(w expressions.Write, v *admission.VersionedAttributes) *admissionv1.AdmissionRequest {
	return plugincel.CreateAdmissionRequest(v.Attributes, metav1.GroupVersionResource(w.As.Resource),
		metav1.GroupVersionKind(w.As.Kind))
}

// authorize asks the server's roles on behalf of expressions.
type authorize struct{ roles *rbac.Authorizer }

var _ authorizer.UnconditionalAuthorizer = authorize{}

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (z authorize) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := auth.User{
		Name: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(),
		Extra: a.GetUser().GetExtra(),
	}
	allowed, reason := z.roles.Authorize(u, rbac.Attributes{
		Verb: a.GetVerb(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(), Path: a.GetPath(), NonResource: !a.IsResourceRequest(),
	})
	if allowed {
		return authorizer.DecisionAllow, reason, nil
	}
	return authorizer.DecisionNoOpinion, reason, nil
}

// conditions are the match conditions of a webhook.
type conditions struct{ matcher matchconditions.Matcher }

// Conditions implements [expressions.Evaluator].
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/accessors.go GetCompiledMatcher.
func (evaluator) Conditions(w *registrationv1.MutatingWebhook) expressions.Conditions {
	compiled := conditionCompiler().CompileCondition(accessors(w.MatchConditions), withAuthorizer(false), storedType)
	return conditions{matchconditions.NewMatcher(compiled, w.FailurePolicy, "webhook", "admit", w.Name)}
}

// Match implements [expressions.Conditions].
func (c conditions) Match(ctx context.Context, w expressions.Write) (bool, error) {
	result := c.matcher.Match(ctx, versioned(w), nil, authorize{w.Authorizer})
	return result.Matches, result.Error
}

func accessors(conditions []registrationv1.MatchCondition) []plugincel.ExpressionAccessor {
	all := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		all[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return all
}
