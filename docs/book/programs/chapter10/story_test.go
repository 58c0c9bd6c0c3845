package chapter10

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/internal/trace"
)

// story puts into words what the caches, the controller and its writes did with Pods and Endpoints.
func (c *cluster) story() (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrote := false
	for i := range c.steps {
		s := &c.steps[i]
		text := ""
		switch {
		case s.Kind == trace.Changed && s.of.Resource == "pods":
			text = "the cache of Pods: " + s.of.Name + " is " + readiness(ready(s.New.(*corev1.Pod)))
		case s.Kind == trace.Changed && s.of.Resource == "endpoints":
			ep := s.New.(*corev1.Endpoints)
			text = "the cache of Endpoints: 10.0.0.1 is " +
				readiness(len(ep.Subsets) > 0 && len(ep.Subsets[0].Addresses) > 0)
		case s.Kind == trace.Wrote && s.of.Resource == "endpoints":
			wrote = true
			continue // The line is that of the reconcile.
		case s.Kind == trace.Ran:
			text = "a reconcile of web: " + outcome(&s.Step, wrote)
			wrote = false
		default:
			continue
		}
		lines = append(lines, fmt.Sprintf("%6v  %s", s.Time.Add(s.Took).Sub(c.began), text))
	}
	return lines
}

func readiness(is bool) string {
	if is {
		return "ready"
	}
	return "not ready"
}

func outcome(s *trace.Step, wrote bool) string {
	switch {
	case s.Outcome == "stale":
		return "put off, the cache lacks a write"
	case s.Err != nil:
		return "failed: " + strings.SplitN(s.Err.Error(), ":", 2)[0]
	case wrote:
		return "it writes the Endpoints"
	}
	return "nothing to do"
}
