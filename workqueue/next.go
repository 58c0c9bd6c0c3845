package workqueue

import "context"

// Next calls Done for the item's key, and then fills in the item as Get does. If a key is ready, it takes the lock once
// instead of twice, which halves the contention between workers. While it waits, and if it returns an error, the item
// is zero: a worker that waits keeps nothing alive that its last key refers to.
//
// Errors: those of Get; then the key is done all the same.
func (q *Queue[K]) Next(ctx context.Context, item *Item[K]) (err error) {
	q.mu.Lock()
	worked := q.doneLocked(q.placeOfLocked(item))
	*item = Item[K]{}
	if worked != notMeasured && !q.ready.canPop() {
		q.mu.Unlock()
		q.observeWork(worked) // Before Get waits, so that the metrics do not lag behind.
		*item, err = q.Get(ctx)
		return err
	}
	err = q.getLocked(ctx, item)
	q.mu.Unlock()
	q.observeWork(worked)
	if err == nil && q.metrics != nil {
		q.metrics.ObserveQueueDuration(item.Queued)
	}
	return err
}
