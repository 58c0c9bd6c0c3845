package rbac

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/requestinfo"
)

// Call is a kind of request. It has the attributes by which RBAC decides access to a resource, except the object's
// name.
type Call struct {
	Group, Resource, Subresource, Namespace, Verb string
}

// Recorder records the kinds of requests that pass through it.
//
// Concurrency: all methods may be called from any goroutine.
type Recorder struct {
	mu sync.Mutex
	// calls holds, for the calls that a role restricts to names, the names; "" stands for a call without a name.
	calls map[Call]map[string]struct{}
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{calls: map[Call]map[string]struct{}{}}
}

// Wrap wraps a transport; pass it to rest.Config.Wrap.
//
// A request on behalf of another user (rest.Config.Impersonate) is recorded as the impersonation of that user. The
// request itself must be allowed to that user, not to the process.
//
// An apply request creates or updates the object, depending on whether it exists, so it is recorded as both. So is a
// PUT that was answered with "201 Created".
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		c, name, ok := parse(req)
		if user := r.noteImpersonation(req.Header); user || !ok || identifies(c, name) {
			return next.RoundTrip(req)
		}
		r.note(c, name)
		create := c
		create.Verb = "create"
		if isApply(req) && c.Subresource == "" {
			r.note(create, name)
		}
		resp, err := next.RoundTrip(req)
		if err == nil && c.Verb == "update" && resp.StatusCode == http.StatusCreated {
			r.note(create, name)
		}
		return resp, err
	})
}

// identifies reports whether the call is the one by which informers detect that the server was replaced. The recorded
// roles leave it out, because informers work without it; deploy/manager.yaml has a role for it.
func identifies(c Call, name string) bool {
	return c == Call{Resource: "namespaces", Verb: "get"} && name == metav1.NamespaceSystem
}

func isApply(req *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	return err == nil && req.Method == http.MethodPatch &&
		(mediaType == string(types.ApplyYAMLPatchType) || mediaType == string(types.ApplyCBORPatchType))
}

func (r *Recorder) note(c Call, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[c] == nil {
		r.calls[c] = map[string]struct{}{}
	}
	if c.isLease() || c.impersonates() {
		r.calls[c][name] = struct{}{}
	}
}

// isLease reports whether the call is about a lease. A role can name the leases, because a process knows their names.
func (c Call) isLease() bool { return c.Group == coordinationv1.GroupName && c.Resource == "leases" }

// grants reports whether the call can grant rights.
func (c Call) grants() bool {
	return c.Group == rbacv1.GroupName && slices.Contains([]string{"create", "update", "patch"}, c.Verb)
}

// signs reports whether the call can approve or sign a certificate request.
func (c Call) signs() bool {
	return c.Group == certificatesv1.GroupName && slices.Contains([]string{"approval", "status"}, c.Subresource) &&
		slices.Contains([]string{"update", "patch"}, c.Verb)
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// parse interprets a request as the API server's authorizer does, and returns the name of the object. ok is false if
// the request is not for a resource.
func parse(r *http.Request) (c Call, name string, ok bool) {
	i, err := requestinfo.Parse(r.Method, r.URL, r.URL.Query())
	if err != nil || !i.IsResource || i.Verb == "" {
		return Call{}, "", false
	}
	c = Call{Group: i.Group, Resource: i.Resource, Subresource: i.Subresource, Verb: i.Verb}
	if i.Within {
		c.Namespace = i.Namespace
	}
	return c, i.Name, true
}

// Calls returns the recorded calls, sorted.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := slices.Collect(maps.Keys(r.calls))
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Subresource, b.Subresource),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Verb, b.Verb))
	})
	return calls
}

// ClusterRole returns the smallest ClusterRole that allows the recorded calls in any namespace, except for those on the
// resources in except (such as "leases"), which belong in a Role.
func (r *Recorder) ClusterRole(name string, except ...string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	role.Rules = r.rules(func(c Call) bool { return !slices.Contains(except, c.Resource) })
	return role
}

// rules returns the smallest rules for those of the recorded calls for which include returns true.
func (r *Recorder) rules(include func(Call) bool) []rbacv1.PolicyRule {
	calls := slices.DeleteFunc(r.Calls(), func(c Call) bool { return !include(c) })
	rules := Rules(slices.DeleteFunc(slices.Clone(calls), Call.impersonates))
	return append(rules, r.impersonations(calls)...)
}

// Rules returns the smallest rules that allow the calls in all namespaces: one for each group and set of verbs, without
// "*".
func Rules(calls []Call) (rules []rbacv1.PolicyRule) {
	type resource struct{ group, name string }
	verbs := map[resource][]string{}
	var order []resource
	for _, c := range calls {
		of := resource{c.Group, c.Resource}
		if c.Subresource != "" {
			of.name += "/" + c.Subresource
		}
		if verbs[of] == nil {
			order = append(order, of)
		}
		if !slices.Contains(verbs[of], c.Verb) {
			verbs[of] = append(verbs[of], c.Verb)
			slices.Sort(verbs[of])
		}
	}
	for _, of := range order {
		i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == of.group && slices.Equal(r.Verbs, verbs[of])
		})
		if i >= 0 {
			rules[i].Resources = append(rules[i].Resources, of.name)
			continue
		}
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{of.group}, Resources: []string{of.name}, Verbs: verbs[of]})
	}
	return rules
}

// Compare compares the rules of a role with calls, whatever their namespaces. missing are the calls that the rules do
// not allow. unused is what the rules allow and no call needs, for example because no test makes the call. Rules with
// resource names, except those for impersonation, and rules for paths are ignored, because a Call has neither.
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

// permissions returns a call for each combination of group, resource and verb of the rules. Fields of the calls may be
// "*".
func permissions(rules []rbacv1.PolicyRule) (all []Call) {
	for _, r := range rules {
		if len(r.ResourceNames) > 0 && !slices.Contains(r.Verbs, impersonate) {
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

// Role returns the smallest Role that allows the recorded calls in a namespace, except for leases: see LeaseRole. It is
// for processes that are restricted to some namespaces. Calls outside those namespaces are in no Role.
func (r *Recorder) Role(name, namespace string) *rbacv1.Role {
	rules := r.rules(func(c Call) bool { return c.Namespace == namespace && !c.isLease() })
	return newRole(name, namespace, rules)
}

// LeaseRole returns the smallest Role for the recorded leases of a namespace. Its rules name the leases, except for
// calls without a name, such as a create by POST, which RBAC cannot restrict to names.
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
		for lease := range r.calls[c] {
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
const grantsNote = "# The process writes roles or bindings. An API server lets nobody grant what they do not have: " +
	"add the rules\n# that it grants, or the verbs \"escalate\" (to write any role) and \"bind\" (to bind a role), " +
	"for resourceNames where possible.\n"

// signsNote precedes the manifests of a process that approves or signs certificate requests, because the signers were
// not recorded.
const signsNote = "# The process approves requests for certificates, or issues them. That needs the verbs " +
	"\"approve\" (for the\n# subresource approval) and \"sign\" (for status) on signers.certificates.k8s.io: " +
	"add them, with the signers as resourceNames.\n"

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
