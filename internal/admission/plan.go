package admission

import (
	"maps"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// A plan's run (Run.Plan) is shown what would wait for a person, and what is
// denied only because no list names it, so that a resolver can go on; nothing
// is held, and no file counts as served. What it is shown is remembered here,
// for Controller.Plan, and forgotten with the sandbox: it admits nothing later.

// maxPlanFiles bounds the files that a plan remembers. Of pages past it nothing
// is known, and the plan says so.
const maxPlanFiles = 400_000

// Keys of Record.Detail.
const (
	detailPlan   = "plan"   // of a started record: "true", its installs are only weighed
	detailEffect = "effect" // of a planned record: the policy's own verdict
	detailRead   = "read"   // of a planned record: "true", the resolver was given the bytes
)

// plan is what a plan's run was shown. A nil plan is that of any other run. Safe for
// concurrent use.
type plan struct {
	box    string
	policy *policy.Policy // the run's own, whose verdicts are told

	mu    sync.Mutex // guards all below
	pages map[pkgref.Ref]plannedPage
	files int // in pages
	read  map[pkgref.Ref]map[string]readFile
}

// plannedPage is a project's page as it was judged last.
type plannedPage struct {
	source string
	from   ledger.Origin
	files  []door.File
}

// readFile is a file that the resolver asked for, with all that its bytes told.
type readFile struct {
	file     door.File
	source   string
	from     ledger.Origin
	digests  []string
	findings []string
	evidence *evidence.Evidence
	paths    []string // inside of it
	given    bool     // the resolver was given the bytes
}

// newPlan makes the plan of a run, and gives the run the policy that its
// resolver is shown releases by; nil if it is none.
func newPlan(r *Run) *plan {
	if !r.Plan {
		return nil
	}
	own := r.Policy
	r.Policy = own.Planning()
	return &plan{box: r.Sandbox, policy: own, pages: map[pkgref.Ref]plannedPage{}, read: map[pkgref.Ref]map[string]readFile{}}
}

// planned is what a resolver is shown of a decision: in a plan a hold is shown
// like what is allowed.
func planned(plan bool, d policy.Decision) policy.Decision {
	if plan && d.Effect == policy.Hold {
		d.Effect, d.Unadmitted = policy.Allow, true
	}
	return d
}

// sandbox names a plan's sandbox in the keys of its index verdicts: they are not
// shared, so that the plan is told every page's files.
func (p *plan) sandbox() string {
	if p == nil {
		return ""
	}
	return p.box
}

// sawPage remembers a page that was judged.
func (p *plan) sawPage(t *tenant, ask door.IndexAsk) {
	if p == nil || ask.Files == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.pages[ask.Package].files)
	if p.files-before+len(ask.Files) > maxPlanFiles || !t.ledger.Reserve(filesBytes(ask.Files)-filesBytes(p.pages[ask.Package].files)) {
		return
	}
	p.files += len(ask.Files) - before
	p.pages[ask.Package] = plannedPage{
		source: records.Clip(ask.SourceURL, 2_048), from: ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain}, files: slices.Clone(ask.Files),
	}
}

// filesBytes is about what files take in memory.
func filesBytes(files []door.File) (bytes int64) {
	for _, f := range files {
		bytes += int64(180 + len(f.Name) + len(f.Version) + len(f.Digest))
	}
	return bytes
}

// sawFile remembers a file that the resolver may read.
func (p *plan) sawFile(ask door.ArtifactAsk) {
	if p == nil || ask.File.Kind == policy.KindMetadata {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.read[ask.Package]
	if of == nil {
		if len(p.read) >= maxPlanFiles {
			return
		}
		of = map[string]readFile{}
		p.read[ask.Package] = of
	}
	f := readFile{
		file: ask.File, source: records.Clip(ask.SourceURL, 2_048), from: ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain},
		digests: ask.Facts().Digests, findings: slices.Clone(ask.Findings), evidence: ask.Evidence, paths: ask.Paths, given: ask.Serve,
	}
	if before, known := of[ask.File.Name]; known {
		f.file.Scripts = f.file.Scripts || before.file.Scripts
		for _, d := range before.digests {
			if !slices.Contains(f.digests, d) {
				f.digests = append(f.digests, d)
			}
		}
		if f.evidence == nil {
			f.evidence, f.paths = before.evidence, before.paths
		}
		f.file.Size, f.given = max(f.file.Size, before.file.Size), f.given || before.given
	}
	if ask.Size > 0 {
		f.file.Size = ask.Size
	}
	of[ask.File.Name] = f
}

// servedOrPlanned is the record that a file's bytes are given for: in a plan
// that is no serving, and has the verdict of the run's own policy.
func (t *tenant) servedOrPlanned(ask door.ArtifactAsk, about policy.Subject, d policy.Decision) audit.Record {
	r := t.servedRecord(ask, d)
	if t.plan == nil {
		return r
	}
	verdict := t.known.judgeBy(t.plan.policy, about).File(ask.Facts())
	r.Outcome = audit.Planned
	r.ResolvedBy, r.Rule, r.Reason = string(verdict.ResolvedBy), verdict.Rule, verdict.Reason
	r.Detail = maps.Clone(r.Detail)
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[detailEffect], r.Detail[detailRead] = string(verdict.Effect), "true"
	return r
}
