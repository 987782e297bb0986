package admission

import (
	"cmp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// wouldLines are what a policy that only observes would have refused.
type wouldLines struct {
	packages lineSet
	hosts    []wouldName
}

// wouldName is a name, or a host with its port.
type wouldName struct {
	name, port string
	line       RefusedName
}

func (l *wouldLines) addRecord(r audit.Record) {
	switch r.Kind { //nolint:exhaustive // nothing else is only observed
	case audit.KindPackage:
		l.packages.addLine(packageLine(r), max(1, r.Count))
	case audit.KindNetwork:
		l.addName(r)
	}
}

func (l *wouldLines) addName(r audit.Record) {
	name, port := r.Detail[records.DetailName], r.Detail[records.DetailPort]
	i := slices.IndexFunc(l.hosts, func(h wouldName) bool { return h.name == name && h.port == port })
	if i < 0 {
		i = len(l.hosts)
		text := name
		if port != "" {
			text += ":" + port
		}
		l.hosts = append(l.hosts, wouldName{name: name, port: port, line: RefusedName{Name: text, Reason: r.Reason}})
	}
	l.hosts[i].line.Count += max(1, r.Count)
}

// listNames lists the hosts that were connected to, and the names that were only asked for; not
// those of which hosts tells that the connection was refused.
func (l *wouldLines) listNames(hosts []Host) []RefusedName {
	names := []RefusedName{}
	for _, h := range l.hosts {
		connected := func(other wouldName) bool { return other.name == h.name && other.port != "" }
		refused := func(host Host) bool { return host.Name == h.name && host.Refused > 0 }
		if h.port != "" || !slices.ContainsFunc(l.hosts, connected) && !slices.ContainsFunc(hosts, refused) {
			names = append(names, h.line)
		}
	}
	slices.SortFunc(names, func(a, b RefusedName) int { return cmp.Compare(a.Name, b.Name) })
	return names
}
