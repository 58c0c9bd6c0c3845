package registry

import (
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// Selection selects the objects of a resource for a list or watch. The zero value selects all.
type Selection struct {
	Namespace string
	Name      string
	Labels    labels.Selector   // nil: all
	Fields    fields.Selector   // nil: all; metadata.name and metadata.namespace included
	Shard     sharding.Selector // nil: all
}

// SetShard restricts the selection to one of its shards. Errors: BadRequest.
func (s *Selection) SetShard(selector string) error {
	shard, err := parseShardSelector(selector)
	if err != nil {
		return apierrors.NewBadRequest("invalid shard selector: " + err.Error())
	}
	s.Shard = shard
	return nil
}

// NewSelection builds a selection from a request's namespace and selectors. Errors: BadRequest for fields that the type
// cannot be selected by.
func (r *Resource) NewSelection(namespace string, l labels.Selector, f fields.Selector) (Selection, error) {
	s := Selection{Namespace: namespace}
	if l != nil && !l.Empty() {
		s.Labels = l
	}
	if f == nil || f.Empty() {
		return s, nil
	}
	s.Fields = f
	known := fields.Set{"metadata.name": "", "metadata.namespace": ""}
	typed := r.Definition.Fields != nil || r.Definition.Coerce != nil
	if r.Definition.Fields != nil {
		for k := range r.Definition.Fields(r.New()) {
			known[k] = ""
		}
	}
	for _, requirement := range f.Requirements() {
		if known.Has(requirement.Field) {
			continue
		}
		if typed {
			return s, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
		return s, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only %q, %q",
			requirement.Field, "metadata.name", "metadata.namespace"))
	}
	if name, ok := f.RequiresExactMatch("metadata.name"); ok {
		s.Name = name
	}
	if ns, ok := f.RequiresExactMatch("metadata.namespace"); ok && namespace == "" && r.Definition.Namespaced {
		s.Namespace = ns
	}
	return s, nil
}

// all reports whether the selection is a whole namespace or collection.
func (s Selection) all() bool {
	return s.Name == "" && s.Labels == nil && s.Fields == nil && s.Shard == nil
}

// matches reports whether o is selected.
func (s Selection) matches(d *resource.Definition, o *watchcache.Object) bool {
	if s.Namespace != "" && d.Namespaced && o.Meta.GetNamespace() != s.Namespace {
		return false
	}
	if s.Name != "" && o.Meta.GetName() != s.Name {
		return false
	}
	if s.Labels != nil && !s.Labels.Matches(labels.Set(o.Meta.GetLabels())) {
		return false
	}
	if s.Shard != nil {
		if in, err := s.Shard.Matches(o.Object); err != nil || !in {
			return false
		}
	}
	if s.Fields == nil {
		return true
	}
	set := fields.Set{}
	if d.Fields != nil {
		maps.Copy(set, d.Fields(o.Object))
	}
	set["metadata.name"], set["metadata.namespace"] = o.Meta.GetName(), o.Meta.GetNamespace()
	return s.Fields.Matches(set)
}
