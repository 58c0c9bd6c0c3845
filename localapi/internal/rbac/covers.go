package rbac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// permission is the smallest possible rule: one verb on one resource, with one name or none, or on one path outside
// resources.
type permission struct {
	verb, group, resource, name string
	named                       bool
	url                         string // if set, only the verb is set besides
}

// uncovered returns the permissions of asked that held does not include. A single rule of held must include a
// permission as a whole.
//
// Source: k8s.io/component-helpers v0.37.2 auth/rbac/validation/policy_comparator.go Covers.
func uncovered(held, asked []rbacv1.PolicyRule) []permission {
	var missing []permission
	for _, rule := range asked {
		for _, p := range permissions(&rule) {
			if !slices.ContainsFunc(held, p.in) {
				missing = append(missing, p)
			}
		}
	}
	return missing
}

// permissions returns everything that a rule gives. The loops nest as the real server's do, because the order shows in
// messages.
func permissions(rule *rbacv1.PolicyRule) (all []permission) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				p := permission{verb: verb, group: group, resource: resource}
				if len(rule.ResourceNames) == 0 {
					all = append(all, p)
				}
				for _, p.name = range rule.ResourceNames {
					p.named = true
					all = append(all, p)
				}
			}
		}
	}
	for _, url := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			all = append(all, permission{verb: verb, url: url})
		}
	}
	return all
}

// in reports whether a rule includes the permission.
func (p permission) in(rule rbacv1.PolicyRule) bool {
	if !contains(rule.Verbs, rbacv1.VerbAll, p.verb) {
		return false
	}
	if p.url != "" {
		// In the real server, the names of a rule restrict everything that it gives, including paths.
		return len(rule.ResourceNames) == 0 && coversURL(rule.NonResourceURLs, p.url)
	}
	resource, subresource, _ := strings.Cut(p.resource, "/")
	return contains(rule.APIGroups, rbacv1.APIGroupAll, p.group) &&
		coversResource(rule.Resources, resource, subresource) &&
		(len(rule.ResourceNames) == 0 || p.named && slices.Contains(rule.ResourceNames, p.name))
}

// describeAll describes permissions, with a line for each resource and each path.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/rbac/validation/policy_compact.go,
// pkg/apis/rbac/v1/evaluation_helpers.go CompactString.
func describeAll(missing []permission) string {
	lines := map[string]bool{}
	verbs := map[permission][]string{} // of one resource
	for _, p := range missing {
		if p.url != "" {
			lines[fmt.Sprintf("{NonResourceURLs:[%q], Verbs:[%q]}", p.url, p.verb)] = true
			continue
		}
		of := p
		of.verb = ""
		verbs[of] = append(verbs[of], p.verb)
	}
	for of, verbs := range verbs {
		line := fmt.Sprintf("{APIGroups:[%q], Resources:[%q]", of.group, of.resource)
		if of.named {
			line += fmt.Sprintf(", ResourceNames:[%q]", of.name)
		}
		lines[line+fmt.Sprintf(", Verbs:%q}", verbs)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(lines)), "\n")
}
