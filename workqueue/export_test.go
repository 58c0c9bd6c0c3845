package workqueue

// CanPop reports whether Get would hand out a key at once.
func (q *Queue[K]) CanPop() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.canPop()
}
