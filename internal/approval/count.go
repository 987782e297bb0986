package approval

// Waiting is how many requests nobody has answered. It asks nothing of the store,
// so one whose time has just run out may still be counted.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending)
}
