package copies

import "sync"

// drafts is how much the snapshots that are being written may take, by owner: they
// are not in the store yet, and several at once must not each find the same room. The
// zero value is none.
type drafts struct {
	mu    sync.Mutex // guards bytes
	bytes map[string]int64
}

// takeRoom reserves room for an owner's image if it and what the owner keeps already fit;
// kept is asked while nobody else takes. used is what there would be with it. done
// must be called if it fits, once the snapshot is in the store or given up.
func (d *drafts) takeRoom(owner string, image, most int64, kept func() int64) (done func(), used int64, fits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	used = image + d.bytes[owner] + kept()
	if used > most {
		return nil, used, false
	}
	if d.bytes == nil {
		d.bytes = map[string]int64{}
	}
	d.bytes[owner] += image
	return func() { d.giveRoom(owner, image) }, used, true
}

func (d *drafts) giveRoom(owner string, image int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bytes[owner] -= image; d.bytes[owner] == 0 {
		delete(d.bytes, owner)
	}
}
