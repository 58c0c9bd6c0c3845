package rbac

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Compare compares the rules of a role with calls, whatever their namespaces. missing are the calls that the rules do
// not allow. unused is what the rules allow and no call needs, for example because no test makes the call. Rules with
// resource names and rules for paths are ignored, because a Call has neither.
func Compare(rules []rbacv1.PolicyRule, calls []Call) (missing []Call, unused []rbacv1.PolicyRule) {
	allowed := permissions(rules)
	for _, c := range calls {
		c.Namespace = ""
		if !slices.ContainsFunc(allowed, func(p Call) bool { return p.allows(c) }) && !slices.Contains(missing, c) {
			missing = append(missing, c)
		}
	}
	needless := slices.DeleteFunc(allowed, func(p Call) bool { return slices.ContainsFunc(calls, p.allows) })
	return missing, Rules(needless)
}

// permissions returns a call for each combination of group, resource and verb of the rules. It may have "*".
func permissions(rules []rbacv1.PolicyRule) (all []Call) {
	for _, r := range rules {
		if len(r.ResourceNames) > 0 {
			continue
		}
		for _, group := range r.APIGroups {
			for _, path := range r.Resources {
				resource, subresource, _ := strings.Cut(path, "/")
				for _, verb := range r.Verbs {
					all = append(all, Call{Group: group, Resource: resource, Subresource: subresource, Verb: verb})
				}
			}
		}
	}
	return all
}

// allows reports whether a permission covers a call.
func (c Call) allows(asked Call) bool {
	is := func(allowed, asked string) bool { return allowed == "*" || allowed == asked }
	everything := c.Resource == "*" && c.Subresource == "" // subresources as well
	return is(c.Group, asked.Group) && is(c.Verb, asked.Verb) &&
		(everything || is(c.Resource, asked.Resource) && c.Subresource == asked.Subresource)
}

// String returns the call in words, such as "patch deployments/status of group apps".
func (c Call) String() string {
	resource := c.Resource
	if c.Subresource != "" {
		resource += "/" + c.Subresource
	}
	text := c.Verb + " " + resource + " of group " + cmp.Or(c.Group, `""`)
	if c.Namespace != "" {
		text += " in namespace " + c.Namespace
	}
	return text
}
