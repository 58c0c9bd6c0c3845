package cel

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// New returns the value for the option CEL of a server (localapi.Options). It does nothing until the first expression
// is compiled. Servers may share one.
func New() expressions.Evaluator { return evaluator{} }

// evaluator evaluates by the libraries of the kube-apiserver. Their environments are built once a process, on first
// use.
type evaluator struct{}

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

// conditions are the match conditions of a webhook or of a policy.
type conditions struct{ matcher matchconditions.Matcher } // nil: there are none

// Conditions implements [expressions.Evaluator].
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/accessors.go GetCompiledMatcher.
func (evaluator) Conditions(w *registrationv1.MutatingWebhook) expressions.Conditions {
	compiled := conditionCompiler().CompileCondition(accessors(w.MatchConditions), withAuthorizer(false), storedType)
	return conditions{matchconditions.NewMatcher(compiled, w.FailurePolicy, "webhook", "admit", w.Name)}
}

// Match implements [expressions.Conditions].
func (c conditions) Match(ctx context.Context, w expressions.Write, params runtime.Object) (bool, error) {
	if c.matcher == nil {
		return true, nil
	}
	result := c.matcher.Match(ctx, versioned(w), params, authorize{w.Authorizer})
	return result.Matches, result.Error
}

func accessors(conditions []registrationv1.MatchCondition) []plugincel.ExpressionAccessor {
	all := make([]plugincel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		all[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	return all
}

// The environments of new expressions, and of those that an object had before. The latter may use what was removed from
// the language.
const (
	newType    = environment.NewExpressions
	storedType = environment.StoredExpressions
)

// base is the environment that all others extend. It is built once a process, on first use.
func base() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// compiler compiles expressions that cannot use variables. It takes milliseconds to build, so there is one.
var compiler = sync.OnceValue(func() plugincel.Compiler { return plugincel.NewCompiler(base()) })

// conditionCompiler compiles match conditions of webhooks.
var conditionCompiler = sync.OnceValue(func() plugincel.ConditionCompiler {
	return plugincel.NewConditionCompiler(base())
})

// withAuthorizer are the optional variables of most expressions.
func withAuthorizer(params bool) plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
}

// withoutAuthorizer are those of message expressions.
func withoutAuthorizer(params bool) plugincel.OptionalVariableDeclarations {
	return plugincel.OptionalVariableDeclarations{HasParams: params}
}

// environmentType returns the environment for an expression that an object has or had.
func environmentType(known map[string]bool, text string) environment.Type {
	if known[text] {
		return storedType
	}
	return newType
}

// The limits of estimated costs, for one expression and for all of a schema.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apis/apiextensions/validation/validation.go.
const (
	costLimit      = 10_000_000
	totalCostLimit = 100_000_000
)

// shown is the number of expressions that an error about the total cost names.
const shown = 4

// costs adds up the estimated costs of a schema's expressions.
type costs struct {
	total uint64
	most  []expensive // the most expensive ones, sorted
}

type expensive struct {
	path *field.Path
	cost uint64
}

func (c *costs) add(path *field.Path, cost uint64) {
	if math.MaxUint64-c.total < cost {
		c.total = math.MaxUint64
	} else {
		c.total += cost
	}
	if cost < totalCostLimit/100 {
		return
	}
	c.most = append(c.most, expensive{path, cost})
	slices.SortStableFunc(c.most, func(a, b expensive) int {
		switch {
		case a.cost > b.cost:
			return -1
		case a.cost < b.cost:
			return 1
		}
		return 0
	})
	c.most = c.most[:min(len(c.most), shown)]
}

// excess returns errors if the expressions cost too much in all.
func (c *costs) excess(path *field.Path) (errs field.ErrorList) {
	if c.total <= totalCostLimit {
		return nil
	}
	for _, e := range c.most {
		errs = append(errs, field.Forbidden(e.path,
			"contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	const what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
	return append(errs, field.Forbidden(path, tooExpensive(what, c.total, totalCostLimit)))
}

func tooExpensive(what string, cost, limit uint64) string {
	factor := "more than 100x"
	switch exceeded := float64(cost) / float64(limit); {
	case exceeded > 100:
	case exceeded < 1.5:
		factor = fmt.Sprintf("%fx", exceeded)
	default:
		factor = fmt.Sprintf("%.1fx", exceeded)
	}
	return fmt.Sprintf("%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, "+
		"maxProperties, and maxLength where arrays, maps, and strings are declared)", what, factor)
}
