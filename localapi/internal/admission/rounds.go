package admission

import (
	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Rounds are the two rounds of a write's mutations, as a plugin sees them that calls others: webhooks or policies. In
// the second round it calls only those that want it and after whose call the object changed.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook/mutating/reinvocationcontext.go,
// pkg/admission/plugin/policy/mutating/reinvocationcontext.go.
type Rounds struct {
	attributes *Attributes
	last       runtime.Object   // what the plugin made in the last round
	called     sets.Set[string] // the callees that want to be called again if the object changes
	renewed    sets.Set[string] // those of them after whose call the object did change
}

// Rounds returns the rounds of plugin p, which begins one of them.
func (a *Attributes) Rounds(p Plugin) *Rounds {
	r := a.rounds[p]
	if r == nil {
		r = &Rounds{attributes: a, called: sets.New[string](), renewed: sets.New[string]()}
		if a.rounds == nil {
			a.rounds = map[Plugin]*Rounds{}
		}
		a.rounds[p] = r
	}
	if a.again && !equality.Semantic.DeepEqual(r.last, a.Object) {
		r.renew()
	}
	return r
}

// Again reports whether this is the second round.
func (r *Rounds) Again() bool { return r.attributes.again }

// Skip reports whether a callee is not called in this round.
func (r *Rounds) Skip(id string) bool { return r.attributes.again && !r.renewed.Has(id) }

// Changed notes that a callee has changed the object. There will be a second round, for all plugins.
func (r *Rounds) Changed() {
	r.renew()
	r.attributes.wanted = true
}

func (r *Rounds) renew() {
	r.renewed = r.renewed.Union(r.called)
	r.called = sets.New[string]()
}

// Called notes that a callee was called.
func (r *Rounds) Called(id string, policy registrationv1.ReinvocationPolicyType) {
	if policy == registrationv1.IfNeededReinvocationPolicy {
		r.called.Insert(id)
	}
}

// End notes what the plugin has made in this round.
func (r *Rounds) End() { r.last = r.attributes.Object }
