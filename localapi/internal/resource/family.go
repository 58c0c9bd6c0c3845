package resource

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Family is one type that is served as several kinds: versions of one group, or kinds of two groups. The objects are
// the same, and are stored as the first member. All members have one resource name.
type Family struct {
	Members []Member
}

// Member is one of the kinds of a [Family].
type Member struct {
	Kind schema.GroupVersionKind
	New  func() runtime.Object

	// ToFirst converts an object of the kind to one of the first member, and FromFirst the other way round. The result
	// may share parts with the argument. Both are nil in the first member.
	ToFirst, FromFirst func(runtime.Object) runtime.Object
}

// Stored returns the member as which objects are stored.
func (f *Family) Stored() Member { return f.Members[0] }

// Member returns the member of a kind.
func (f *Family) Member(kind schema.GroupVersionKind) (m Member, ok bool) {
	for _, m := range f.Members {
		if m.Kind == kind {
			return m, true
		}
	}
	return Member{}, false
}

// Convert returns obj, whose kind must be set, as an object of another member. ok is false if one of the kinds is not a
// member.
func (f *Family) Convert(obj runtime.Object, kind schema.GroupVersionKind) (converted runtime.Object, ok bool) {
	from, known := f.Member(obj.GetObjectKind().GroupVersionKind())
	to, wanted := f.Member(kind)
	switch {
	case !known || !wanted:
		return nil, false
	case from.Kind == kind:
		return obj, true
	}
	if from.ToFirst != nil {
		obj = from.ToFirst(obj)
	}
	if to.FromFirst != nil {
		obj = to.FromFirst(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj, true
}
