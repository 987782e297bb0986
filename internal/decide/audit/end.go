package audit

import (
	"crypto/sha256"
	"encoding/json"
)

// End returns the number that the next record will have (all before are durable
// and can be read), and a channel that is closed once there is another record.
// A follower of the log reads up to next, then waits for the channel: nothing
// is missed between the two, and no append waits for a follower.
func (l *FileLog) End() (next uint64, grown <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.next, l.grown
}

// tellGrown wakes who waits for another record; l.mu is held.
func (l *FileLog) tellGrown() {
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
}

// Fingerprint tells one record from another: who remembers the number and the
// fingerprint of the last record that it has read knows, when it comes again,
// whether this is still the same log. It leaves out what may be erased later
// (user, token, task, details), and so proves nothing: proofs are of the whole line.
func Fingerprint(r Record) [sha256.Size]byte {
	r.User, r.Token, r.Task, r.Detail, r.Erased, r.Time, r.Clock = "", "", "", nil, false, r.Time.UTC().Round(0), r.Clock.UTC().Round(0)
	data, err := json.Marshal(r)
	if err != nil { // no field of it can fail
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}
