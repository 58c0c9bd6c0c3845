package workqueue

// Open reports whether Get would hand out a key at once.
func (q *Queue[K]) Open() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.openLocked()
}
