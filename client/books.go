package client

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// books hold what this process wrote and some cache has not seen, by resource: typed, unstructured and metadata caches, and all
// versions of an API, share a page.
type books struct {
	mu      sync.Mutex
	ledgers map[schema.GroupResource]*ledger
}

func (b *books) of(r schema.GroupResource) *ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.ledgers[r]
	if l == nil {
		l = &ledger{resource: r, entries: map[ObjectKey]*entry{}, unsettled: map[*write]struct{}{}}
		b.ledgers[r] = l
	}
	return l
}

func (b *books) all() []*ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*ledger, 0, len(b.ledgers))
	for _, l := range b.ledgers {
		all = append(all, l)
	}
	return all
}
