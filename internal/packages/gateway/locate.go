package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// locator says what the file is that a route names: by the project's index, or by
// its address where the protocol has such.
type locator struct {
	pages     *pages.Pages
	artifacts *artifacts.Artifacts
	now       func() time.Time // when something that is seen now was first seen
	log       *slog.Logger
}

// findSubject says what the file is. Where a transparency log vouches for files the index is
// not even asked for.
func (lo *locator) findSubject(ctx context.Context, s subject) (located, error) {
	l := located{subject: s}
	addresser, addressed := s.source.Protocol.(ecosystem.Addresser)
	_, witnessed := s.source.Protocol.(ecosystem.Witness)
	var err error
	if addressed && witnessed {
		l.file, err = lo.addressed(ctx, s.source, addresser, s.route)
	} else if err = lo.findInPage(ctx, s, &l); addressed && (errors.Is(err, fault.ErrNotFound) || errors.Is(err, fault.ErrUnavailable)) {
		l.file, err = lo.addressed(ctx, s.source, addresser, s.route)
	}
	if err != nil {
		return located{}, err
	}
	l.ref, l.url = s.refOf(l.file.Version), l.file.URL
	return l, nil
}

// findInPage finds the file in its project's page by its path.
func (lo *locator) findInPage(ctx context.Context, s subject, at *located) error {
	p, err := lo.pages.Page(ctx, s.source.Source, s.route.Project)
	if err != nil {
		return err
	}
	if f, ok := p.At(s.route.Path); ok {
		at.file = f
		return lo.readRow(p, s, f, at)
	}
	if s.source.builder != "" {
		if built, of, ok := p.Built(s.source.Source, s.route.Path); ok {
			at.file, at.of = built, &of
			return lo.readRow(p, s, of, at)
		}
	}
	for _, l := range p.Index.LeftOut {
		if l.Name == s.route.File || (l.Path != "" && l.Path == s.route.Path) {
			return fault.Invalid("%s can't be served: %s", s.route.File, l.Reason)
		}
	}
	if _, ok := s.source.Protocol.(ecosystem.Addresser); ok {
		return fault.New(fault.ErrNotFound, "%s", errorSentence(notListed(s.route)))
	}
	return notListed(s.route)
}

// readRow reads what the page says of a file, for an Inspector.
func (lo *locator) readRow(p *pages.Page, s subject, f ecosystem.File, at *located) (err error) {
	if _, ok := s.source.Protocol.(ecosystem.Inspector); ok {
		at.row, err = p.Row(f.Manifest)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what the index says of the file can't be read")
	}
	return nil
}

// notListed is what a file is that neither the index nor an address gives.
func notListed(r ecosystem.Route) error {
	return fault.Invalid("the index of %s does not list %s at this path", r.Project, r.File)
}

// addressed is the file of the release that a route names, taken for what its address
// says. Its digest and its time are the log's; without one the first bytes count, since
// they were first seen.
func (lo *locator) addressed(ctx context.Context, s *source, addresser ecosystem.Addresser, r ecosystem.Route) (ecosystem.File, error) {
	f, err := addresser.Addressed(s.Index, r)
	if err != nil {
		return f, err
	}
	if !s.Client.Permits(f.URL) {
		return f, fault.Invalid("%s is on a host that is not known as a file host of the upstream", r.File)
	}
	f.FirstSeen = lo.now()
	if s.log != nil {
		said, err := s.log.Vouched(ctx, r.Project, f.Version)
		if err != nil {
			return f, err
		}
		if said.File == "" {
			return f, fault.Invalid("the upstream's transparency log has no digest of %s", r.File)
		}
		f.Digest, f.Published, f.FirstSeen = said.File, s.log.TimeOf(said.Position), said.First
	}
	first, err := lo.artifacts.FirstSeen(s.cacheKey(r.Project, f.Name))
	if err != nil {
		return f, err
	}
	if !first.IsZero() && first.Before(f.FirstSeen) {
		f.FirstSeen = first
	}
	return f, nil
}

// described is the file of the release that metadata describes, as far as it is
// known without its bytes: what the metadata requires counts as that file does, by its
// age and all else that looks at a file. nil if the protocol's files have no addresses,
// or the file can't be had: then it admits nothing.
func (lo *locator) described(ctx context.Context, l located, version string) *door.File {
	addresser, ok := l.source.Protocol.(ecosystem.Addresser)
	if !ok {
		return nil
	}
	route := l.route
	route.Version = version
	f, err := lo.addressed(ctx, l.source, addresser, route)
	if err != nil {
		lo.log.Debug("what a release's metadata requires admits nothing: its file is not known", "release", l.ref.String(), "error", err)
		return nil
	}
	file := pages.DoorFile(f)
	return &file
}
