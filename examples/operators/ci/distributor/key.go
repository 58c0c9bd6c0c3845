package distributor

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
)

// Key names a tag, and the cluster to bring it to.
type Key struct {
	Cluster string
	imagestreamtag.Ref
}

// String returns "cluster_namespace/stream:tag". It is unambiguous because a namespace has no underscore.
func (k Key) String() string { return k.Cluster + "_" + k.Ref.String() }

// ParseKey is the inverse of [Key.String].
func ParseKey(text string) (Key, error) {
	slash := strings.Index(text, "/")
	i := strings.LastIndex(text[:max(slash, 0)], "_")
	if i <= 0 {
		return Key{}, fmt.Errorf("%q is no key: want cluster_namespace/stream:tag", text)
	}
	ref, err := imagestreamtag.Parse(text[i+1:])
	return Key{text[:i], ref}, err
}
