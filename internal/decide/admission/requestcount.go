package admission

import (
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// ruleRequestsQuota is of requests past those that are recorded one by one.
const ruleRequestsQuota = "quota.requests"

// requests counts those of one sandbox that have a record of their own. Safe for
// concurrent use.
type requests struct {
	telling sync.Mutex // held while what became of some is recorded

	mu   sync.Mutex // guards all below
	own  int
	told bool // that there are more
}

// countRequest counts one in. own false: it is one too many, and tell that this has to be said.
func (q *requests) countRequest(most int) (own, tell bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.own < most {
		q.own++
		return true, false
	}
	tell, q.told = !q.told, true
	return false, tell
}

// undone gives back what take counted if that could not be recorded: it is told again then.
func (q *requests) undone(own bool, err error) error {
	if records.Kept(err) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if own {
		q.own--
	} else {
		q.told = false
	}
	return err
}

// replayRecord takes a record of the network from the log.
func (q *requests) replayRecord(r audit.Record) {
	if r.Kind != audit.KindNetwork {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case r.Outcome == audit.Finished && r.Detail[records.DetailRequest] != "":
		q.own++
	case r.Rule == ruleRequestsQuota:
		q.told = true
	}
}
