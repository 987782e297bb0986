package records

import "github.com/cofferdam-dev/cofferdam/internal/decide/audit"

// Replay takes a record of this sandbox from the log as if it had just been made; of its
// refusals, ReplayRefusal takes more.
func (b *Book) Replay(r audit.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noteSeq(r.Seq)
	if r.RequestID != "" {
		b.ids[r.RequestID] = true
	}
	if of := b.charged(r); of != free {
		b.used[of]++
	}
	if r.Kind == audit.KindPackage && r.Outcome == audit.Shown {
		b.displayed[shownKeyOf(r)] = nil
	}
}

// ReplayCut takes from the log that a run was cut: this one, or one that it is a copy of.
func (b *Book) ReplayCut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut, b.cutLogged = true, true
}

// ReplayRefusal takes a refusal from the log.
func (b *Book) ReplayRefusal(r audit.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counted(r) {
		return
	}
	refused := r.Kind == audit.KindTool && r.Outcome == audit.Blocked || r.Kind == audit.KindNetwork && (r.Outcome == audit.Blocked || r.Outcome == audit.Failed)
	if refused && r.Detail[DetailSecret] == "" { // placeholders that went astray are under no quota but that of records
		b.countTold(recordKind(r), toldBy(r))
	}
	b.showLast(b.keepRecord(r))
}

// ReplayAsked takes a question to an upstream from the log.
func (b *Book) ReplayAsked(r audit.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.counted(r) {
		b.keepRecord(r)
	}
}

// counted counts a record from the log with the one that it repeats, if there is one; mu is
// held.
func (b *Book) counted(r audit.Record) bool {
	known := b.refusals[b.refusalKeyOf(r)]
	if known == nil {
		return false
	}
	n := max(1, r.Count)
	known.count, known.logged = known.count+n, known.logged+n
	return true
}

// keepRecord keeps a record from the log for its repeats; mu is held.
func (b *Book) keepRecord(r audit.Record) *refusal {
	f := &refusal{ready: make(chan struct{}), record: r, count: 1, logged: 1}
	close(f.ready)
	b.refusals[b.refusalKeyOf(r)] = f
	return f
}

// Inherit shows a refusal of a sandbox that this one is a copy of. The first of the copy
// itself is on record again.
func (b *Book) Inherit(r audit.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.showLast(&refusal{record: r, count: max(1, r.Count), logged: max(1, r.Count), inherited: true})
}
