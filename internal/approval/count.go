package approval

// Waiting is how many requests nobody has answered, a tree with all of its releases being
// one. It asks nothing of the store, so one whose time has just run out may still be counted.
func (q *Queue) Waiting() int {
	requests, _ := q.count(Ask{})
	return requests.all
}
