package policy

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// longestAnnotation bounds the value of an audit annotation.
const longestAnnotation = 10 << 10

// annotations collects the audit annotations of one policy. The zero value is empty.
type annotations map[string][]string

func (n *annotations) add(a expressions.Annotation) {
	value := a.Value[:min(len(a.Value), longestAnnotation)]
	if slices.Contains((*n)[a.Key], value) {
		return
	}
	if *n == nil {
		*n = annotations{}
	}
	(*n)[a.Key] = append((*n)[a.Key], value)
}

// publish writes the annotations. Several values of one key, which different parameters can give, stand side by side.
func (n annotations) publish(policy string, annotate func(key, value string)) {
	for _, key := range slices.Sorted(maps.Keys(n)) {
		annotate(policy+"/"+key, strings.Join(n[key], ", "))
	}
}

// mostFailures bounds the failures in an audit annotation.
const mostFailures = 50

func publishFailures(failures []auditedFailure, annotate func(key, value string)) {
	value, err := json.Marshal(failures[:min(len(failures), mostFailures)])
	if err != nil {
		return // cannot happen: there are only strings in it
	}
	annotate("validation.policy.admission.k8s.io/validation_failure", string(value))
}
