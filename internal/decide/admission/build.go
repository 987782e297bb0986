package admission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The rules of what could not be made.
const (
	ruleBuild = "packages.sdist.build"
	ruleRan   = "packages.install_scripts.run"
)

// ruleOf is the rule by which a kind of file can't be made.
func ruleOf(kind policy.ArtifactKind) string {
	if kind == policy.KindRan {
		return ruleRan
	}
	return ruleBuild
}

// builderFormat changes when builds are made otherwise.
const builderFormat = "1"

// Bounds of what one sandbox may have built.
const (
	maxBuilds   = 64
	maxAttempts = 3 // of one build
)

// Builds has source distributions built, and install scripts run, apart from the runs that
// want what comes of it.
type Builds struct {
	tenants *tenants
	desk    *building.Desk // nil: nothing is built
	answer  func(ctx context.Context, ask door.BuildAsk, build func(*tenant, fileQuestion, weighed) (door.BuildAnswer, error)) (door.BuildAnswer, error)
}

// newBuilds are those of a controller, which has its configuration.
func newBuilds(c *Controller) *Builds {
	b := &Builds{tenants: c.tenants}
	if c.config.Workshops != nil {
		b.desk = building.NewDesk(building.Config{Maker: c.config.Workshops, Dir: c.config.BuildDir})
	}
	b.answer = func(ctx context.Context, ask door.BuildAsk, build func(*tenant, fileQuestion, weighed) (door.BuildAnswer, error)) (door.BuildAnswer, error) {
		q := fileQuestion{FileAsk: ask.FileAsk}
		var out door.BuildAnswer
		refused, err := c.answerFile(ctx, q, func(t *tenant, w weighed) (answer door.Answer, err error) {
			out, err = build(t, q, w)
			return out.Answer, err
		})
		if out.Decision.Effect == "" {
			out.Answer = refused
		}
		return out, err
	}
	return b
}

// attempts counts what a sandbox has had built.
type attempts struct {
	mu  sync.Mutex // guards all below
	all int
	of  map[string]int // by key
}

func (a *attempts) takeAttempt(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all >= maxBuilds || a.of[key] >= maxAttempts {
		return false
	}
	if a.of == nil {
		a.of = map[string]int{}
	}
	a.all++
	a.of[key]++
	return true
}

// builder names all that decides what is made for a run of a project's files, the files
// aside, and which kinds of files are; "" and none: nothing is. In a workshop nothing is
// made: what a build needs comes as wheels, and scripts run where they are.
func (b *Builds) builder(t *tenant, project pkgref.Ref) (name string, makes []policy.ArtifactKind) {
	if b.desk == nil || t.run.Source != nil || t.run.Plan && len(t.policy().Narrowings()) > 0 {
		return "", nil
	}
	for _, kind := range []policy.ArtifactKind{policy.KindBuilt, policy.KindRan} {
		if t.policy().MakesApart(kind, project) {
			makes = append(makes, kind)
		}
	}
	if makes == nil {
		return "", nil
	}
	lock := ""
	if t.run.Lock != nil {
		lock = t.run.Lock.Digest()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{builderFormat, lawKey(t.policy()), lock, t.run.Template, t.run.TemplateDigest}, "\x00")))
	return hex.EncodeToString(sum[:]), makes
}

// Build implements door.Door.
func (b *Builds) Build(ctx context.Context, ask door.BuildAsk) (door.BuildAnswer, error) {
	if !ask.File.Kind.Made() || !hexDigest.MatchString(ask.SHA256) || ask.Source == "" || len(ask.Source) > 512 || len(ask.URL) > 4_096 {
		return door.BuildAnswer{}, fault.Invalid("a build is asked for with its source's name, sha256 and URL")
	}
	ctx, done := door.Lasting(ctx)
	defer done()
	return b.answer(ctx, ask, func(t *tenant, q fileQuestion, w weighed) (door.BuildAnswer, error) {
		builder, makes := b.builder(t, q.Package)
		if !slices.Contains(makes, q.File.Kind) {
			builder = ""
		}
		switch {
		case !w.decision.Admitted() || builder == "":
			d := w.decision
			switch {
			case !d.Allowed():
			case builder == "":
				d = buildRefusal(q, "nothing is made apart of what is published here")
			default:
				d = buildRefusal(q, planning.Unbuilt)
			}
			return refuseBuild(ctx, t, q, d, nil)
		case isSHA256(q.File.Digest) && q.File.Digest != "sha256:"+ask.SHA256:
			return door.BuildAnswer{}, fault.Invalid("%s is made of another file than the index lists", ask.Package)
		}
		return b.buildSource(ctx, t, q, ask, building.Source{
			Package: q.Package, Makes: q.File.Kind, File: ask.Source, Digest: q.File.Digest, SHA256: ask.SHA256, Through: w.decision.Through,
		}, builder)
	})
}

// ReadBuilt implements door.Door.
func (b *Builds) ReadBuilt(_ context.Context, ask door.ReadBuiltAsk) ([]byte, error) {
	if _, err := b.tenants.getTenant(ask.Sandbox); err != nil {
		return nil, err
	}
	if b.desk == nil {
		return nil, fault.New(fault.ErrNotFound, "nothing is built here")
	}
	return b.desk.Read(ask.SHA256, ask.Offset)
}

// buildSource has an admitted source built, as long as the run lives, and records what came of it.
func (b *Builds) buildSource(ctx context.Context, t *tenant, q fileQuestion, ask door.BuildAsk, source building.Source, builder string) (door.BuildAnswer, error) {
	key := builder + "/" + ask.SHA256 + "/" + ask.File.Name
	if !t.built.takeAttempt(key) {
		d := buildRefusal(q, "it is not built again: this run has had too much built, or this too often")
		return refuseBuild(ctx, t, q, d, nil)
	}
	ctx, cancel := context.WithCancel(door.ClientOf(ctx))
	defer cancel()
	defer safego.When(t.life, cancel)()
	law := t.policy()
	if t.run.Plan {
		law = t.verdicts
	}
	result, err := b.desk.Do(ctx, building.Job{
		Source: source,
		Key:    key, Sandbox: t.run.Sandbox, Payer: t.run.payerOf(), URL: ask.URL, Policy: law.Apart(),
	})
	if err != nil && ctx.Err() != nil {
		return door.BuildAnswer{}, ctx.Err()
	}
	if failed, ok := errors.AsType[*building.Failure](err); ok {
		return refuseBuild(ctx, t, q, buildRefusal(q, describeFailure(failed)), failed)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return refuseBuild(ctx, t, q, buildRefusal(q, "it could not be made: "+redact.Cut(f.Sentence, 500)), nil)
	}
	if err != nil {
		return door.BuildAnswer{}, err
	}
	r, err := t.book.Append(ctx, builtRecord(q, ask, result))
	return door.BuildAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Allow, Rule: ruleOf(q.File.Kind)}, RequestID: r.RequestID, Seq: r.Seq}, Built: &result.Built}, err
}

func buildRefusal(q fileQuestion, reason string) policy.Decision {
	return policy.Decision{Effect: policy.Deny, Rule: ruleOf(q.File.Kind), ResolvedBy: policy.ByIntegrity, Reason: reason}
}

// describeFailure describes a failure in a sentence, with where to read more.
func describeFailure(f *building.Failure) string {
	reason := f.Sentence
	if says := telling(f); says != "" {
		reason += ": " + strconv.QuoteToASCII(redact.Cut(says, mostLine))
	}
	if f.Run != "" {
		reason += "; on the host, see: cofferdam why --run " + f.Run
	}
	return reason
}

// mostLine bounds a line of a build's output in a sentence, in bytes.
const mostLine = 300

// telling is the line of a build's output that says most: what was refused to it, else its
// own complaint, else the last one. It is whoever wrote the package that speaks.
func telling(f *building.Failure) string {
	lines := strings.Split(strings.TrimSpace(f.Output), "\n")
	refused := ""
	for _, line := range lines {
		if at := strings.Index(line, "Blocked by cofferdam"); at >= 0 {
			refused = strings.TrimSpace(line[at:])
		}
	}
	return cmp.Or(refused, f.Line, strings.TrimSpace(lines[len(lines)-1]))
}

// refuseBuild records that nothing is built, with the end of what the build wrote.
func refuseBuild(ctx context.Context, t *tenant, q fileQuestion, d policy.Decision, failed *building.Failure) (door.BuildAnswer, error) {
	record := blockedRecord(q, d)
	if failed != nil {
		if record.Detail == nil {
			record.Detail = map[string]string{}
		}
		for name, value := range map[string]string{records.DetailBuildRun: failed.Run, records.DetailBuildOutput: redact.Cut(failed.Output, 4_096)} {
			if value != "" {
				record.Detail[name] = value
			}
		}
	}
	r, err := t.book.Refuse(context.WithoutCancel(ctx), record)
	return door.BuildAnswer{Answer: door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}}, err
}

// builtRecord is the record of what was built: the file as which it is offered, with its own
// digest and its source's.
func builtRecord(q fileQuestion, ask door.BuildAsk, made building.Result) audit.Record {
	rule, reason := "packages.sdist", "it was built of its source distribution, in a sandbox of its own"
	if q.File.Kind == policy.KindRan {
		rule, reason = "packages.install_scripts", "its install scripts ran in a sandbox of their own, and it has none any more"
	}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Built, File: q.File.Name, SourceURL: redact.Cut(ask.URL, 2_048), SHA256: made.SHA256, Size: made.Size,
		Rule: rule, Reason: reason,
		Detail: map[string]string{
			records.DetailSource: ask.Source, records.DetailSourceDigest: "sha256:" + ask.SHA256, records.DetailBuildRun: made.Run,
			records.DetailTemplate: made.Template, records.DetailEngine: made.Engine, records.DetailBuiltAs: redact.Cut(made.File, 256),
		},
	}
	records.SetRef(&r, q.Package)
	return r
}

// isSource tells whether a question is about the file that a workshop is for. The run that
// wants something made of it has admitted it.
func isSource(s *building.Source, q fileQuestion) bool {
	if s == nil {
		return false
	}
	kind := policy.KindSdist
	if s.Makes == policy.KindRan {
		kind = policy.KindPackage
	}
	return q.Package == s.Package && q.File.Kind == kind && q.File.Name == s.File && q.File.Digest == s.Digest
}

// sourceOf tells whether a project is the one that a workshop is for.
func sourceOf(s *building.Source, project pkgref.Ref) bool {
	return s != nil && s.Package.Project() == project.Project()
}

// sourceDecision admits the file that a workshop is for. The requirements of that are admitted as
// they are in the run, through the same entry.
func sourceDecision(s *building.Source) policy.Decision {
	d := policy.Decision{
		Effect: policy.Allow, Rule: "packages.sdist", ResolvedBy: policy.ByAllowlist, Through: s.Through,
		Reason: "it is the source distribution that this sandbox is there to build",
	}
	if s.Makes == policy.KindRan {
		d.Rule, d.Reason = "packages.install_scripts", "it is the package whose install scripts this sandbox is there to run"
	}
	return d
}
