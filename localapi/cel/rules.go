package cel

import (
	"context"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

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
