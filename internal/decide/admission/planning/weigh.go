package planning

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxChoices bounds the releases of one plan; maxWantedBy those that are
// named as wanting one of them, since thousands could.
const (
	MaxChoices  = 20_000
	maxWantedBy = 20
)

// Choice is a release that a plan's resolver chose: the word of a guest,
// which counts only as far as the run was shown the release.
type Choice struct {
	Package pkgref.Ref // with version
	// Digests are of the release's files, any of which would be taken; none: the
	// resolver does not say.
	Digests []string
	// File is the one that would be installed; "": the resolver does not say.
	File string
	// IfRead tells that it counts only if its file was read in this run: it may
	// be left over from an earlier resolution.
	IfRead bool
}

// Weighed is a choice, joined with what the run was shown and the verdict of
// the run's own policy.
type Weighed struct {
	Package  pkgref.Ref
	Upstream string
	Source   string          // URL of the file or the page that told of it
	Files    []approval.File // that the policy does not refuse, the one that would be installed first
	Verdict  policy.Decision // of that file
	Evidence evidence.Evidence
	Paths    []string // inside of the file that would be installed, as far as they are known
	WantedBy []Wanted
	// Problem says why there is no verdict: the run was never shown the release,
	// or another file of it. Files and Verdict are then empty.
	Problem string
	// Approval is the request in the queue, if one was filed, and Group what it
	// is in there.
	Approval string
	Group    string
}

// Wanted is a release of the same plan that requires another, by metadata that
// the gateway verified in this run. Extra is that of Parent which alone brings it, where nothing is known to ask
// for that; "": Parent always requires it.
type Wanted struct {
	Parent           pkgref.Ref
	Specifier, Extra string
}

// Plan is a plan's result.
type Plan struct {
	Releases []Weighed
	// Read are releases whose files were given to the resolver and which it did
	// not choose, such as what a build requires.
	Read []pkgref.Ref
}

// Run is a plan's run, as far as what it was shown is weighed.
type Run interface {
	// Judge judges a release's project by the policy of the run and all that is known.
	Judge(ctx context.Context, release pkgref.Ref, from ledger.Origin) (*policy.Judge, error)
	// Requirements are those of a release, by verified metadata.
	Requirements(release pkgref.Ref) []door.Requirement
}

// Weigh weighs what the resolver of a plan's run chose, by what the run was shown.
func Weigh(ctx context.Context, run Run, was *Shown, choices []Choice) (Plan, error) {
	if len(choices) > MaxChoices {
		return Plan{}, fault.Invalid("the resolver names %d releases; a plan has at most %d", len(choices), MaxChoices)
	}
	w := &weighing{run: run, was: was, chosen: map[pkgref.Ref][]pkgref.Ref{}, pages: map[pkgref.Ref]map[pkgref.Ref][]door.File{}}
	var out Plan
	for _, choice := range choices {
		if ctx.Err() != nil {
			return Plan{}, ctx.Err() // there can be many, and nobody waits for them
		}
		weighed, counts, err := w.weighChoice(ctx, choice)
		if err != nil {
			return Plan{}, err
		}
		if counts {
			out.Releases = append(out.Releases, weighed)
			w.chosen[choice.Package.Project()] = append(w.chosen[choice.Package.Project()], choice.Package)
		}
	}
	w.joinParents(out.Releases)
	out.Read = w.readOnly()
	return out, nil
}

// weighing is one call of Weigh.
type weighing struct {
	run    Run
	was    *Shown
	chosen map[pkgref.Ref][]pkgref.Ref // releases by project
	pages  map[pkgref.Ref]map[pkgref.Ref][]door.File
}

// pageFiles are a release's files on its project's page, which is looked through
// once; was's mu is held.
func (w *weighing) pageFiles(release pkgref.Ref) []door.File {
	project := release.Project()
	byRelease, known := w.pages[project]
	if !known {
		byRelease = map[pkgref.Ref][]door.File{}
		for _, f := range w.was.pages[project].files {
			of := project
			of.Version = f.Version
			byRelease[of.Release()] = append(byRelease[of.Release()], f)
		}
		w.pages[project] = byRelease
	}
	return byRelease[release.Release()]
}

// shownFile is a file of a release as the run was shown it, with its verdict.
type shownFile struct {
	readFile
	was     bool // the resolver asked for the file itself
	verdict policy.Decision
}

// weighChoice joins a choice with what was shown; counts is false if it is none.
func (w *weighing) weighChoice(ctx context.Context, choice Choice) (out Weighed, counts bool, err error) {
	out = Weighed{Package: choice.Package}
	if !pkgref.IsCanonicalName(choice.Package.Ecosystem, choice.Package.Name) || choice.Package.Version == "" {
		return out, false, fault.Invalid("%q is not a release by its canonical name and version", redact.Cut(choice.Package.String(), 200))
	}
	files := w.shownFiles(choice.Package)
	if choice.IfRead && !slices.ContainsFunc(files, func(f shownFile) bool { return f.was }) {
		return out, false, nil
	}
	if len(files) == 0 {
		out.Problem = w.was.lacking()
		return out, true, nil
	}
	if files = chosenOf(files, choice); len(files) == 0 {
		out.Problem = "the resolver names a file of it that is not one that the gateway showed in this run"
		return out, true, nil
	}
	j, err := w.run.Judge(ctx, choice.Package, files[0].from)
	if err != nil {
		return out, false, err
	}
	for i := range files {
		files[i].verdict = j.File(files[i].fileFacts())
	}
	slices.SortStableFunc(files, func(a, b shownFile) int { return a.standing() - b.standing() })
	first := files[0]
	out.Upstream, out.Source, out.Verdict = first.from.Upstream, first.source, first.verdict
	for i, f := range files {
		if i == 0 || f.verdict.Effect == policy.Allow || f.verdict.Effect == policy.Hold {
			out.Files = append(out.Files, f.approvalFile())
		}
	}
	out.Evidence, out.Paths = first.knownEvidence(), first.paths
	return out, true, nil
}

// shownFiles are the files of a release that the run was shown, on a page or by
// their bytes.
func (w *weighing) shownFiles(release pkgref.Ref) []shownFile {
	w.was.mu.Lock()
	defer w.was.mu.Unlock()
	var files []shownFile
	read := w.was.read[release]
	page := w.was.pages[release.Project()]
	for _, f := range w.pageFiles(release) {
		shown := shownFile{readFile: readFile{file: f, source: page.source, from: page.from}}
		if r, was := read[f.Name]; was {
			shown.readFile, shown.was = r, true
		}
		files = append(files, shown)
	}
	for name, r := range read {
		if !slices.ContainsFunc(files, func(f shownFile) bool { return f.file.Name == name }) {
			files = append(files, shownFile{readFile: r, was: true})
		}
	}
	slices.SortFunc(files, func(a, b shownFile) int { return cmp.Compare(a.file.Name, b.file.Name) })
	return files
}

// chosenOf leaves the files that the choice can mean: by name and by digest.
func chosenOf(files []shownFile, choice Choice) []shownFile {
	return slices.DeleteFunc(files, func(f shownFile) bool {
		if choice.File != "" && f.file.Name != choice.File {
			return true
		}
		return len(choice.Digests) > 0 && !slices.ContainsFunc(f.fileFacts().Digests, func(d string) bool { return slices.Contains(choice.Digests, d) })
	})
}

func (f shownFile) fileFacts() policy.FileFacts {
	facts := f.file.Facts()
	for _, d := range f.digests {
		if !slices.Contains(facts.Digests, d) {
			facts.Digests = append(facts.Digests, d)
		}
	}
	return facts
}

// standing orders a release's files by how likely a client takes them: what is
// not refused, what it read, a wheel before a source distribution.
func (f shownFile) standing() int {
	n := map[policy.Effect]int{policy.Allow: 0, policy.Hold: 8}[f.verdict.Effect]
	if !f.verdict.Allowed() && f.verdict.Effect != policy.Hold {
		n = 16
	}
	if !f.was {
		n += 4
	}
	if f.file.Kind == policy.KindSdist {
		n += 2
	}
	return n
}

func (f shownFile) approvalFile() approval.File {
	return approval.File{
		Name: f.file.Name, Kind: string(f.file.Kind), Digests: f.fileFacts().Digests, Size: f.file.Size,
		Scripts: f.file.Scripts, Published: f.file.Published,
	}
}

// knownEvidence is the evidence about a release: the gateway's, or what the page tells.
// The words of the imported lists are added when it is filed.
func (f shownFile) knownEvidence() evidence.Evidence {
	var e evidence.Evidence
	if f.evidence != nil {
		e = *f.evidence
	}
	if e.Published.IsZero() {
		e.Published = f.file.Published
	}
	if e.FirstSeen.IsZero() {
		e.FirstSeen = f.file.FirstSeen
	}
	if len(e.Findings) == 0 {
		e.Findings = slices.Clone(f.findings)
	}
	return e
}

// joinParents says who of the plan's releases requires which others. An extra that nothing is known to ask for tells
// why a release is there only where nothing else does: most releases have one for their own tests.
func (w *weighing) joinParents(releases []Weighed) {
	place := map[pkgref.Ref]int{}
	for i, r := range releases {
		place[r.Package] = i
	}
	type requirement struct {
		project   pkgref.Ref
		specifier string
	}
	spare := make([][]Wanted, len(releases)) // who wants each one by an extra
	meet := map[requirement][]pkgref.Ref{}
	for _, parent := range releases {
		for _, q := range w.run.Requirements(parent.Package) {
			project := pkgref.Ref{Ecosystem: parent.Package.Ecosystem, Name: q.Name}
			which := requirement{project, q.Specifier}
			children, known := meet[which]
			if !known {
				children = meetingReleases(q, w.chosen[project])
				meet[which] = children
			}
			for _, child := range children {
				wants := &releases[place[child]].WantedBy
				extra, _, _ := strings.Cut(q.Under, ",")
				if extra != "" {
					wants = &spare[place[child]]
				}
				if wanted := (Wanted{parent.Package, q.Specifier, extra}); project != parent.Package.Project() && len(*wants) < maxWantedBy && !slices.Contains(*wants, wanted) {
					*wants = append(*wants, wanted)
				}
			}
		}
	}
	for i := range releases {
		if len(releases[i].WantedBy) == 0 && releases[i].Verdict.ResolvedBy != policy.ByAllowlist {
			releases[i].WantedBy = spare[i]
		}
	}
}

// meetingReleases are the releases that meet a requirement; if it can't be told, or none
// does, all of them: the resolver had its reasons.
func meetingReleases(q door.Requirement, releases []pkgref.Ref) []pkgref.Ref {
	var meet []pkgref.Ref
	for _, r := range releases {
		if q.Specifier == "" || claims.Meets(q.Specifier, r) {
			meet = append(meet, r)
		}
	}
	if len(meet) == 0 {
		return releases
	}
	return meet
}

// readOnly lists the releases whose bytes were given and which were not chosen.
func (w *weighing) readOnly() []pkgref.Ref {
	w.was.mu.Lock()
	defer w.was.mu.Unlock()
	var out []pkgref.Ref
	for ref, files := range w.was.read {
		given := false
		for _, f := range files {
			given = given || f.given
		}
		if given && !slices.ContainsFunc(w.chosen[ref.Project()], func(r pkgref.Ref) bool {
			return pkgref.SameVersion(ref.Ecosystem, r.Version, ref.Version)
		}) {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, func(a, b pkgref.Ref) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// Text is "rich 13.7.1 requires pygments >=2.13", with "for its extra jupyter" behind it where that brings it.
func (w Wanted) Text(child pkgref.Ref) string {
	text := w.Parent.Name + " " + w.Parent.Version + " requires " + child.Name
	if w.Specifier != "" {
		text += " " + redact.Cut(w.Specifier, 100)
	}
	if w.Extra != "" {
		text += " for its extra " + redact.Cut(w.Extra, 40)
	}
	return text
}
