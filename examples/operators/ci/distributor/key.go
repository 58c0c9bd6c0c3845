package distributor

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
)

// Key names a tag, and the cluster that it is to be brought to.
type Key struct {
	Cluster string
	imagestreamtag.Ref
}

// String is "cluster_namespace/stream:tag": no namespace has an underscore.
func (k Key) String() string { return k.Cluster + "_" + k.Ref.String() }

// ParseKey reads what [Key.String] writes.
func ParseKey(text string) (Key, error) {
	slash := strings.Index(text, "/")
	i := strings.LastIndex(text[:max(slash, 0)], "_")
	if i <= 0 {
		return Key{}, fmt.Errorf("%q is no key: want cluster_namespace/stream:tag", text)
	}
	ref, err := imagestreamtag.Parse(text[i+1:])
	return Key{text[:i], ref}, err
}
