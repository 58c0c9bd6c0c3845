package localapi

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// TB is the part of *testing.T that [NewTest] uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Test is a server that belongs to a test. It has a log of requests, and rules that inject failures. Use
// [Server.RESTConfig] to make clients, for example by kubernetes.NewForConfig.
type Test struct {
	*Server
	t     TB
	rules *ruleGate
}

// NewTest returns a server for a test. It has the built-in types and the given objects, which may include definitions
// of custom resources (see [Server.Seed]). The server is closed when the test ends. In a [testing/synctest] bubble it
// uses the bubble's time.
//
// It takes the place of a fake client: writes are defaulted, validated and versioned, conflicts are real, and watches
// deliver what a real watch would.
func NewTest(t TB, objects ...runtime.Object) *Test {
	if t != nil {
		t.Helper()
	}
	return NewTestWith(t, Options{}, objects...)
}

// NewTestWith is [NewTest] with options. It adds an audit log if o has none.
func NewTestWith(t TB, o Options, objects ...runtime.Object) *Test {
	if t == nil {
		panic("localapi: NewTest: the test is nil: outside of tests, New makes a server")
	}
	t.Helper()
	r := &ruleGate{next: o.Gate}
	if o.Gate = r; o.Audit == nil {
		o.Audit = &audit.Log{}
	}
	server, err := New(o)
	if err != nil {
		t.Fatalf("new API server: %v", err)
		return nil
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close API server: %v", err)
		}
	})
	if err := server.Seed(context.Background(), objects...); err != nil {
		t.Fatalf("seed API server: %v", err)
		return nil
	}
	return &Test{Server: server, t: t, rules: r}
}

// Requests returns the requests answered so far, oldest first.
func (s *Test) Requests() []audit.Entry { return s.Audit().Entries(nil) }

// AssertNoWrites runs f and reports every write that the server receives meanwhile, successful or not. Dry runs and
// reviews (such as SelfSubjectAccessReview) do not count.
func (s *Test) AssertNoWrites(f func()) {
	s.t.Helper()
	before := len(s.Audit().Entries(wantsToWrite))
	f()
	for _, e := range s.Audit().Entries(wantsToWrite)[before:] {
		s.t.Errorf("a write where there should be none: %v", e)
	}
}

func wantsToWrite(e audit.Entry) bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !e.DryRun && e.Group != "authorization.k8s.io" && e.Group != "authentication.k8s.io"
	}
	return false
}

// Rule describes a failure to inject, or a request to observe. It applies to the requests that match all fields that
// are set.
type Rule struct {
	Verb, Group, Resource, Subresource string
	Namespace, Name                    string // Name never matches a create, whose name is not known

	// Nth selects one of the matching requests, counted from 1. 0 selects all.
	Nth int

	// Err is the error to answer with. An API error is sent as it is; any other error breaks the connection.
	Err error

	// Applied lets the request take effect before it fails.
	Applied bool

	// Do, if not nil, decides instead of Err. It may block.
	Do func(ctx context.Context, r *gate.Request) gate.Verdict
}

// Intercept adds a rule, which takes precedence over those added before, and returns a function that removes it. A rule
// without Subresource matches only requests without one.
func (s *Test) Intercept(r Rule) (remove func()) {
	added := &countedRule{Rule: r}
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	s.rules.list = append([]*countedRule{added}, s.rules.list...)
	return func() {
		s.rules.mu.Lock()
		defer s.rules.mu.Unlock()
		s.rules.list = slices.DeleteFunc(slices.Clone(s.rules.list),
			func(other *countedRule) bool { return other == added })
	}
}

type countedRule struct {
	Rule
	seen int // matching requests so far
}

// matches counts the request if it matches, and reports whether the rule applies to it.
func (r *countedRule) matches(q *gate.Request) bool {
	match := func(want, have string) bool { return want == "" || want == have }
	if !match(r.Verb, q.Verb) || !match(r.Group, q.Group) || !match(r.Resource, q.Resource) ||
		r.Subresource != q.Subresource || !match(r.Namespace, q.Namespace) || !match(r.Name, q.Name) {
		return false
	}
	r.seen++
	return r.Nth == 0 || r.Nth == r.seen
}

// ruleGate is the gate of a [Test]. It applies the test's own rules, and then the gate that the options name.
type ruleGate struct {
	next gate.Gate // may be nil

	mu   sync.Mutex
	list []*countedRule
	late map[*gate.Request]*countedRule // rules to apply after the request took effect
}

var _ gate.Gate = (*ruleGate)(nil)

// find returns the first rule that applies to a request, or nil.
func (r *ruleGate) find(q *gate.Request) *countedRule {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range r.list {
		if rule.matches(q) {
			return rule
		}
	}
	return nil
}

// Before implements [gate.Gate].
func (r *ruleGate) Before(ctx context.Context, q *gate.Request) gate.Verdict {
	rule := r.find(q)
	switch {
	case rule == nil:
	case rule.Applied:
		r.mu.Lock()
		if r.late == nil {
			r.late = map[*gate.Request]*countedRule{}
		}
		r.late[q] = rule
		r.mu.Unlock()
	default:
		if v := rule.verdict(ctx, q); v.Action != gate.Pass {
			return v
		}
	}
	if r.next != nil {
		return r.next.Before(ctx, q)
	}
	return gate.Verdict{}
}

// After implements [gate.Gate].
func (r *ruleGate) After(ctx context.Context, q *gate.Request, a gate.Answer) gate.Verdict {
	r.mu.Lock()
	rule := r.late[q]
	delete(r.late, q)
	r.mu.Unlock()
	if rule != nil {
		if v := rule.verdict(ctx, q); v.Action != gate.Pass {
			return v
		}
	}
	if r.next != nil {
		return r.next.After(ctx, q, a)
	}
	return gate.Verdict{}
}

// Frame implements [gate.Gate].
func (r *ruleGate) Frame(ctx context.Context, q *gate.Request, f gate.Frame) gate.Verdict {
	if r.next != nil {
		return r.next.Frame(ctx, q, f)
	}
	return gate.Verdict{}
}

func (r *countedRule) verdict(ctx context.Context, q *gate.Request) gate.Verdict {
	if r.Do != nil {
		return r.Do(ctx, q)
	}
	var status apierrors.APIStatus
	switch {
	case r.Err == nil:
		return gate.Verdict{}
	case errors.As(r.Err, &status):
		return gate.FailWith(status)
	}
	return gate.Verdict{Action: gate.Drop}
}
