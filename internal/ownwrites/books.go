package ownwrites

import (
	"context"
	"sync"

	"github.com/flyball-dev/flyball/informer"
)

// Books are the logs of all servers that a process writes to. The zero value has none.
//
// Concurrency: all methods may be called from any goroutine.
type Books struct {
	mu   sync.Mutex
	logs map[*Log]struct{}
	// past is what was counted by logs that were removed.
	past uint64
}

// Add has l note what is written from now on.
func (b *Books) Add(l *Log) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.logs == nil {
		b.logs = map[*Log]struct{}{}
	}
	b.logs[l] = struct{}{}
	l.active.Store(true)
}

// Remove forgets l, and what it noted.
func (b *Books) Remove(l *Log) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, has := b.logs[l]; !has {
		return
	}
	delete(b.logs, l)
	l.active.Store(false)
	l.forget()
	b.past += l.begun.Load() + l.ended.Load()
}

func (b *Books) all() []*Log {
	b.mu.Lock()
	defer b.mu.Unlock()
	logs := make([]*Log, 0, len(b.logs))
	for l := range b.logs {
		logs = append(logs, l)
	}
	return logs
}

// Moving says whether a write is on its way.
func (b *Books) Moving() bool {
	for _, l := range b.all() {
		if l.begun.Load() != l.ended.Load() && !l.away() {
			return true
		}
	}
	return false
}

// Count is the number of writes that were begun and that were ended. It only rises.
func (b *Books) Count() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.past
	for l := range b.logs {
		n += l.begun.Load() + l.ended.Load()
	}
	return n
}

// Behind says whether there are writes that the caches do not show. It may ask servers.
func (b *Books) Behind(ctx context.Context) (behind bool) {
	for _, l := range b.all() {
		behind = l.behind(ctx) || behind
	}
	return behind
}

// GiveUp forgets the writes that the caches may never show, and returns them.
func (b *Books) GiveUp() (forgotten []informer.Written) {
	for _, l := range b.all() {
		forgotten = append(forgotten, l.giveUp()...)
	}
	return forgotten
}

type booksKey struct{}

// With returns a context that carries the books.
func With(ctx context.Context, b *Books) context.Context {
	return context.WithValue(ctx, booksKey{}, b)
}

// From returns the books of who waits; nil: nobody does.
func From(ctx context.Context) *Books {
	b, _ := ctx.Value(booksKey{}).(*Books)
	return b
}
