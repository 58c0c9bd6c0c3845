package localapi

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// expressions is how many generated expressions each seed tries.
var expressions = flag.Int("expressions", 40, "definitions and policies in a generated sequence of expressions")

// TestGeneratedExpressions sends definitions and policies whose expressions chance made of a grammar, right and wrong
// ones, as dry runs to both servers: both accept them or refuse them with the same words.
func TestGeneratedExpressions(t *testing.T) {
	known := newLedger(known)
	for seed := range *seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 7))}
			for range *expressions {
				g.definition()
				g.policy()
			}
			var text strings.Builder
			for i, st := range g.steps {
				st.line = i + 1
				fmt.Fprintf(&text, "%s\n\n", st)
			}
			name := fmt.Sprint("expressions-", seed)
			newPair(t, &script{name: name, text: text.String(), steps: g.steps}, known).play(t)
		})
	}
}

// condition returns an expression that is a condition, or nearly. roots are what it can refer to.
func (g *generator) condition(depth int, roots []string) string {
	if depth == 0 {
		return pick(g, "true", "false", "has("+g.selection(roots)+")")
	}
	sub := func() string { return g.condition(depth-1, roots) }
	switch g.IntN(8) {
	case 0:
		return fmt.Sprintf("(%s %s %s)", sub(), pick(g, "&&", "||", "=="), sub())
	case 1:
		return "!" + sub()
	case 2:
		return fmt.Sprintf("(%s ? %s : %s)", sub(), sub(), sub())
	case 3:
		return fmt.Sprintf("%s.%s(x, %s)", g.listExpression(roots), pick(g, "all", "exists", "exists_one"),
			pick(g, "x > 1", "x != 'a'", "x == "+g.numberExpression(roots), "true"))
	case 4:
		return fmt.Sprintf("%s.%s(%s)", g.textExpression(roots),
			pick(g, "startsWith", "contains", "matches", "endsWith"), g.textExpression(roots))
	case 5:
		return fmt.Sprintf("%s in %s", g.numberExpression(roots), g.listExpression(roots))
	}
	compare := pick(g, "<", ">=", "==", "!=", "<=", ">", "<", "=")
	return fmt.Sprintf("%s %s %s", g.numberExpression(roots), compare, g.numberExpression(roots))
}

func (g *generator) selection(roots []string) string {
	return pick(g, roots...) + "." + pick(g, "i", "s", "l", "m", "i", "s", "l", "none")
}

func (g *generator) numberExpression(roots []string) string {
	r := pick(g, roots...)
	if g.IntN(3) > 0 {
		return pick(g, "1", "7", r+".i", r+".i * 2", "size("+r+".l)")
	}
	return pick(g, "size("+r+".l)", r+".l[0]", "int("+r+".s)", r+".i / 0", r+".s", "1.5")
}

func (g *generator) textExpression(roots []string) string {
	r := pick(g, roots...)
	if g.IntN(3) > 0 {
		return pick(g, "'a'", r+".s", "string("+r+".i)")
	}
	return pick(g, r+".s + 'b'", r+".s.lowerAscii()", r+".i", "'['")
}

func (g *generator) listExpression(roots []string) string {
	r := pick(g, roots...)
	if g.IntN(3) > 0 {
		return pick(g, r+".l", "[1, 2, 3]")
	}
	return pick(g, r+".l.map(y, y + 1)", r+".l.filter(y, y > 2)", r+".m", "['a', 1]")
}

// definition adds a definition with rules at its root, at a field and at items.
func (g *generator) definition() {
	rules := func(roots ...string) string {
		var all []string
		for range 1 + g.IntN(2) {
			rule := fmt.Sprintf("rule: %q", g.condition(g.IntN(3), roots))
			rule += pick(g, "", "", ", message: m", ", messageExpression: "+fmt.Sprintf("%q", g.textExpression(roots)),
				", optionalOldSelf: true", ", fieldPath: .i", ", reason: FieldValueForbidden")
			all = append(all, "{"+rule+"}")
		}
		return "x-kubernetes-validations: [" + strings.Join(all, ", ") + "]"
	}
	bound := pick(g, "", ", maxItems: 5", ", maxItems: 100000")
	length := pick(g, "", ", maxLength: 5", ", maxLength: 100000")
	fields := fmt.Sprintf("{i: {type: integer%s}, s: {type: string%s}, l: {type: array%s, items: {type: integer}}, "+
		"m: {type: object, additionalProperties: {type: string}}}", pick(g, "", ", default: 3"), length, bound)
	parts := fmt.Sprintf("{type: array%s%s, items: {type: object, required: [i], %s, properties: %s}}", bound,
		pick(g, "", ", x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [i]"), rules("self", "oldSelf"), fields)
	fields = strings.TrimSuffix(fields, "}") + ", parts: " + parts + "}"
	g.add(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", fmt.Sprintf(
		`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: checkeds.generated.example.com}
spec:
  group: generated.example.com
  scope: Namespaced
  names: {plural: checkeds, singular: checked, kind: Checked, listKind: CheckedList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, %s, properties: %s}}}}`,
		rules("self", "self", "oldSelf"), fields))
}

// policy adds a policy.
func (g *generator) policy() {
	roots := []string{"object", "oldObject", "object.spec", "object"}
	if g.IntN(3) == 0 {
		roots = append(roots, "params", "variables", "request", "namespaceObject.metadata")
	}
	condition := func() string { return fmt.Sprintf("%q", g.condition(g.IntN(3), roots)) }
	g.add(http.MethodPost, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?dryRun=All", fmt.Sprintf(
		`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: generated}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}%s
  matchConditions: [{name: c, expression: %s}]
  variables: [{name: i, expression: %q}, {name: s, expression: %q}]
  validations: [{expression: %s, messageExpression: %q}, {expression: %s}]
  auditAnnotations: [{key: k, valueExpression: %q}]`,
		pick(g, "", "\n  paramKind: {apiVersion: v1, kind: ConfigMap}"), condition(), g.numberExpression(roots),
		g.textExpression(roots), condition(), g.textExpression(roots), condition(), g.textExpression(roots)))
}
