package registry

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
)

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
