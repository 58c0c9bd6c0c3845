package registry

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

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

// shardRange is one term of a shard selector: shardRange(object.metadata.uid, '0x0000000000000000',
// '0x8000000000000000').
var shardRange = regexp.MustCompile(
	`^\s*shardRange\(\s*([A-Za-z_][A-Za-z0-9_.]*)\s*,\s*(?:'([^']*)'|"([^"]*)")\s*,\s*(?:'([^']*)'|"([^"]*)")\s*\)\s*$`,
)

// parseShardSelector parses a shard selector: ranges of one field's hash, joined by ||. (A real server parses it as CEL
// and then allows only such ranges. So its errors for other terms have other messages.)
//
// Source: k8s.io/apiserver v0.37.2 pkg/sharding/parser.go, KEP-5866.
func parseShardSelector(s string) (sharding.Selector, error) {
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("empty shard selector is not allowed; omit the parameter for unfiltered lists")
	}
	var ranges []sharding.ShardRangeRequirement
	for term := range strings.SplitSeq(s, "||") {
		r, err := parseShardRange(term)
		if err != nil {
			return nil, err
		}
		if len(ranges) > 0 && r.Key != ranges[0].Key {
			return nil, fmt.Errorf("all shard ranges must use the same field, got %q and %q", ranges[0].Key, r.Key)
		}
		ranges = append(ranges, r)
	}
	return sharding.NewSelector(ranges...), nil
}

func parseShardRange(term string) (sharding.ShardRangeRequirement, error) {
	var r sharding.ShardRangeRequirement
	m := shardRange.FindStringSubmatch(term)
	if m == nil {
		return r, fmt.Errorf("unexpected expression %q; only shardRange() and || are allowed", strings.TrimSpace(term))
	}
	r = sharding.ShardRangeRequirement{Key: m[1], Start: m[2] + m[3], End: m[4] + m[5]}
	if r.Key != "object.metadata.uid" && r.Key != "object.metadata.namespace" {
		return r, fmt.Errorf("unsupported field path %q; supported: object.metadata.uid, object.metadata.namespace",
			r.Key)
	}
	if err := checkHash(r.Start, "hexStart"); err != nil {
		return r, err
	}
	if err := checkHash(r.End, "hexEnd"); err != nil {
		return r, err
	}
	if !sharding.HexLess(r.Start, r.End) {
		return r, fmt.Errorf("shard range start %s must be less than end %s", r.Start, r.End)
	}
	return r, nil
}

// checkHash returns an error unless s is a bound of 64 bits: 16 hexadecimal digits, or 2^64.
func checkHash(s, name string) error {
	const digits, afterLast = 16, "0x10000000000000000"
	hex, ok := strings.CutPrefix(s, "0x")
	invalid := strings.Trim(hex, "0123456789abcdef")
	switch {
	case !ok:
		return fmt.Errorf("%s must have '0x' prefix, got %q", name, s)
	case hex == "":
		return fmt.Errorf("%s: hex value is required after '0x'", name)
	case len(hex) > digits+1:
		return fmt.Errorf("%s: hex value too long (%d chars, max 17): %q", name, len(hex), hex)
	case invalid != "":
		return fmt.Errorf("%s: invalid hex character %q in %q", name, invalid[:1], s)
	case len(hex) > digits && s != afterLast:
		return fmt.Errorf("%s: 17-digit hex value must be '0x10000000000000000' (2^64), got %q", name, s)
	case len(hex) < digits:
		return fmt.Errorf("%s must be a 0x-prefixed 16-digit hex value, got %q (did you mean %q?)", name, s,
			"0x"+strings.Repeat("0", digits-len(hex))+hex)
	}
	return nil
}
