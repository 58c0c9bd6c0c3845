package codec

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// CheckAliases rejects a YAML document that is larger than limit, in bytes, with its aliases expanded. A few kilobytes
// of YAML can stand for gigabytes, because everything is converted to JSON, where each alias becomes another copy of
// its text. Text that is not YAML passes: the decoder has the better error.
//
// Errors: RequestEntityTooLarge.
func CheckAliases(document []byte, limit int) error {
	if !bytes.ContainsRune(document, '&') {
		return nil // no anchors, no aliases
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil
	}
	m := measure{limit: limit, sizes: map[*yaml.Node]int{}}
	if m.size(&root) > limit {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"with its aliases written out the YAML document is larger than the limit of %d bytes", limit))
	}
	return nil
}

// measure computes the sizes of YAML nodes with their aliases expanded.
type measure struct {
	limit int
	sizes map[*yaml.Node]int // of anchored nodes; -1 while one is being measured
}

// size returns the size of a node. Above the limit it is not exact.
func (m *measure) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor == "" {
		return m.sum(n)
	}
	size, known := m.sizes[n]
	switch {
	case !known:
		m.sizes[n] = -1
		size = m.sum(n)
		m.sizes[n] = size
	case size < 0:
		return 0 // an anchor within itself, which the decoder rejects
	}
	return size
}

func (m *measure) sum(n *yaml.Node) int {
	size := len(n.Value) + 1 // plus a separator
	for _, child := range n.Content {
		if size > m.limit {
			break
		}
		size += m.size(child)
	}
	return size
}
