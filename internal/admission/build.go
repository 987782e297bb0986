package admission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/admission/building"
	"github.com/cofferdam-dev/cofferdam/internal/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// ruleBuild is of what could not be built.
const ruleBuild = "packages.sdist.build"

// builderFormat changes when builds are made otherwise.
const builderFormat = "1"

// Bounds of what one sandbox may have built.
const (
	maxBuilds   = 64
	maxAttempts = 3 // of one build
)

// Builds has source distributions built apart from the runs that want them.
type Builds struct {
	tenants *tenants
	desk    *building.Desk // nil: nothing is built
	answer  func(ctx context.Context, ask door.BuildAsk, build func(*tenant, question, weighed) (door.BuildAnswer, error)) (door.BuildAnswer, error)
}

// newBuilds are those of a controller, which has its configuration.
func newBuilds(c *Controller) *Builds {
	b := &Builds{tenants: c.tenants}
	if c.config.Workshops != nil {
		b.desk = building.NewDesk(building.Config{Maker: c.config.Workshops, Dir: c.config.BuildDir})
	}
	b.answer = func(ctx context.Context, ask door.BuildAsk, build func(*tenant, question, weighed) (door.BuildAnswer, error)) (door.BuildAnswer, error) {
		q := question{FileAsk: ask.FileAsk}
		var out door.BuildAnswer
		refused, err := c.answer(ctx, q, func(t *tenant, w weighed) (answer door.Answer, err error) {
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

func (a *attempts) take(key string) bool {
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

// builder names all that decides what is built for a run, the source aside; "": nothing is.
// A workshop has nothing built: what a build needs comes as wheels.
func (b *Builds) builder(t *tenant) string {
	if b.desk == nil || t.run.Source != nil || !t.policy().BuildsApart() || t.run.Plan && len(t.policy().Narrowings()) > 0 {
		return ""
	}
	lock := ""
	if t.run.Lock != nil {
		lock = t.run.Lock.Digest()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{builderFormat, lawKey(t.policy()), lock, t.run.Template, t.run.TemplateDigest}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// Build implements door.Door.
func (b *Builds) Build(ctx context.Context, ask door.BuildAsk) (door.BuildAnswer, error) {
	if ask.File.Kind != policy.KindBuilt || !hexDigest.MatchString(ask.SHA256) || ask.Source == "" || len(ask.Source) > 512 || len(ask.URL) > 4_096 {
		return door.BuildAnswer{}, fault.Invalid("a build is asked for with its source's name, sha256 and URL")
	}
	return b.answer(ctx, ask, func(t *tenant, q question, w weighed) (door.BuildAnswer, error) {
		builder := b.builder(t)
		switch {
		case !w.decision.Admitted() || builder == "":
			d := w.decision
			switch {
			case !d.Allowed():
			case builder == "":
				d = buildRefusal("nothing is built of source distributions here")
			default:
				d = buildRefusal(planning.Unbuilt)
			}
			return refuseBuild(ctx, t, q, d, nil)
		case q.File.Digest != "sha256:"+ask.SHA256:
			return door.BuildAnswer{}, fault.Invalid("%s is built of another file than the index lists", ask.Package)
		}
		return b.build(ctx, t, q, ask, builder)
	})
}

// ReadBuilt implements door.Door.
func (b *Builds) ReadBuilt(_ context.Context, ask door.ReadBuiltAsk) ([]byte, error) {
	if _, err := b.tenants.get(ask.Sandbox); err != nil {
		return nil, err
	}
	if b.desk == nil {
		return nil, fault.New(fault.ErrNotFound, "nothing is built here")
	}
	return b.desk.Read(ask.SHA256, ask.Offset)
}

// build has an admitted source built, as long as the run lives, and records what came of it.
func (b *Builds) build(ctx context.Context, t *tenant, q question, ask door.BuildAsk, builder string) (door.BuildAnswer, error) {
	key := builder + "/" + ask.SHA256 + "/" + ask.File.Name
	if !t.built.take(key) {
		d := buildRefusal("it is not built again: this run has had too much built, or this too often")
		return refuseBuild(ctx, t, q, d, nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer errand.When(t.life, cancel)()
	law := t.policy()
	if t.run.Plan {
		law = t.verdicts
	}
	result, err := b.desk.Do(ctx, building.Job{
		Source: building.Source{Package: q.Package, File: ask.Source, SHA256: ask.SHA256},
		Key:    key, Sandbox: t.run.Sandbox, Payer: cmp.Or(t.run.Token, t.run.Sandbox), URL: ask.URL, Policy: law.Apart(),
	})
	if err != nil && ctx.Err() != nil {
		return door.BuildAnswer{}, ctx.Err()
	}
	if failed, ok := errors.AsType[*building.Failure](err); ok {
		return refuseBuild(ctx, t, q, buildRefusal(told(failed)), failed)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return refuseBuild(ctx, t, q, buildRefusal("it could not be built: "+excerpt.Of(f.Sentence, 500)), nil)
	}
	if err != nil {
		return door.BuildAnswer{}, err
	}
	r, err := t.book.Append(ctx, builtRecord(q, ask, result))
	return door.BuildAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Allow, Rule: ruleBuild}, RequestID: r.RequestID, Seq: r.Seq}, Built: &result.Built}, err
}

func buildRefusal(reason string) policy.Decision {
	return policy.Decision{Effect: policy.Deny, Rule: ruleBuild, ResolvedBy: policy.ByIntegrity, Reason: reason}
}

// told is a failure in a sentence, with where to read more.
func told(f *building.Failure) string {
	reason := f.Sentence
	if says := telling(f); says != "" {
		reason += ": " + strconv.QuoteToASCII(excerpt.Of(says, mostLine))
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
func refuseBuild(ctx context.Context, t *tenant, q question, d policy.Decision, failed *building.Failure) (door.BuildAnswer, error) {
	record := blockedRecord(q, d)
	if failed != nil {
		if record.Detail == nil {
			record.Detail = map[string]string{}
		}
		for name, value := range map[string]string{records.DetailBuildRun: failed.Run, records.DetailBuildOutput: excerpt.Of(failed.Output, 4_096)} {
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
func builtRecord(q question, ask door.BuildAsk, made building.Result) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Built, File: q.File.Name, SourceURL: excerpt.Of(ask.URL, 2_048), SHA256: made.SHA256, Size: made.Size,
		Rule: "packages.sdist", Reason: "it was built of its source distribution, in a sandbox of its own",
		Detail: map[string]string{
			records.DetailSource: ask.Source, records.DetailSourceDigest: "sha256:" + ask.SHA256, records.DetailBuildRun: made.Run,
			records.DetailTemplate: made.Template, records.DetailEngine: made.Engine, records.DetailBuiltAs: excerpt.Of(made.File, 256),
		},
	}
	records.SetRef(&r, q.Package)
	return r
}

// isSource tells whether a question is about the file that a workshop is for. The run that
// wants it built has admitted it.
func (t *tenant) isSource(q question) bool {
	s := t.run.Source
	return s != nil && q.Package == s.Package && q.File.Kind == policy.KindSdist && q.File.Name == s.File && q.File.Digest == "sha256:"+s.SHA256
}

// sourceOf tells whether a project is the one that a workshop is for.
func (t *tenant) sourceOf(project pkgref.Ref) bool {
	return t.run.Source != nil && t.run.Source.Package.Project() == project.Project()
}

// sourceDecision admits the file that a workshop is for.
func sourceDecision() policy.Decision {
	return policy.Decision{
		Effect: policy.Allow, Rule: "packages.sdist", ResolvedBy: policy.ByAllowlist,
		Reason: "it is the source distribution that this sandbox is there to build",
	}
}
