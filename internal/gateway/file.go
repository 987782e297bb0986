package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// fileCandidate is a source that may have the file that was asked for.
type fileCandidate struct {
	source *source
	route  ecosystem.Route
	fits   int // bytes of the path that are its index's
}

// asked is a file or an attachment that a guest asks for.
type asked struct {
	*query
	file    ecosystem.File
	row     []byte     // what the index says of it, for an Inspector
	ref     pkgref.Ref // with version
	url     string     // of the file
	digests []string   // all that are known, once the bytes are here
	found   described
	release *door.File    // of metadata: the file that it describes; nil: not known
	settle  func(kinship) // of a file, until its first verdict
	kin     kinship       // of its project, by the last answer that shown had
	waits   bool          // the last verdict was that a person must answer
	planned bool          // the last verdict only shows it, in a plan
	kept    bool          // the cache had the bytes when they were asked for
}

// serveFile answers with a file or its sidecar. The client need not have asked
// for the index: what the file is, is found out here.
func (g *Gateway) serveFile(q *query, candidates []fileCandidate) {
	var failed error
	for _, c := range candidates {
		q.source, q.route = c.source, c.route
		owned, ok := g.takeOwner(q)
		if !ok {
			return
		}
		a, err := g.find(q)
		if err == nil {
			g.serveFound(a)
			return
		}
		failed = err
		if owned {
			break // a private name is looked for nowhere else
		}
	}
	g.refuseFile(&asked{query: q, ref: q.ref(q.route.Version)}, failed)
}

// serveFound asks for the verdict before anything is fetched. What waits for a
// person is gone on with: they are shown what the verified bytes say.
func (g *Gateway) serveFound(a *asked) {
	answer, err := g.verdict(a)
	a.settle(kinOf(answer.Decision)) // of an error's zero decision: a stranger
	a.waits, a.planned = answer.Decision.Effect == policy.Hold, answer.Decision.Unadmitted
	switch {
	case err != nil:
		g.refuseUndecided(a, err)
	case !answer.Decision.Shown():
		a.refuseAnswer(answer)
	case a.route.Kind == ecosystem.RouteSidecar:
		g.serveSidecar(a)
	default:
		g.serveArtifact(a)
	}
}

// verdict asks whether the file may be had. What requires it may not have been read: then
// that is read first.
func (g *Gateway) verdict(a *asked) (door.Answer, error) {
	ask := a.ask()
	ask.MayWalk = true
	answer, err := g.door.Artifact(a.r.Context(), ask)
	if err != nil || !answer.Unreached {
		return answer, err
	}
	if err := g.reach(a.r.Context(), a.query, destination{ref: a.ref, deep: true, published: a.file.Published}); err != nil {
		return door.Answer{}, err
	}
	ask.MayWalk = false
	return g.door.Artifact(a.r.Context(), ask)
}

// ask is the question whether the file may be had, with all that is known by now.
func (a *asked) ask() door.ArtifactAsk {
	return door.ArtifactAsk{
		Sandbox: a.sandbox, Package: a.ref, File: pages.DoorFile(a.file), SourceURL: a.url,
		Release: a.release, Upstream: a.source.Index, Toolchain: a.source.Toolchain(a.ref.Name),
		Digests: a.digests, Bundled: a.found.Bundled, Findings: a.found.Findings, Contents: a.found.Contents, Kept: a.kept,
	}
}

// paths are those of the file's files, as far as they are known.
func (a *asked) paths() []string {
	if a.found.Inside == nil {
		return nil
	}
	return a.found.Inside.Paths
}

// refuseFile answers for a file that can't be had, and records why.
func (g *Gateway) refuseFile(a *asked, err error) {
	if a.r.Context().Err() != nil {
		return // nobody is there to be answered; the fetch goes on
	}
	g.log.Warn("a file is refused", "sandbox", a.sandbox, "file", a.route.File, "error", err)
	r := ecosystem.Refusal{Cause: causeOf(err), What: a.ref.String(), Reason: sentence(err)}
	r.RequestID = g.failed(a.query, door.Failure{
		Rule:    ruleOf(r.Cause),
		Package: a.ref, File: a.route.File, SourceURL: a.url, ResolvedBy: policy.ByIntegrity, Reason: r.Reason,
		Metadata: a.file.Kind == policy.KindMetadata,
	})
	a.refuse(r)
}

// refuseUndecided answers when the door could not decide or record.
func (g *Gateway) refuseUndecided(a *asked, err error) {
	g.log.Error("a file could not be judged", "sandbox", a.sandbox, "file", a.route.File, "error", err)
	a.refuse(undecided(a.ref, err))
}

// undecided words why there is no decision: a limit of the run, which the door
// words, or what is the operator's to find.
func undecided(ref pkgref.Ref, err error) ecosystem.Refusal {
	if errors.Is(err, fault.ErrForbidden) {
		return ecosystem.Refusal{Cause: ecosystem.ByPolicy, What: ref.String(), Reason: sentence(err)}
	}
	return ecosystem.Refusal{Cause: ecosystem.Unreachable, What: ref.String(), Reason: "the request could not be decided and recorded"}
}

// serveSidecar sends a file's metadata, after the door knows what it requires,
// and begins to fetch the file, which is asked for next.
func (g *Gateway) serveSidecar(a *asked) {
	ctx := a.r.Context()
	data, err := g.sidecar(ctx, a.source, a.route.Project, a.file)
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	d, err := g.describe(a.source, a.route.Project, a.file, data)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	if err := g.door.Edges(ctx, a.sandbox, a.ref, d.Requirements); err != nil {
		g.refuseUndecided(a, err)
		return
	}
	if a.waits && !g.announce(a) || !g.show(a, door.ShownMetadata, a.file.Name+sidecarSuffix, data) {
		return
	}
	g.fetchAhead(ctx, wantFile(a.source, a.route.Project, a.file))
	a.w.Header().Set("ETag", `"`+d.Digest+`"`)
	a.w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(a.w, a.r, "", time.Time{}, strings.NewReader(string(data)))
}

// serveArtifact sends a file: verified, looked into, recorded, and only then.
func (g *Gateway) serveArtifact(a *asked) {
	ctx := a.r.Context()
	v, err := g.artifact(ctx, a)
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	defer v.Close() //nolint:errcheck // read only
	d, err := g.look(ctx, a, v)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		g.refuseFile(a, err)
		return
	}
	stricter := a.learn(v, d)
	if (stricter || a.r.Method == http.MethodHead) && !g.shown(a) {
		return
	}
	if len(d.Requirements) > 0 {
		if err := g.door.Edges(ctx, a.sandbox, a.ref, d.Requirements); err != nil {
			g.refuseUndecided(a, err)
			return
		}
	}
	if a.r.Method == http.MethodHead { // shown above, and no byte is served
		a.sendContent(v.Digest(), v.Reader())
		return
	}
	g.serveRecorded(a, v)
}

// learn takes over what the verified bytes say. It tells whether the policy may
// think otherwise of it now: the index said that nothing runs.
func (a *asked) learn(v *verified, d described) (stricter bool) {
	for _, digest := range []string{a.file.Digest, v.Digest(), v.sums.SHA512, d.Sum} {
		if digest != "" && !slices.Contains(a.digests, digest) {
			a.digests = append(a.digests, digest)
		}
	}
	a.found = d
	if a.file.Size == 0 {
		a.file.Size = v.Size()
	}
	stricter = len(d.Scripts) > 0 && !a.file.Scripts
	a.file.Scripts = a.file.Scripts || len(d.Scripts) > 0
	return stricter
}

// shown asks again, knowing more, and refuses what is denied.
func (g *Gateway) shown(a *asked) bool {
	ask := a.ask()
	if a.planned { // a person may be shown what comes of it
		ask.Evidence, ask.Paths = a.evidence(a.r.Context(), g), a.paths()
	}
	answer, err := g.door.Artifact(a.r.Context(), ask)
	a.waits, a.kin = answer.Decision.Effect == policy.Hold, kinOf(answer.Decision)
	switch {
	case err != nil:
		g.refuseUndecided(a, err)
	case !answer.Decision.Shown():
		a.refuseAnswer(answer)
	default:
		return true
	}
	return false
}

// artifact gives the file's verified bytes. A cached copy that was changed on
// the disk is an incident even if a good one can be fetched.
func (g *Gateway) artifact(ctx context.Context, a *asked) (*verified, error) {
	w := wantFile(a.source, a.route.Project, a.file)
	v, spoilt, err := g.cached(w)
	a.kept = err == nil
	if spoilt {
		g.failed(a.query, door.Failure{
			Package: a.ref, File: a.file.Name, SourceURL: a.url, ResolvedBy: policy.ByIntegrity,
			Reason: "the cached copy was changed on the disk; it was set aside and is fetched again",
		})
	}
	if absent(err) {
		return g.fetch(ctx, w)
	}
	return v, err
}

// notListed is what a file is that neither the index nor an address gives.
func notListed(r ecosystem.Route) error {
	return fault.Invalid("the index of %s does not list %s at this path", r.Project, r.File)
}
