// Package buildcalls has what the builders of controllers have in common, for one cluster and for many: they note the
// calls and the mistakes in them, and report all mistakes at the end.
package buildcalls

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// Calls are the calls of a builder so far. Begin makes the first.
type Calls struct {
	begun, named, optionsSet bool
	name                     string
	// hasFor: For was called. kind is that of its object; zero if For was called with a mistake.
	hasFor bool
	kind   schema.GroupVersionKind
	owns   bool
	inputs int // calls of Owns and Watches
	wrong  []error
}

// Begin returns the Calls of a builder that was made by ControllerManagedBy.
func Begin() Calls { return Calls{begun: true} }

// Misuse notes a mistake.
func (c *Calls) Misuse(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf(format, args...))
}

// Named notes the name of the controller.
func (c *Calls) Named(name string) {
	if err := misuse.Name(name); err != nil {
		c.Misuse("Named: %w; without Named it is the kind's", err)
	}
	c.name, c.named = name, true
}

// Options notes a call of WithOptions. standard is what zero workers mean.
func (c *Calls) Options(workers, standard int) {
	if c.optionsSet {
		c.Misuse("WithOptions was called twice: the second would undo the first; put all options into one")
	}
	if workers < 0 {
		c.Misuse("WithOptions: %d Workers; 0 means %d", workers, standard)
	}
	c.optionsSet = true
}

// Given notes an argument of a call, and reports whether it is not nil.
func (c *Calls) Given(call, what string, argument any) bool {
	if misuse.IsNil(argument) {
		c.Misuse("%s: the %s is nil", call, what)
		return false
	}
	return true
}

// Input is a call that watches objects of a kind.
type Input struct {
	Call   string // "For", for messages
	Object runtime.Object
	// EmptyHandler: the handler has no function. NilPredicate: one of the predicates is nil; see [HasNil]. EveryOwner:
	// MatchEveryOwner was given.
	EmptyHandler, NilPredicate, EveryOwner bool
	// KindOf returns the kind of an object whose type tells it. Nil: there is no manager to ask, which was noted.
	KindOf func(runtime.Object) (schema.GroupVersionKind, error)
}

// HasNil reports whether one of the arguments is nil.
func HasNil[T any](arguments []T) bool {
	return slices.ContainsFunc(arguments, func(a T) bool { return misuse.IsNil(a) })
}

// Input notes a call that watches objects. It returns their kind, and reports whether the call can be used.
func (c *Calls) Input(in Input) (kind schema.GroupVersionKind, ok bool) {
	if in.EmptyHandler {
		c.Misuse("%s(%T): the handler has no function; make one with handler.EnqueueMapped", in.Call, in.Object)
		return kind, false
	}
	again := in.Call == "For" && c.hasFor
	c.hasFor = c.hasFor || in.Call == "For"
	if misuse.IsNil(in.Object) {
		c.Misuse("%s: the object is nil; give an empty one, like &corev1.Pod{}", in.Call)
		return kind, false
	}
	if in.KindOf == nil {
		return kind, false
	}
	kind, err := in.Kind()
	switch {
	case again:
		c.Misuse("For was called twice: a controller reconciles one kind; let it Watch the other, or build a second " +
			"controller")
		return kind, false
	case err != nil:
		c.Misuse("%s(%T): %w", in.Call, in.Object, err)
		return kind, false
	case in.NilPredicate:
		c.Misuse("%s(%T): a predicate is nil", in.Call, in.Object)
		return kind, false
	case in.EveryOwner && in.Call != "Owns":
		c.Misuse("%s(%T): MatchEveryOwner is for Owns", in.Call, in.Object)
		return kind, false
	}
	if in.Call == "For" {
		c.kind = kind
		return kind, true
	}
	c.owns = c.owns || in.Call == "Owns"
	c.inputs++
	return kind, true
}

// Kind returns the kind of the object.
func (in *Input) Kind() (schema.GroupVersionKind, error) {
	switch in.Object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		told := in.Object.GetObjectKind().GroupVersionKind()
		if told.Kind == "" || told.Version == "" {
			return told, errors.New("the object does not say its kind: call SetGroupVersionKind on it")
		}
		return told, nil
	}
	return in.KindOf(in.Object)
}

// Kind returns the kind given to For.
func (c *Calls) Kind() schema.GroupVersionKind { return c.kind }

// End returns the name of the controller: that given to Named, or the kind given to For, in lower case. others is how
// many sources the controller has beside objects.
//
// Errors: all mistakes, joined; what is missing among them.
func (c *Calls) End(reconciler any, others int) (name string, err error) {
	name = c.name
	if !c.named {
		name = strings.ToLower(c.kind.Kind)
	}
	wrong := append(c.wrong[:len(c.wrong):len(c.wrong)], c.missing(reconciler, others)...)
	if len(wrong) == 0 {
		return name, nil
	}
	name = cmp.Or(name, "without a name")
	return name, fmt.Errorf("build controller %s: %w", name, errors.Join(wrong...))
}

// missing returns an error for each call that is missing.
func (c *Calls) missing(reconciler any, others int) (wrong []error) {
	if !c.begun {
		wrong = append(wrong, errors.New("there is no manager: begin with ControllerManagedBy"))
	}
	if err := misuse.Nil("the reconciler", reconciler); err != nil {
		wrong = append(wrong, err)
	}
	switch {
	case c.hasFor:
	case c.owns:
		wrong = append(wrong, errors.New("a call of Owns without For: whose owner is meant? "+
			"Call For(&Owner{}), or use Watches with a handler"))
	case c.inputs == 0 && others == 0:
		wrong = append(wrong, errors.New("nothing would ever be reconciled: call For(&Kind{})"))
	case !c.named:
		wrong = append(wrong, errors.New("a controller without For has no name: call Named"))
	}
	return wrong
}
