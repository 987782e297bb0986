package ledger

import "sync/atomic"

// Budget bounds what the Releases of many runs take together. It is safe for
// concurrent use. Past it a run still gets its least share, so that no run's
// curiosity is another's refusal.
type Budget struct {
	most, least int64
	taken       atomic.Int64
}

// NewBudget makes a Budget of so many bytes, with a least share for each run.
func NewBudget(most, least int64) *Budget { return &Budget{most: most, least: least} }

// Taken is what all runs take now, in bytes.
func (b *Budget) Taken() int64 { return b.taken.Load() }

// takeBytes takes bytes for who has size already; less than nothing gives them back.
func (b *Budget) takeBytes(size, bytes int64) (ok bool) {
	if all := b.taken.Add(bytes); bytes > 0 && all > b.most && size+bytes > b.least {
		b.taken.Add(-bytes)
		return false
	}
	return true
}
