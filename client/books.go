package client

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
)

// books hold what this process wrote and some cache has not seen, by resource: typed, unstructured and metadata caches, and all
// versions of an API, share a page.
type books struct {
	// history returns the number of the server's history.
	history func() int64
	// informers are those of all caches; nil when there are none.
	informers *informer.Factory

	mu      sync.Mutex
	ledgers map[schema.GroupResource]*ledger
}

// historyOf returns what numbers the histories of the server that a factory follows. Without a factory there is one.
func historyOf(f *informer.Factory) func() int64 {
	if f == nil {
		return func() int64 { return 0 }
	}
	return f.History
}

func (b *books) of(r schema.GroupResource) *ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.ledgers[r]
	if l == nil {
		l = &ledger{resource: r, history: b.history, informers: b.informers, entries: map[ObjectKey]*entry{}, unsettled: map[*write]struct{}{}}
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
