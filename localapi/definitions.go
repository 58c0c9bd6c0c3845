package localapi

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/localapi/internal/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/crd"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
)

// defaultDefinitions returns the types that a server serves by default. issuer issues the tokens of service accounts.
// cel evaluates expressions, if it is not nil.
func defaultDefinitions(issuer *tokens.Issuer, cel expressions.Evaluator) []*resource.Definition {
	all := append(builtin.All(), crd.Definition(cel))
	builtin.Evaluate(all, cel)
	for _, d := range all {
		if d.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ServiceAccount") {
			d.Subresources = map[string]resource.Subresource{"token": issuer.Subresource()}
		}
	}
	return all
}
