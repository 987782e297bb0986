package admission

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Summary says from the log what became of a run's packages, whether the run
// lives or is long over. fault.ErrNotFound if the log has nothing of it. What
// an index withheld whole, or in part while no file of the project was served,
// is among the refused: it is why an install failed.
func (c *Controller) Summary(ctx context.Context, run string) (api.RunSummary, error) {
	if run == "" {
		return api.RunSummary{}, fault.Invalid("a summary is of a run; give its id")
	}
	s := summary{out: api.RunSummary{Run: run}, served: map[pkgref.Ref]bool{}}
	found := false
	for r, err := range c.config.Log.Records(ctx, audit.Filter{Run: run}) {
		if err != nil {
			return api.RunSummary{}, err
		}
		found = true
		s.add(r)
	}
	if !found {
		return api.RunSummary{}, fault.New(fault.ErrNotFound, "there is no run %q on record", clip(run, 200))
	}
	return s.finish(), nil
}

// summary collects a run's lines; equal ones are one, with a count.
type summary struct {
	out       api.RunSummary
	installed lines
	files     lines
	withheld  lines
	refused   lines
	names     []api.Name
	served    map[pkgref.Ref]bool // projects
	partial   []audit.Record      // withheld in part
}

func (s *summary) add(r audit.Record) {
	switch r.Outcome {
	case audit.Started:
		if r.Kind == audit.KindSandbox && s.out.Task == "" {
			s.out.Task = r.Task
		}
	case audit.Served:
		s.served[projectOf(r)] = true
		s.files.add(packageLine(r), 1)
	case audit.Installed:
		s.installed.add(packageLine(r), 1)
	case audit.Withheld:
		s.addWithheld(r)
	case audit.Blocked, audit.Failed, audit.Exceeded:
		s.addRefused(r)
	case audit.Aborted, audit.Pending, audit.Finished: // no lines of their own
	}
}

func projectOf(r audit.Record) pkgref.Ref {
	p := refOf(r)
	p.Version = ""
	return p
}

func (s *summary) addWithheld(r audit.Record) {
	for _, w := range r.Withheld {
		line := packageLine(r)
		line.Version, line.Rule, line.Reason = w.From, w.Rule, w.Reason
		if w.To != w.From {
			line.Version += " .. " + w.To
		}
		s.withheld.add(line, max(1, r.Count))
	}
	if r.Detail[detailEvent] != eventRepeats {
		s.partial = append(s.partial, r)
	}
}

func (s *summary) addRefused(r audit.Record) {
	switch r.Kind {
	case audit.KindNetwork:
		s.addName(r)
	case audit.KindPackage, audit.KindSandbox:
		s.refused.add(packageLine(r), max(1, r.Count))
	case audit.KindCommand, audit.KindDaemon: // no packages
	}
}

func (s *summary) addName(r audit.Record) {
	name := cmp.Or(r.Detail[detailName], "(others)")
	i := slices.IndexFunc(s.names, func(n api.Name) bool { return n.Name == name })
	if i < 0 {
		s.names = append(s.names, api.Name{Name: name, Reason: r.Reason, Count: max(1, r.Count)})
		return
	}
	s.names[i].Count += max(1, r.Count)
}

func packageLine(r audit.Record) api.Package {
	p := api.Package{
		Ecosystem: r.Ecosystem, Name: r.Package, Version: r.InstalledVersion, File: r.File, SHA256: r.SHA256,
		Rule: r.Rule, Reason: r.Reason, RequestID: r.RequestID, Suggest: r.Detail[detailSuggest],
	}
	if parents := r.Detail[detailWantedBy]; parents != "" {
		p.Reason += "; wanted by " + parents
	}
	return p
}

func (s *summary) finish() api.RunSummary {
	for _, r := range s.partial {
		if s.served[projectOf(r)] {
			continue
		}
		line := packageLine(r)
		if r.Detail[detailWhat] == whatIndex && len(r.Withheld) > 0 {
			line.Version = r.Withheld[len(r.Withheld)-1].To
		}
		s.refused.add(line, 1)
	}
	s.out.Installed, s.out.Served = s.installed.sorted(), s.files.sorted()
	s.out.Withheld, s.out.Refused = s.withheld.sorted(), s.refused.sorted()
	slices.SortFunc(s.names, func(a, b api.Name) int { return cmp.Compare(a.Name, b.Name) })
	s.out.Names = append([]api.Name{}, s.names...)
	return s.out
}

// lineKey tells which lines are one.
type lineKey struct{ ecosystem, name, version, file, rule string }

// lines are a summary's lines without duplicates.
type lines struct {
	places map[lineKey]int
	list   []api.Package
}

func (l *lines) add(p api.Package, count int) {
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

func (l *lines) sorted() []api.Package {
	list := append([]api.Package{}, l.list...)
	slices.SortStableFunc(list, func(a, b api.Package) int {
		return cmp.Or(
			strings.Compare(a.Ecosystem, b.Ecosystem), strings.Compare(a.Name, b.Name),
			parseVersion(pkgref.Ecosystem(a.Ecosystem), a.Version).compare(parseVersion(pkgref.Ecosystem(b.Ecosystem), b.Version)),
			strings.Compare(a.File, b.File), strings.Compare(a.Rule, b.Rule),
		)
	})
	return list
}
