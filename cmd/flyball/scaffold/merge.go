package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A new kind extends files that controller-gen writes. The functions here do it as controller-gen would, so that the
// project compiles and its tests pass before controller-gen runs for the first time.

// method matches the head of a function in zz_generated.deepcopy.go. Its groups are the type and the method.
var method = regexp.MustCompile(`(?m)^func \(in (?:\*|)([A-Za-z0-9]+)\) (DeepCopy[A-Za-z]*)\(`)

// mergeDeepCopy adds the functions of more to old, sorted by type.
func mergeDeepCopy(old, more []byte) []byte {
	head, functions := splitFunctions(string(old))
	_, added := splitFunctions(string(more))
	for key, text := range added {
		functions[key] = text
	}
	keys := make([][2]string, 0, len(functions))
	for key := range functions {
		keys = append(keys, key)
	}
	order := []string{"DeepCopyInto", "DeepCopy", "DeepCopyObject"}
	slices.SortFunc(keys, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(slices.Index(order, a[1]), slices.Index(order, b[1])))
	})
	var merged strings.Builder
	merged.WriteString(head)
	for _, key := range keys {
		merged.WriteString("\n\n" + functions[key])
	}
	merged.WriteString("\n")
	return []byte(merged.String())
}

// splitFunctions splits a file into what comes before its functions, and the functions with their comments by type and
// method.
func splitFunctions(text string) (head string, functions map[[2]string]string) {
	functions = map[[2]string]string{}
	parts := strings.Split(strings.TrimSpace(text), "\n\n// DeepCopy")
	for _, part := range parts[1:] {
		part = "// DeepCopy" + part
		if m := method.FindStringSubmatch(part); m != nil {
			functions[[2]string{m[1], m[2]}] = part
		}
	}
	return parts[0], functions
}

// documents is what separates the documents of a file of YAML.
var documents = regexp.MustCompile(`(?m)^---[ \t]*\n`)

// mergeRole adds the rules of more to the ClusterRole of old: a resource to the rule of its group that has the same
// verbs, if there is one. Other documents stay as they are.
func mergeRole(old, more []byte) ([]byte, error) {
	var added rbacv1.ClusterRole
	if err := yaml.Unmarshal(more, &added); err != nil {
		return nil, err
	}
	var result []byte
	merged := false
	for _, document := range documents.Split(string(old), -1) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("%s: %w", rolePath, err)
		}
		switch {
		case strings.TrimSpace(document) == "":
		case merged || role.Kind != "ClusterRole":
			result = append(result, "---\n"+document...)
		default:
			text, err := extendRole(&role, added.Rules)
			if err != nil {
				return nil, err
			}
			result, merged = append(result, text...), true
		}
	}
	if !merged {
		return append(slices.Clone(more), result...), nil
	}
	return result, nil
}

// extendRole adds rules to a role, and returns its text.
func extendRole(role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) ([]byte, error) {
	for _, rule := range rules {
		addRule(role, rule)
	}
	slices.SortStableFunc(role.Rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources))
	})
	return marshalRole(role)
}

func addRule(role *rbacv1.ClusterRole, rule rbacv1.PolicyRule) {
	for i, r := range role.Rules {
		if slices.Equal(r.APIGroups, rule.APIGroups) && slices.Equal(r.Verbs, rule.Verbs) && len(r.ResourceNames) == 0 {
			resources := append(slices.Clone(r.Resources), rule.Resources...)
			slices.Sort(resources)
			role.Rules[i].Resources = slices.Compact(resources)
			return
		}
	}
	role.Rules = append(role.Rules, rule)
}

// emptyRole is the role of a project without kinds.
func emptyRole() *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{}}
	role.APIVersion, role.Kind, role.Name = rbacv1.SchemeGroupVersion.String(), "ClusterRole", "manager-role"
	return role
}

// marshalRole writes a role in controller-gen's form.
func marshalRole(role *rbacv1.ClusterRole) ([]byte, error) {
	text, err := yaml.Marshal(role)
	return append([]byte("---\n"), bytes.ReplaceAll(text, []byte("  creationTimestamp: null\n"), nil)...), err
}
