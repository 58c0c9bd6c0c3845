package cel

import (
	"context"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// mutating is a compiled mutating policy.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy/mutating/compilation.go. That package brings informers
// and gRPC; its package patch does not.
type mutating struct {
	conditions
	broken   error // why nothing could be compiled
	compiler *plugincel.CompositedCompiler
	patchers []patch.Patcher
}

// Mutating implements [expressions.Evaluator].
func (evaluator) Mutating(p *registrationv1.MutatingAdmissionPolicy) expressions.Mutating {
	c, matching, err := composed(p)
	compiled := &mutating{conditions: matching, broken: err, compiler: c}
	if err != nil {
		return compiled
	}
	for i := range p.Spec.Mutations {
		e, name := mutationExpression(&p.Spec.Mutations[i])
		if e == nil { // the policy was not validated
			e = &patch.JSONPatchCondition{}
		}
		evaluator := c.CompileMutatingEvaluator(e, withPatchTypes(p.Spec.ParamKind != nil), storedType)
		patcher := patch.NewJSONPatcher(evaluator)
		if name == "applyConfiguration" {
			patcher = patch.NewApplyConfigurationPatcher(evaluator)
		}
		compiled.patchers = append(compiled.patchers, patcher)
	}
	return compiled
}

// mutationExpression returns the expression of a mutation, and the name of its field. It is nil if the field for the
// type of the patch is not set.
func mutationExpression(m *registrationv1.Mutation) (e plugincel.ExpressionAccessor, name string) {
	switch {
	case m.PatchType == registrationv1.PatchTypeJSONPatch && m.JSONPatch != nil:
		return &patch.JSONPatchCondition{Expression: strings.TrimSpace(m.JSONPatch.Expression)}, "jsonPatch"
	case m.PatchType == registrationv1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
		text := strings.TrimSpace(m.ApplyConfiguration.Expression)
		return &patch.ApplyConfigurationCondition{Expression: text}, "applyConfiguration"
	}
	return nil, ""
}

// withPatchTypes are the optional variables and types of mutations.
func withPatchTypes(params bool) plugincel.OptionalVariableDeclarations {
	o := withAuthorizer(params)
	o.HasPatchTypes = true
	return o
}

// Match implements [expressions.Conditions].
func (m *mutating) Match(ctx context.Context, w expressions.Write, params runtime.Object) (bool, error) {
	if m.broken != nil {
		return false, m.broken
	}
	return m.conditions.Match(ctx, w, params)
}

// Mutate implements [expressions.Mutating].
func (m *mutating) Mutate(ctx context.Context, i int, w expressions.Write, namespace *corev1.Namespace,
	params runtime.Object,
) (runtime.Object, error) {
	return m.patchers[i].Patch(m.compiler.CreateContext(ctx), patch.Request{
		MatchedResource: w.As.Resource, VersionedAttributes: versioned(w),
		ObjectInterfaces: interfaces{schemeInterfaces, w},
		OptionalVariables: plugincel.OptionalVariableBindings{
			VersionedParams: params, Authorizer: authorize{w.Authorizer},
		},
		Namespace: namespace, TypeConverter: w.Server.Types(w.As.Kind),
	}, celconfig.RuntimeCELCostBudget)
}

// interfaces makes the objects that JSON patches are decoded into.
type interfaces struct {
	admission.ObjectInterfaces
	w expressions.Write
}

var schemeInterfaces = admission.NewObjectInterfacesFromScheme(clientscheme.Scheme)

// GetObjectCreater implements [admission.ObjectInterfaces].
func (i interfaces) GetObjectCreater() runtime.ObjectCreater { return i }

// New implements [runtime.ObjectCreater]. A patch may change the kind of the object, which is an error later.
func (i interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if kind == i.w.As.Kind {
		return i.w.Server.New(kind), nil
	}
	return clientscheme.Scheme.New(kind)
}
