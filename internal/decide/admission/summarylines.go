package admission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// alarmLine is what an alarm is about: a package, a host, or nothing that has a name.
func alarmLine(r audit.Record) Line {
	p := packageLine(r)
	if p.Name == "" && p.File == "" {
		p.Name = r.Detail[records.DetailName]
	}
	return p
}

// lineKey tells which lines are one.
type lineKey struct{ ecosystem, name, version, file, rule string }

// lineSet are a summary's lines without duplicates.
type lineSet struct {
	places map[lineKey]int
	list   []Line
}

func (l *lineSet) addLine(p Line, count int) {
	if l.places == nil {
		l.places = map[lineKey]int{}
	}
	key := lineKey{p.Ecosystem, p.Name, p.Version, p.File, p.Rule}
	i, known := l.places[key]
	if !known {
		i = len(l.list)
		l.places[key] = i
		l.list = append(l.list, p)
	}
	l.list[i].Count += count
}

func (l *lineSet) sorted() []Line {
	list := append([]Line{}, l.list...)
	slices.SortStableFunc(list, func(a, b Line) int {
		return cmp.Or(
			records.AlarmFirst(a.Alarm, b.Alarm),
			strings.Compare(a.Ecosystem, b.Ecosystem), strings.Compare(a.Name, b.Name),
			pkgref.Compare(pkgref.Ecosystem(a.Ecosystem), a.Version, b.Version), strings.Compare(a.Version, b.Version),
			strings.Compare(a.File, b.File), strings.Compare(a.Rule, b.Rule),
		)
	})
	return list
}
