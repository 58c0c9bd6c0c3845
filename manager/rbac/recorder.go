package rbac

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/requestinfo"
)

// Call is one kind of request: what RBAC decides access to a resource by, except for the object's name.
type Call struct {
	Group, Resource, Subresource, Namespace, Verb string
}

// Recorder records the kinds of requests that pass through it.
//
// Concurrency: all methods may be called from any goroutine.
type Recorder struct {
	mu    sync.Mutex
	calls map[Call]struct{}
	// leases holds the names of the leases by call; "" stands for a call without a name.
	leases map[Call]map[string]struct{}
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{calls: map[Call]struct{}{}, leases: map[Call]map[string]struct{}{}}
}

// Wrap wraps a transport; pass it to rest.Config.Wrap.
//
// An apply request creates or updates the object, depending on whether it exists, so it is recorded as both. So is a
// PUT that was answered with "201 Created".
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		c, name, ok := parse(req)
		if !ok || identifies(c, name) {
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

// identifies reports whether the call is the one by which informers detect that the server was replaced. It is in no
// role, because informers work without it; deploy/manager.yaml has a role for it.
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
	r.calls[c] = struct{}{}
	if c.isLease() {
		if r.leases[c] == nil {
			r.leases[c] = map[string]struct{}{}
		}
		r.leases[c][name] = struct{}{}
	}
}

// isLease reports whether the call is about a lease. Leases are the only resource of which a process needs objects of
// known names.
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
	calls := make([]Call, 0, len(r.calls))
	for c := range r.calls {
		calls = append(calls, c)
	}
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
	role.Rules = Rules(slices.DeleteFunc(r.Calls(), func(c Call) bool { return slices.Contains(except, c.Resource) }))
	return role
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
