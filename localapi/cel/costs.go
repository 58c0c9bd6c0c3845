package cel

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
