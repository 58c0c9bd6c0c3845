package codec

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// CheckAliases refuses a YAML document that is larger than limit, in bytes, with its aliases written out. A few kilobytes
// of YAML can stand for gigabytes: each alias of a text is another copy of it in JSON, which everything is turned into.
// What is no YAML passes: the decoder says it better.
//
// Errors: RequestEntityTooLarge.
func CheckAliases(document []byte, limit int) error {
	if !bytes.ContainsRune(document, '&') {
		return nil // no anchor, no alias
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

// measure is the sizes of YAML nodes with their aliases written out.
type measure struct {
	limit int
	sizes map[*yaml.Node]int // of anchored nodes; -1 while one is being measured
}

// size is the size of a node. Above the limit it is not exact.
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
		return 0 // an anchor within itself, which the decoder refuses
	}
	return size
}

func (m *measure) sum(n *yaml.Node) int {
	size := len(n.Value) + 1 // and a separator
	for _, child := range n.Content {
		if size > m.limit {
			break
		}
		size += m.size(child)
	}
	return size
}
