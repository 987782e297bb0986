package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/delivery"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
)

// maxBuilds bounds how many builds are remembered over a restart.
const maxBuilds = 5_000

// buildKey covers all that decides what is built: what the door names builder, and the
// source distribution's verified bytes.
type buildKey struct {
	builder   string
	ecosystem pkgref.Ecosystem
	project   string
	file      string // as which it is offered
	source    string // sha256, hex
}

// String implements memo.Key.
func (k buildKey) String() string {
	return strings.Join([]string{k.builder, string(k.ecosystem), k.project, k.file, k.source}, "\x00")
}

// building is the key of a flight: each sandbox asks for itself, so that a refusal is its
// own.
type building struct {
	buildKey
	sandbox string
}

// builds are what was built of source distributions.
type builds struct {
	artifacts *artifacts.Artifacts
	flights   *coalesce.Group
	door      door.Packages
	disk      *memo.Disk[buildKey, door.Built]
}

func newBuilds(cfg Config, store *cache.Store, flights *coalesce.Group, as *artifacts.Artifacts, d door.Packages) (*builds, error) {
	disk, err := memo.NewDisk(store, "builds", maxBuilds, memo.JSON[buildKey, door.Built](), cfg.Log, "what was built of a source distribution")
	if err != nil {
		return nil, err
	}
	return &builds{artifacts: as, flights: flights, door: d, disk: disk}, nil
}

// refusedBuild is the daemon's refusal to build, which is on record.
type refusedBuild struct{ answer door.Answer }

// Error implements error.
func (r refusedBuild) Error() string { return r.answer.Decision.Reason }

// getBuilt gives what is built of a verified source distribution, for the sandbox that asks; it
// is built if it was not under the same conditions. A build goes on when the client gives
// up.
func (bs *builds) getBuilt(ctx context.Context, v verified) (made *artifacts.Verified, kept bool, err error) {
	key := buildKeyOf(v)
	if known, ok := bs.disk.Get(key); ok {
		if made, err := bs.artifacts.Made(known.SHA256); err == nil {
			return made, true, nil
		}
	}
	ask := door.BuildAsk{FileAsk: v.fileAsk(), Source: v.of.Name, SHA256: key.source, URL: v.of.ClientURL()}
	built, err := coalesce.Once(ctx, bs.flights, building{key, v.sandbox}, func(ctx context.Context) (door.Built, error) { return bs.buildSource(ctx, key, ask) })
	if err != nil {
		return nil, false, err
	}
	made, err = bs.artifacts.Made(built.SHA256)
	return made, false, err
}

// isKept tells whether it was built under the same conditions.
func (bs *builds) isKept(v verified) bool {
	_, ok := bs.disk.Get(buildKeyOf(v))
	return ok
}

func buildKeyOf(v verified) buildKey {
	return buildKey{
		builder: v.source.builder, ecosystem: v.source.Ecosystem(), project: v.route.Project, file: v.file.Name,
		source: strings.TrimPrefix(v.bytes.Digest(), "sha256:"),
	}
}

// buildSource has it built, and keeps it.
func (bs *builds) buildSource(ctx context.Context, key buildKey, ask door.BuildAsk) (door.Built, error) {
	answer, err := bs.door.Build(ctx, ask)
	switch {
	case err != nil:
		return door.Built{}, err
	case answer.Built == nil:
		return door.Built{}, refusedBuild{answer.Answer}
	}
	read := func(offset int64) ([]byte, error) {
		return bs.door.ReadBuilt(ctx, door.ReadBuiltAsk{Sandbox: ask.Sandbox, SHA256: answer.Built.SHA256, Offset: offset})
	}
	if err := bs.artifacts.Make(answer.Built.SHA256, answer.Built.Size, read); err != nil {
		return door.Built{}, err
	}
	bs.disk.Put(key, *answer.Built)
	return *answer.Built, nil
}

// serveBuilt sends what is built of a source distribution in its place: the source is
// verified and looked into, admitted, and only then built; what comes of it is looked into
// like a published file, recorded, and sent.
func (g *Gateway) serveBuilt(q *query, l located, verdict policy.Decision) {
	v, ok := g.sourceOf(q, l)
	if !ok {
		return
	}
	defer v.bytes.Close() //nolint:errcheck // read only
	if q.r.Method == http.MethodHead && l.file.Kind == policy.KindRan && !g.builds.isKept(v) {
		q.w.WriteHeader(http.StatusOK) // to ask about a file runs nobody's scripts; how long it gets is not known
		return
	}
	q.orLeave()
	made, kept, ok := g.builtOf(q, l, v, verdict)
	if !ok {
		return
	}
	defer made.Close() //nolint:errcheck // read only
	d, err := g.inspections.inspectFile(q.r.Context(), l, made)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		g.refuseFile(q, l, err)
		return
	}
	q.orLeave()
	v, _ = fileOf(l, made, kept, d)
	v.file.Size = made.Size()
	v.found.Findings = append([]string{madeOf(l)}, d.Findings...)
	if len(d.Requirements) > 0 {
		if err := g.door.Edges(q.r.Context(), v.sandbox, v.ref, d.Requirements); err != nil {
			g.refuseUndecided(q, v.ref, err)
			return
		}
	}
	if q.r.Method == http.MethodHead {
		delivery.Head(q.w, q.r, made)
		return
	}
	g.serveRecorded(q, v, false)
}

// madeOf says what a file is made of.
func madeOf(l located) string {
	how := "it was built here, in a sandbox of its own, of "
	if l.file.Kind == policy.KindRan {
		how = "its install scripts ran here, in a sandbox of their own, and this came of "
	}
	return how + l.of.Name + " (" + l.of.Digest + ")"
}

// sourceOf is what a file is made of, verified and looked into; it answers the query itself
// where there is none. The caller closes its bytes.
func (g *Gateway) sourceOf(q *query, l located) (v verified, ok bool) {
	from := l
	from.file, from.url, from.of = *l.of, l.of.URL, nil
	source, _, err := g.artifact(q, from)
	if err != nil {
		g.refuseFile(q, l, err)
		return v, false
	}
	d, err := g.inspections.inspectFile(q.r.Context(), from, source)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		_ = source.Close() // read only
		g.refuseFile(q, l, err)
		return v, false
	}
	v, _ = fileOf(l, source, false, d)
	return v, true
}

// builtOf is what is built of a source; it answers the query itself where that fails.
func (g *Gateway) builtOf(q *query, l located, v verified, verdict policy.Decision) (made *artifacts.Verified, kept, ok bool) {
	if verdict.Effect == policy.Hold && !g.awaited(q, v, v.fileAsk()) {
		return nil, false, false
	}
	stop := q.keepWaiting(g.cfg.Limits.Interim)
	made, kept, err := g.builds.getBuilt(q.r.Context(), v)
	stop()
	var refused refusedBuild
	switch {
	case err == nil:
		return made, kept, true
	case errors.As(err, &refused):
		q.refuseAnswer(l.ref, refused.answer)
	case errors.Is(err, fault.ErrInvalid):
		g.refuseFile(q, l, err)
	case q.r.Context().Err() == nil:
		g.refuseUndecided(q, l.ref, err)
	}
	return nil, false, false
}
