package cel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/warning"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// ValidateRules implements [expressions.Evaluator].
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apis/apiextensions/validation/validation.go
// ValidateCustomResourceDefinitionOpenAPISchema, also for the rest of this file.
func (evaluator) ValidateRules(path *field.Path, s *apiextensions.JSONSchemaProps,
	o expressions.Origin,
) field.ErrorList {
	d := &definition{origin: o, known: knownExpressions(o.Before), costs: &costs{}}
	eachNode(rootNode(s, path), d.checkPaths)
	eachNode(rootNode(s, path), d.compile)
	return slices.Concat(d.badPaths, d.errs, d.costs.excess(path))
}

// definition validates the rules of one schema.
type definition struct {
	origin   expressions.Origin
	known    known
	costs    *costs
	badPaths field.ErrorList
	errs     field.ErrorList
}

// eachNode calls f for a node and for all below it, which come first. It visits the nodes that rules can be at.
func eachNode(n *node, f func(*node)) {
	s := n.schema
	if s == nil {
		return
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		eachNode(n.values(), f)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		eachNode(n.property(name), f)
	}
	if s.Items != nil && s.Items.Schema != nil {
		eachNode(n.items(), f)
	}
	f(n)
}

// checkPaths checks the field paths of a node's rules.
func (d *definition) checkPaths(n *node) {
	for i, rule := range n.schema.XValidations {
		if rule.FieldPath == "" {
			continue
		}
		structural, err := structuralschema.NewStructural(n.schema)
		if err != nil {
			continue // that is reported elsewhere
		}
		if _, _, err := schemacel.ValidFieldPath(rule.FieldPath, structural); err != nil {
			d.badPaths = append(d.badPaths,
				field.Invalid(n.rule(i).Child("fieldPath"), rule.FieldPath, "must be a valid path"))
		}
	}
}

// erroneous reports whether the schema has errors at a node or below it.
func (d *definition) erroneous(n *node) bool {
	at := n.path.String()
	return slices.ContainsFunc(slices.Concat(d.origin.Problems, d.badPaths), func(e *field.Error) bool {
		rest, below := strings.CutPrefix(e.Field, at)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (d *definition) compile(n *node) {
	if len(n.schema.XValidations) == 0 || d.erroneous(n) {
		return
	}
	at := n.path.Child("x-kubernetes-validations")
	internal := func(err error) { d.errs = append(d.errs, field.InternalError(at, err)) }
	t, err := n.typeInfo()
	if err != nil {
		internal(fmt.Errorf(
			"internal error: failed to construct type information for x-kubernetes-validations rules: %s", err))
		return
	}
	results, err := schemacel.Compile(t.schema, t.declared, celconfig.PerCallLimit,
		base(), d.known)
	if err != nil {
		internal(err)
		return
	}
	for i, result := range results {
		d.judge(n, i, result)
	}
}

// judge reports what is wrong with a compiled rule.
func (d *definition) judge(n *node, i int, r schemacel.CompilationResult) {
	rule, at := n.schema.XValidations[i], n.rule(i)
	d.judgeCost(at.Child("rule"), "estimated rule cost", n.cost(r))
	if r.Error != nil && r.Error.Type == apiservercel.ErrorTypeRequired {
		d.errs = append(d.errs, field.Required(at.Child("rule"), r.Error.Detail))
	} else if r.Error != nil {
		d.errs = append(d.errs, field.Invalid(at.Child("rule"), rule, r.Error.Detail))
	}
	switch message := at.Child("messageExpression"); {
	case r.MessageExpressionError != nil:
		d.errs = append(d.errs, field.Invalid(message, rule, r.MessageExpressionError.Detail))
	case r.MessageExpression != nil:
		d.judgeCost(message, "estimated messageExpression cost", r.MessageExpressionMaxCost)
	}
	switch {
	case r.UsesOldSelf && n.uncorrelated != nil:
		d.errs = append(d.errs, field.Invalid(at.Child("rule"), rule.Rule, fmt.Sprintf(
			"oldSelf cannot be used on the uncorrelatable portion of the schema within %v", n.uncorrelated)))
	case !r.UsesOldSelf && rule.OptionalOldSelf != nil:
		d.errs = append(d.errs, field.Invalid(at.Child("optionalOldSelf"), *rule.OptionalOldSelf,
			"may not be set if oldSelf is not used in rule"))
	}
}

func (d *definition) judgeCost(path *field.Path, what string, cost uint64) {
	if !d.origin.Unchanged && cost > costLimit {
		d.errs = append(d.errs, field.Forbidden(path, tooExpensive(what, cost, costLimit)))
	}
	d.costs.add(path, cost)
}

// known are expressions that a definition had before a change. They may use what was removed from the language.
type known struct{ rules, messages map[string]bool }

var _ schemacel.EnvLoader = known{}

func knownExpressions(schemas []*apiextensions.JSONSchemaProps) known {
	k := known{map[string]bool{}, map[string]bool{}}
	for _, s := range schemas {
		eachNode(rootNode(s, nil), func(n *node) {
			for _, r := range n.schema.XValidations {
				k.rules[r.Rule], k.messages[r.MessageExpression] = true, true
			}
		})
	}
	return k
}

// RuleEnv implements [schemacel.EnvLoader].
func (k known) RuleEnv(set *environment.EnvSet, expression string) *celgo.Env {
	return environmentFor(set, k.rules[expression])
}

// MessageExpressionEnv implements [schemacel.EnvLoader].
func (k known) MessageExpressionEnv(set *environment.EnvSet, expression string) *celgo.Env {
	return environmentFor(set, k.messages[expression])
}

func environmentFor(set *environment.EnvSet, stored bool) *celgo.Env {
	if stored {
		return set.StoredExpressionsEnv()
	}
	return set.NewExpressionsEnv()
}

// rules are the compiled rules of a schema.
type rules struct {
	schema    *structuralschema.Structural
	validator *schemacel.Validator
}

// Rules implements [expressions.Evaluator].
func (evaluator) Rules(s *structuralschema.Structural, resource bool) expressions.Rules {
	validator := schemacel.NewValidator(s, resource, celconfig.PerCallLimit)
	if validator == nil {
		return nil
	}
	return &rules{schema: s, validator: validator}
}

// Validate implements [expressions.Rules].
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/strategy.go ValidateUpdate.
func (r *rules) Validate(ctx context.Context, c expressions.Change, budget int64) (field.ErrorList, int64) {
	var options []schemacel.Option
	if c.Lenient {
		ctx = warning.WithWarningRecorder(ctx, recorder(c.Warn))
		correlated := common.NewCorrelatedObject(c.New, c.Old, &model.Structural{Structural: r.schema})
		options = append(options, schemacel.WithRatcheting(correlated))
	}
	return r.validator.Validate(ctx, c.Path, r.schema, c.New, c.Old, budget, options...)
}

// Budget implements [expressions.Rules].
func (*rules) Budget() int64 { return celconfig.RuntimeCELCostBudget }

// recorder passes warnings on.
type recorder func(string)

// AddWarning implements [warning.Recorder].
func (r recorder) AddWarning(_, text string) { r(text) }
