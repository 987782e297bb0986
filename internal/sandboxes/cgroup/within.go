package cgroup

import (
	"path/filepath"
	"time"
)

// withinEvery is how often a Balance looks at the groups in a share: there may be a thousand.
const withinEvery = 500 * time.Millisecond

// within knows the loads of the groups in each share. look alone uses at; the rest needs the
// Balance's mu.
type within struct {
	at     time.Time // of the last look
	shares map[string]loads
}

// claimLook tells whether it is time for another look, and notes that it is taken.
func (w *within) claimLook(now time.Time) bool {
	if now.Sub(w.at) < withinEvery {
		return false
	}
	w.at = now
	return true
}

// usedWithin is what the groups of each share used so far, as used is.
func (h *Hierarchy) usedWithin(shares map[string]int64) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for share := range shares {
		all[share] = h.usedBelow(share, func(string) bool { return true })
	}
	return all
}

// settleWithin tells the kernel which groups in each share are low now. Needs b.mu.
func (b *Balance) settleWithin(now time.Time, used map[string]map[string]int64) {
	if b.within.shares == nil {
		b.within.shares = map[string]loads{}
	}
	for share := range used {
		if b.within.shares[share] == nil {
			b.within.shares[share] = loads{}
		}
	}
	for share, all := range b.within.shares {
		all.countUse(now, used[share])
		low := all.lowShares()
		for name, there := range all.sharesThere() {
			b.tellGroup(filepath.Join(share, name), there, low[name])
			if !there {
				delete(all, name) // another sandbox has another name
			}
		}
		if len(all) == 0 && used[share] == nil {
			delete(b.within.shares, share)
		}
	}
}
