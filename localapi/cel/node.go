package cel

import (
	"errors"
	"math"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// node is a place in the schema of a definition where rules can be.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apis/apiextensions/validation/cel_validation.go CELSchemaContext.
type node struct {
	schema *apiextensions.JSONSchemaProps
	path   *field.Path

	// parent is the node above, nil at the root. in finds the type of this node in that of the parent. It returns nil
	// if the type is not there.
	parent *node
	in     func(parent *typed) *typed

	// ruled means that this node or one above it has rules.
	ruled bool

	// times bounds how often the node can occur in an object. unbounded means that nothing bounds it.
	times     uint64
	unbounded bool

	// uncorrelated is the first node on the way here whose elements cannot be told apart between two states of an
	// object, so that rules below it cannot use oldSelf. It is nil if there is none.
	uncorrelated *field.Path

	found    *typed // the result of typeInfo
	foundErr error
}

// typed is a schema with its type in CEL.
type typed struct {
	schema   *structuralschema.Structural
	declared *apiservercel.DeclType
}

func rootNode(s *apiextensions.JSONSchemaProps, path *field.Path) *node {
	return &node{schema: s, path: path, times: 1, ruled: s != nil && len(s.XValidations) > 0}
}

func (n *node) rule(i int) *field.Path { return n.path.Child("x-kubernetes-validations").Index(i) }

// child returns the node of a schema below n.
func (n *node) child(s *apiextensions.JSONSchemaProps, path *field.Path, in func(*typed) *typed) *node {
	c := &node{
		schema: s, path: path, parent: n, in: in, uncorrelated: n.uncorrelated,
		ruled: n.ruled || len(s.XValidations) > 0,
	}
	factor, bounded := elements(n.schema)
	c.unbounded = n.unbounded || !bounded
	if !c.unbounded {
		c.times = multiply(n.times, factor)
	}
	return c
}

func (n *node) property(name string) *node {
	s := n.schema.Properties[name]
	c := n.child(&s, n.path.Child("properties").Key(name), func(parent *typed) *typed {
		escaped, ok := apiservercel.Escape(name)
		if !ok || parent.schema.Properties == nil {
			return nil
		}
		f, ok := parent.declared.Fields[escaped]
		if !ok {
			return nil
		}
		below := parent.schema.Properties[name]
		return &typed{&below, f.Type}
	})
	if !schemacel.MapIsCorrelatable(n.schema.XMapType) {
		c.notCorrelatedIn(n)
	}
	return c
}

func (n *node) values() *node {
	return n.child(n.schema.AdditionalProperties.Schema, n.path.Child("additionalProperties"),
		func(parent *typed) *typed {
			if parent.schema.AdditionalProperties == nil {
				return nil
			}
			return &typed{parent.schema.AdditionalProperties.Structural, parent.declared.ElemType}
		})
}

func (n *node) items() *node {
	c := n.child(n.schema.Items.Schema, n.path.Child("items"), func(parent *typed) *typed {
		if parent.schema.Items == nil {
			return nil
		}
		return &typed{parent.schema.Items, parent.declared.ElemType}
	})
	if n.schema.XListType == nil || *n.schema.XListType != "map" {
		c.notCorrelatedIn(n)
	}
	return c
}

func (n *node) notCorrelatedIn(above *node) {
	if n.uncorrelated == nil {
		n.uncorrelated = above.path
	}
}

// elements returns how many values a value of a schema can hold below one name.
func elements(s *apiextensions.JSONSchemaProps) (factor uint64, bounded bool) {
	limit := s.MaxItems
	switch {
	case s.Type == "object" && s.AdditionalProperties != nil:
		limit = s.MaxProperties
	case s.Type != "array":
		return 1, true
	}
	if limit == nil {
		return 0, false
	}
	return uint64(max(0, *limit)), true
}

// typeInfo returns the type of a node at which rules are in effect.
func (n *node) typeInfo() (*typed, error) {
	if n.found == nil && n.foundErr == nil {
		n.found, n.foundErr = n.findType()
	}
	return n.found, n.foundErr
}

func (n *node) findType() (*typed, error) {
	if n.parent != nil && n.parent.ruled {
		parent, err := n.parent.typeInfo()
		if err != nil {
			return nil, err
		}
		if t := n.in(parent); t != nil {
			return t, nil
		}
	}
	structural, err := structuralschema.NewStructural(n.schema)
	if err != nil {
		return nil, err
	}
	declared := model.SchemaDeclType(structural, n.parent == nil || n.schema.XEmbeddedResource)
	if declared == nil {
		return nil, errors.New("unable to convert structural schema to CEL declarations")
	}
	return &typed{structural, declared}, nil
}

// cost returns the estimated cost of a rule of the node in a whole object.
func (n *node) cost(r schemacel.CompilationResult) uint64 {
	if n.unbounded {
		return multiply(r.MaxCost, r.MaxCardinality)
	}
	return multiply(r.MaxCost, n.times)
}

// multiply returns a product, or the highest number if that is too small for it.
func multiply(a, b uint64) uint64 {
	if a != 0 && math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}
