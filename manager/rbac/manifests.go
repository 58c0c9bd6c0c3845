package rbac

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Role returns the smallest Role that allows the recorded calls in a namespace, except for leases: see LeaseRole. It is
// for processes that are restricted to some namespaces. Calls outside those namespaces are in no Role.
func (r *Recorder) Role(name, namespace string) *rbacv1.Role {
	calls := slices.DeleteFunc(r.Calls(), func(c Call) bool { return c.Namespace != namespace || c.isLease() })
	return newRole(name, namespace, Rules(calls))
}

// LeaseRole returns the smallest Role for the recorded leases of a namespace: it allows creating leases, and reading
// and writing those of the recorded names. RBAC cannot restrict the name of an object that is created by POST.
func (r *Recorder) LeaseRole(name, namespace string) *rbacv1.Role {
	verbs := r.leaseVerbs(namespace)
	var rules []rbacv1.PolicyRule
	for _, lease := range slices.Sorted(maps.Keys(verbs)) {
		rule := rbacv1.PolicyRule{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"},
			Verbs: verbs[lease],
		}
		if lease != "" {
			rule.ResourceNames = []string{lease}
			rule.Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return slices.Contains(verbs[""], v) })
		}
		if len(rule.Verbs) > 0 {
			rules = append(rules, rule)
		}
	}
	return newRole(name, namespace, rules)
}

// leaseVerbs returns the recorded verbs on the leases of a namespace, by name; "" stands for all names.
func (r *Recorder) leaseVerbs(namespace string) map[string][]string {
	verbs := map[string][]string{}
	for _, c := range r.Calls() {
		if !c.isLease() || c.Namespace != namespace {
			continue
		}
		r.mu.Lock()
		for lease := range r.leases[c] {
			verbs[lease] = append(verbs[lease], c.Verb)
		}
		r.mu.Unlock()
	}
	return verbs
}

func newRole(name, namespace string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Rules:      rules,
	}
}

// grantsNote precedes the manifests of a process that writes roles or bindings, because the rights that these grant
// were not recorded.
const grantsNote = `# The process writes roles or bindings. An API server lets nobody grant what they do not have: add the rules
# that it grants, or the verbs "escalate" (to write any role) and "bind" (to bind a role), for resourceNames where possible.
`

// signsNote precedes the manifests of a process that approves or signs certificate requests, because the signers were
// not recorded.
const signsNote = `# The process approves requests for certificates, or issues them. That needs the verbs "approve" (for the
# subresource approval) and "sign" (for status) on signers.certificates.k8s.io: add them, with the signers as resourceNames.
`

// Manifests returns, as YAML, a ClusterRole of that name for all recorded calls in any namespace, a Role for the leases
// in namespace, and bindings of both to a service account there.
func (r *Recorder) Manifests(name, namespace, account string) ([]byte, error) {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}}
	ref := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	typeOf := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	objects := []any{r.ClusterRole(name, "leases"), &rbacv1.ClusterRoleBinding{
		TypeMeta: typeOf("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: ref("ClusterRole", name), Subjects: subjects,
	}}
	if role := r.LeaseRole(name+"-lease", namespace); len(role.Rules) > 0 {
		objects = append(objects, role, &rbacv1.RoleBinding{
			TypeMeta: typeOf("RoleBinding"), ObjectMeta: role.ObjectMeta, RoleRef: ref("Role", role.Name),
			Subjects: subjects,
		})
	}
	var out bytes.Buffer
	if slices.ContainsFunc(r.Calls(), Call.grants) {
		out.WriteString(grantsNote)
	}
	if slices.ContainsFunc(r.Calls(), Call.signs) {
		out.WriteString(signsNote)
	}
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("print the roles: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
