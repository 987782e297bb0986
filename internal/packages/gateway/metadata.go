package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"path"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/delivery"
)

// metadata locates what a resolver reads of a release.
func (s subject) metadata(location string) located {
	name, version := s.route.File, s.route.Version
	if u, err := url.Parse(location); name == "" && err == nil {
		name = path.Base(u.Path)
	}
	if s.route.Query {
		version = "" // not known before the upstream has answered
	}
	return located{
		subject: s, ref: s.refOf(version), url: location,
		file: ecosystem.File{Name: name, Version: version, Kind: policy.KindMetadata},
	}
}

// recordShown has it recorded that what describes a release goes to the guest; it refuses it
// if that can't be.
func (g *Gateway) recordShown(q *query, l located, kind, file string, body []byte) (delivery.Shown, bool) {
	if !g.holdBytes(q, len(body)) {
		return delivery.Shown{}, false
	}
	s, err := delivery.Show(q.r.Context(), g.door, door.Showing{Sandbox: l.sandbox, Package: l.ref, Kind: kind, File: file, SourceURL: l.url}, body)
	if err != nil {
		g.refuseUndecided(q, l.ref, err)
	}
	return s, err == nil
}

// serveSidecar sends a file's metadata, after the door knows what it requires,
// and begins to fetch the file, which is asked for next.
func (g *Gateway) serveSidecar(q *query, l located, verdict policy.Decision) {
	ctx := q.r.Context()
	data, d, err := g.inspections.metadata(ctx, l.source, l.route.Project, l.file)
	if err != nil {
		g.refuseFile(q, l, err)
		return
	}
	q.orLeave()
	if err := g.door.Edges(ctx, l.sandbox, l.ref, d.Requirements); err != nil {
		g.refuseUndecided(q, l.ref, err)
		return
	}
	if verdict.Effect == policy.Hold && !g.announce(q, l) {
		return
	}
	s, ok := g.recordShown(q, l, door.ShownMetadata, l.file.Name+sidecarSuffix, data)
	if !ok {
		return
	}
	g.artifacts.FetchAhead(ctx, l.wanted(), func(guests []string, err error) { g.wrongAhead(l, guests, err) })
	s.Send(q.w, q.r, "application/octet-stream", d.Digest)
}

// serveOutline sends what a release requires that is not let in, and nothing else that its
// publisher says; nothing rests on it.
func (g *Gateway) serveOutline(q *query, l located) {
	describer, ok := l.source.Protocol.(ecosystem.Describer)
	if !ok {
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "files of this ecosystem have no sidecar"})
		return
	}
	data, _, err := g.inspections.metadata(q.r.Context(), l.source, l.route.Project, l.file)
	if err == nil {
		data, err = describer.Outline(data)
	}
	if err != nil {
		g.refuseFile(q, l, err)
		return
	}
	if s, ok := g.recordShown(q, l, door.ShownOutline, l.file.Name+sidecarSuffix, data); ok {
		s.Send(q.w, q.r, "application/octet-stream", "")
	}
}

// announce tells the door that the metadata of what waits is read: its file will
// be wanted.
func (g *Gateway) announce(q *query, l located) bool {
	ctx := q.r.Context()
	answer, err := g.door.Preview(ctx, door.PreviewAsk{FileAsk: l.fileAsk(), Evidence: g.evidence(ctx, l, described{})})
	_, ok := g.orRefused(q, l.ref, answer, err)
	return ok
}

// serveAttachment answers with one of a release's small files. It is judged by
// the name, before any upstream hears that, and again when more is known: its
// digest, and the version if the request is a query.
func (g *Gateway) serveAttachment(q *query) {
	attacher, ok := q.source.Protocol.(ecosystem.Attacher)
	if !ok {
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway has no such file"})
		return
	}
	if _, ok := g.takeOwner(q); !ok {
		return
	}
	l := q.metadata(attacher.AttachmentAsk(q.source.Index, q.route).URL)
	settle, ok := g.askByName(q, l)
	if !ok {
		return
	}
	found, err := g.attachments.getAttachment(q.r.Context(), q.source, attacher, q.route)
	settle(err)
	switch {
	case errors.Is(err, fault.ErrNotFound): // nothing was withheld, and there is nothing to record
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.Missing, What: l.ref.String(), Reason: errorSentence(err)})
	case err != nil:
		g.refuseFile(q, l, err)
	default:
		g.sendAttachment(q, l, found)
	}
}

// askByName judges metadata by the name alone, before any upstream hears that. settle
// tells the guest's count how the asking ended; ok false that the query was answered
// with a refusal.
func (g *Gateway) askByName(q *query, l located) (settle func(error), ok bool) {
	verdict, ok := g.askAgain(q, l.ref, door.JudgeAsk{FileAsk: l.fileAsk()})
	if !ok {
		return nil, false
	}
	asking, err := g.askNames(q)
	if err != nil {
		g.refuseFile(q, l, err)
		return nil, false
	}
	return func(err error) {
		result := outcomeOf(verdict)
		if err != nil {
			result = nameRefused
		}
		asking(result)
	}, true
}

func (g *Gateway) sendAttachment(q *query, l located, found attached) {
	ctx := q.r.Context()
	v := metadataOf(l, found)
	if found.Witnessed {
		v.release = g.locator.described(ctx, v.located, found.Version)
	}
	if q.route.Query || len(v.digests) > 0 || v.release != nil {
		if _, ok := g.askAgain(q, v.ref, door.JudgeAsk{FileAsk: v.fileAsk()}); !ok {
			return
		}
	}
	q.orLeave()
	if d := found.requirements(); len(d.Requirements) > 0 {
		if err := g.door.Edges(ctx, v.sandbox, v.ref, d.Requirements); err != nil {
			g.refuseUndecided(q, v.ref, err)
			return
		}
	}
	if s, ok := g.recordShown(q, v.located, door.ShownMetadata, v.file.Name, found.Body); ok {
		sum := sha256.Sum256(found.Body)
		s.Send(q.w, q.r, found.ContentType, "sha256:"+hex.EncodeToString(sum[:]))
	}
}

// servePass relays bytes that the client verifies itself. A question about a project is judged by
// the name first, as attachments are.
func (g *Gateway) servePass(q *query) {
	passer, ok := q.source.Protocol.(ecosystem.PassThrough)
	if !ok {
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway has no such page"})
		return
	}
	if q.route.Project != "" {
		if _, ok := g.takeOwner(q); !ok {
			return
		}
	}
	client, ask, ok := q.source.passing(passer, q.route)
	if !ok {
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "this is not the transparency log of the upstream, and no other is asked"})
		return
	}
	l := q.metadata(ask.URL)
	settle := func(error) {}
	if q.route.Project != "" {
		if settle, ok = g.askByName(q, l); !ok {
			return
		}
	}
	err := g.listed(q)
	var body []byte
	if err == nil {
		body, err = g.relays.getAnswer(q.r.Context(), q.source, client, ask, q.route)
	}
	settle(err)
	switch {
	case errors.Is(err, fault.ErrNotFound):
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.Missing, Reason: errorSentence(err)})
	case err != nil:
		g.refuseFile(q, l, err)
	default:
		if s, ok := g.recordShown(q, l, door.ShownRelayed, l.file.Name, body); ok {
			s.Send(q.w, q.r, passedType(body), "")
		}
	}
}

// passedType is chosen here: a relayed answer is never something that a client
// would run or show as a page.
func passedType(body []byte) string {
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
