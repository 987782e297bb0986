package admission

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// hostLines are the hosts of a summary, by name and port.
type hostLines struct{ list []Host }

// add takes a record of the network; false: it is of no connection.
func (l *hostLines) add(r audit.Record) bool {
	port, err := strconv.Atoi(r.Detail[records.DetailPort])
	if err != nil {
		return false
	}
	h := l.host(r.Detail[records.DetailName], port)
	switch r.Outcome { //nolint:exhaustive // others are of no connection
	case audit.Started:
		h.Connections++
	case audit.Finished:
		h.BytesOut += bytesOf(r, records.DetailBytesOut)
		h.BytesIn += bytesOf(r, records.DetailBytesIn)
	case audit.Blocked, audit.Failed:
		h.Refused += max(1, r.Count)
		h.Reason = cmp.Or(h.Reason, r.Reason)
	}
	return true
}

func bytesOf(r audit.Record, key string) int64 {
	n, _ := strconv.ParseInt(r.Detail[key], 10, 64) // not there: it is not known
	return n
}

func (l *hostLines) host(name string, port int) *Host {
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
