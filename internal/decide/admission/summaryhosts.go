package admission

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// hostLines are the hosts of a summary, by name and port.
type hostLines struct {
	list  []Host
	waits map[string]bool // requests of hosts; false: it was answered
}

// addRecord takes a record of the network; false: it is of no connection.
func (l *hostLines) addRecord(r audit.Record) bool {
	port, err := strconv.Atoi(r.Detail[records.DetailPort])
	if err != nil {
		return false
	}
	h := l.hostLine(r.Detail[records.DetailName], port)
	l.clearWaiting(h, r)
	switch r.Outcome { //nolint:exhaustive // others are of no connection
	case audit.Started:
		h.Connections++
	case audit.Finished:
		if r.Detail[records.DetailRequest] != "" {
			break // its connection's end has its bytes, too
		}
		h.BytesOut += bytesOf(r, records.DetailBytesOut)
		h.BytesIn += bytesOf(r, records.DetailBytesIn)
	case audit.Blocked, audit.Failed:
		h.Refused += max(1, r.Count)
		h.Reason = withReason(h.Reason, r.Reason)
	case audit.Pending:
		if waits, known := l.waits[r.Approval]; known && !waits {
			break // it repeats what was answered since
		}
		h.Refused += max(1, r.Count)
		h.Reason = withReason(h.Reason, r.Reason+records.WaitedAs(r.Approval))
		if l.waits == nil {
			l.waits = map[string]bool{}
		}
		l.waits[r.Approval] = true
	}
	return true
}

// clearWaiting takes back that a host waits, if a record of it tells that it was answered. Until then it was refused for waiting.
func (l *hostLines) clearWaiting(h *Host, r audit.Record) {
	if r.Outcome == audit.Pending || !l.waits[r.Approval] {
		return
	}
	l.waits[r.Approval] = false
	h.Refused, h.Reason = 0, ""
}

func bytesOf(r audit.Record, key string) int64 {
	n, _ := strconv.ParseInt(r.Detail[key], 10, 64) // not there: it is not known
	return n
}

func (l *hostLines) hostLine(name string, port int) *Host {
	i := slices.IndexFunc(l.list, func(h Host) bool { return h.Name == name && h.Port == port })
	if i < 0 {
		i = len(l.list)
		l.list = append(l.list, Host{Name: name, Port: port})
	}
	return &l.list[i]
}

func (l *hostLines) sorted() []Host {
	slices.SortFunc(l.list, func(a, b Host) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port)) })
	return l.list
}
