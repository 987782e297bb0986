package admission

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// RunSummary is what became of a run's packages.
type RunSummary struct {
	Run, Task string
	Installed []Line
	Served    []Line
	Withheld  []Line
	Refused   []Line
	Missing   []Line        // what no upstream has, or gives
	Failed    []Line        // what an upstream could not give: it was away, broken or slow
	Names     []RefusedName // that did not resolve
	Findings  []FindingLine // secrets and personal data, in what left the sandbox
	Hosts     []Host        // that the policy has, and that were connected to
	Tools     []ToolUse     // of the host, that were called or refused
	// Observes tells that the policy only observed. Would is what it would have refused, or
	// left to a person, and WouldNames the names and hosts.
	Observes   bool
	Would      []Line
	WouldNames []RefusedName
	Alarms     []Line // all of the run, whatever they are about, oldest first
	Ended      string // why the policy ended the sandbox
	Unlisted   string // why it is not known what is on the disk
	// CopyOf tells, of a run in a copy of a sandbox, what it is a copy of and which packages
	// came in it.
	CopyOf string
}

// Line is one line of a summary.
type Line struct {
	Ecosystem, Name string
	Version         string // a range "1.0 .. 2.3" for withheld
	File, SHA256    string
	Rule, Reason    string
	RequestID       string
	Suggest         string // lines of a policy that would allow it
	Count           int
	Alarm           bool // it is an alarm, or there is one about it: see audit.Record.IsAlarm
}

// RefusedName is a name that did not resolve.
type RefusedName struct {
	Name, Reason string
	Count        int
}

// ToolUse is a tool of the host that a run called, or was refused.
type ToolUse struct {
	Name    string
	Calls   int    // that were made
	Failed  int    // of these
	Refused int    // calls that were not made
	Reason  string // of those that were refused or failed: see withReason
}

// Host is a host on the network that a run connected to, or was refused to.
type Host struct {
	Name              string
	Port, Connections int
	BytesOut, BytesIn int64  // of connections that have ended
	Refused           int    // connections that were refused, or failed
	Reason            string // of these: see withReason
}

// Summary says from the log what became of a run's packages, whether the run
// lives or is long over. fault.ErrNotFound if the log has nothing of it. Of what indexes
// withheld, that is among the refused which may be why an install failed: see weight. What was
// refused and had afterwards is not, and what pages lacked that clients read who ended well.
func (c *Controller) Summary(ctx context.Context, run string) (RunSummary, error) {
	s, err := summarize(ctx, &c.config, run)
	if err != nil {
		return RunSummary{}, err
	}
	return s.out, nil
}

// summarize reads a run's records.
func summarize(ctx context.Context, config *Config, run string) (*summary, error) {
	if run == "" {
		return nil, fault.Invalid("a summary is of a run; give its id")
	}
	s := &summary{
		causes:  newCauses(),
		clients: config.Clients, out: RunSummary{Run: run}, had: records.NewHad(), pages: map[pkgref.Ref]uint64{}, asked: named{}, wanted: records.Paths{},
		blocked: map[pkgref.Ref]bool{}, releases: map[pkgref.Ref]bool{}, parents: map[pkgref.Ref]bool{},
	}
	found := false
	for r, err := range config.Log.Records(ctx, audit.Filter{Run: run}) {
		if err != nil {
			return nil, err
		}
		found = true
		s.addRecord(r)
	}
	if !found {
		return nil, fault.New(fault.ErrNotFound, "there is no run %q on record", redact.Cut(run, 200))
	}
	s.finishLines()
	return s, nil
}

// summary collects a run's lines; equal ones are one, with a count.
type summary struct {
	out       RunSummary
	installed lineSet
	files     lineSet
	refused   lineSet
	names     []RefusedName
	hosts     hostLines
	would     wouldLines // what was let through by a policy that only observes
	tools     toolLines
	had       records.Had
	clients   claims.Clients      // whose commands name packages
	asked     named               // what they named
	missing   lineSet             // what no upstream gave
	failed    lineSet             // what an upstream failed to give
	blocked   map[pkgref.Ref]bool // projects of which a file was refused
	parents   map[pkgref.Ref]bool // projects of which a release was taken, as it required another
	withheld  []audit.Record
	pages     map[pkgref.Ref]uint64 // the records of pages that were shown last, by project
	wanted    records.Paths
	pending   []audit.Record      // what waited for a person
	releases  map[pkgref.Ref]bool // that were served or refused
	failures  []audit.Record      // refusals, some of what nobody wanted
	endings   endings
	findings  findingLines
	alarms    lineSet
	causes    causes
}

func (s *summary) addRecord(r audit.Record) {
	if r.IsAlarm() {
		s.alarms.addLine(alarmLine(r), max(1, r.Count))
	}
	if r.Kind == audit.KindTool {
		s.tools.addRecord(r)
		return
	}
	for name := range strings.FieldsSeq(r.Detail[records.DetailParents]) {
		s.parents[pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Ecosystem), Name: name}] = true
	}
	if r.Kind == audit.KindPackage {
		s.wanted.Add(records.ProjectOf(r))
	}
	s.endings.takeRecord(s.clients, r)
	switch r.Outcome {
	case audit.Started:
		if r.Kind == audit.KindSandbox {
			s.out.Task = cmp.Or(s.out.Task, r.Task)
			s.out.Observes = s.out.Observes || r.Detail[detailMode] == modeObserve
		}
		s.asked.takeCommand(s.clients, r.Command)
		if r.Kind == audit.KindNetwork {
			s.hosts.addRecord(r)
		}
	case audit.Restored:
		if r.Kind == audit.KindSandbox && s.out.CopyOf == "" {
			s.out.CopyOf = strings.TrimSuffix(r.Reason+": "+r.Detail[detailCameWith], ": ")
		}
	case audit.Served:
		s.had.Take(r)
		s.releases[records.RefOf(r)] = true
		s.files.addLine(packageLine(r), 1)
	case audit.Shown:
		s.addShown(r)
	case audit.Installed:
		s.installed.addLine(packageLine(r), 1)
	case audit.Withheld:
		s.causes.takeRecord(r, s.endings.installOf(r.Sandbox))
		s.withheld = append(s.withheld, r)
	case audit.Blocked, audit.Failed, audit.Exceeded:
		s.out.Ended = cmp.Or(s.out.Ended, provenance.EndedFor(r))
		s.addRefused(r)
	case audit.Pending:
		switch r.Kind { //nolint:exhaustive // nothing else waits as its own
		case audit.KindPackage:
			s.causes.takeRecord(r, s.endings.installOf(r.Sandbox))
			s.pending = append(s.pending, r)
		case audit.KindNetwork:
			s.hosts.addRecord(r)
		}
	case audit.WouldDeny, audit.WouldHold:
		s.would.addRecord(r)
	case audit.Found:
		s.findings.addFinding(r)
	case audit.Alarm:
		s.out.Ended = cmp.Or(s.out.Ended, provenance.EndedFor(r))
	case audit.Finished:
		if r.Kind == audit.KindNetwork {
			s.hosts.addRecord(r)
		}
	case audit.Aborted, audit.Asked, audit.Built, audit.Approved, audit.Denied, audit.Expired, audit.Superseded, audit.Planned,
		audit.Frozen, audit.Thawed, audit.Paused, audit.Resumed, audit.Snapshotted, audit.Adopted, audit.Extended, audit.Used, audit.Narrowed,
		audit.Sealed, audit.Erased, audit.Rotated: // no lines of their own
	}
}

// addShown takes what was shown: a release's metadata, or a page with nothing withheld, which
// goes before what was withheld of it until then.
func (s *summary) addShown(r audit.Record) {
	switch {
	case records.TellsOfRelease(r):
		s.had.Take(r)
	case r.Detail[records.DetailKind] == door.ShownIndex:
		s.pages[records.ProjectOf(r)] = r.Seq
	}
}

// ruleLockfile is policy's rule of releases that a lockfile leaves out.
const ruleLockfile = "packages.lockfile"

// withheldLines are the versions that somebody may miss: of a project that was
// had, only those above what was had, and none that a lockfile leaves out; and
// pre-releases, and what is below, only where a requirement or a command asked for
// what no release is that was had. The log has them all.
func (s *summary) withheldLines() []Line {
	var kept lineSet
	for _, r := range s.withheld {
		best, had := s.had.Highest[records.ProjectOf(r)]
		if !had && s.blocked[records.ProjectOf(r)] {
			continue // a line among the refused says it
		}
		for i, w := range r.Withheld {
			wanted := s.missed(r, i)
			if !wanted && inPartMet(r) {
				continue
			}
			to, _ := pkgref.ParseVersion(pkgref.Ecosystem(r.Ecosystem), w.To)
			below := had && to.Compare(best) <= 0
			if w.Versions == 0 || had && w.Rule == ruleLockfile || (below || onlyPreReleases(r, w)) && !wanted {
				continue
			}
			line := packageLine(r)
			line.Version, line.Rule, line.Reason = w.From, w.Rule, w.Reason
			if w.To != w.From {
				line.Version += " .. " + w.To
			}
			kept.addLine(line, max(1, r.Count))
		}
	}
	return kept.sorted()
}

func (s *summary) addRefused(r audit.Record) {
	switch r.Kind {
	case audit.KindNetwork:
		if !s.hosts.addRecord(r) {
			s.causes.named[s.endings.installOf(r.Sandbox)] = true
			s.addName(r)
		}
	case audit.KindPackage, audit.KindSandbox:
		if r.Outcome == audit.Failed && r.Rule == provenance.RuleUnaccounted {
			s.out.Unlisted = cmp.Or(s.out.Unlisted, r.Reason)
			return
		}
		s.causes.takeRecord(r, s.endings.installOf(r.Sandbox))
		s.failures = append(s.failures, r)
	case audit.KindFinding:
		s.findings.addFinding(r)
	case audit.KindCommand, audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild, audit.KindTool, audit.KindFile: // no packages
	}
}

// addRefusedLines makes lines of what was refused, but for what nobody wanted and what the run
// got afterwards. A record of repeats is of the time of what it repeats.
func (s *summary) addRefusedLines() {
	first := map[string]uint64{}
	for _, r := range s.failures {
		at, known := first[r.Sandbox+" "+r.RequestID]
		if !known || r.RequestID == "" {
			at = r.Seq
			first[r.Sandbox+" "+r.RequestID] = at
		}
		if !records.IsProbe(r, s.wanted, s.had) && !s.had.After(at, r) {
			s.addWanted(r)
		}
	}
}

func (s *summary) addWanted(r audit.Record) {
	if r.OfUpstream() {
		s.causes.are[toldID{r.Sandbox, r.RequestID}] = true
		of := &s.missing
		if r.Rule == audit.RuleFailed {
			of = &s.failed
		}
		of.addLine(packageLine(r), max(1, r.Count))
		return
	}
	s.blocked[records.ProjectOf(r)], s.releases[records.RefOf(r)] = true, true
	s.causes.noteCause(r)
	s.refused.addLine(packageLine(r), max(1, r.Count))
}

func (s *summary) addName(r audit.Record) {
	name := cmp.Or(r.Detail[records.DetailName], "(others)")
	i := slices.IndexFunc(s.names, func(n RefusedName) bool { return n.Name == name })
	if i < 0 {
		s.names = append(s.names, RefusedName{Name: name, Reason: r.Reason, Count: max(1, r.Count)})
		return
	}
	s.names[i].Count += max(1, r.Count)
	s.names[i].Reason = withReason(s.names[i].Reason, r.Reason)
}

// refusePending counts a release as refused that waited and that nobody answered.
func (s *summary) refusePending() {
	for _, r := range s.pending {
		if !s.releases[records.RefOf(r)] {
			s.blocked[records.ProjectOf(r)] = true
			s.causes.noteCause(r)
			s.refused.addLine(packageLine(r), max(1, r.Count))
		}
	}
}

func packageLine(r audit.Record) Line {
	p := Line{
		Ecosystem: r.Ecosystem, Name: r.Package, Version: r.InstalledVersion, File: r.File, SHA256: r.SHA256,
		Rule: r.Rule, Reason: r.Reason, RequestID: r.RequestID, Suggest: r.Detail[records.DetailSuggest],
		Alarm: r.ConcernsAlarm(),
	}
	if parents := r.Detail[records.DetailWantedBy]; parents != "" {
		p.Reason = records.WithParents(p.Reason, parents)
	}
	if r.Outcome == audit.Pending {
		p.Reason += records.WaitedAs(r.Approval)
	}
	if p.Name == "" && p.File == "" { // of no registry
		p.File = r.SourceURL
	}
	return p
}

func (s *summary) finishLines() {
	s.addRefusedLines()
	s.refusePending()
	s.refuseWithheld()
	s.out.Installed, s.out.Served = s.installed.sorted(), s.files.sorted()
	s.out.Withheld, s.out.Refused = s.withheldLines(), s.refused.sorted()
	s.out.Missing, s.out.Failed = s.missing.sorted(), s.failed.sorted()
	s.out.Would, s.out.WouldNames = s.would.packages.sorted(), s.would.listNames(s.hosts.list)
	slices.SortFunc(s.names, func(a, b RefusedName) int { return cmp.Compare(a.Name, b.Name) })
	s.out.Findings, s.out.Alarms = s.findings, s.alarms.list
	s.out.Names, s.out.Hosts = append([]RefusedName{}, s.names...), s.hosts.sorted()
	s.out.Tools = s.tools.sorted()
}
