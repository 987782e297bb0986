package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// proposals are what agents ask for before anything fails.
type proposals struct {
	door        door.Packages
	sources     sources
	guests      *guestRates
	pages       *pages.Pages
	inspections *inspections

	mu   sync.Mutex
	busy map[string]bool // sandboxes whose proposals are being looked up: one each; guarded by mu
}

func newProposals(d door.Packages, of sources, gs *guestRates, ps *pages.Pages, is *inspections) *proposals {
	return &proposals{door: d, sources: of, guests: gs, pages: ps, inspections: is, busy: map[string]bool{}}
}

func (p *proposals) beginProposal(sandbox string) (end func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[sandbox] {
		return nil, false
	}
	p.busy[sandbox] = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.busy, sandbox)
	}, true
}

// lookUp looks up what an agent asks for before anything fails, and has the
// door judge and file it. The names count like those of installs, and each takes
// its turn in the guest's rate. The answer has one entry for each item, in their
// order.
func (p *proposals) lookUp(ctx context.Context, sandbox string, r channel.Request) ([]door.Proposed, error) {
	if len(r.Items) == 0 || len(r.Items) > channel.MaxRequestItems {
		return nil, fault.Invalid("a request is for 1 to %d packages, not for %d", channel.MaxRequestItems, len(r.Items))
	}
	if len(r.Because) > channel.MaxRequestReason {
		return nil, fault.Invalid("the reason is %d bytes long; at most %d", len(r.Because), channel.MaxRequestReason)
	}
	ctx = fairqueue.For(ctx, sandbox)
	end, ok := p.beginProposal(sandbox)
	if !ok {
		return nil, fault.New(fault.ErrConflict, "another request of this sandbox is being looked up; wait for its answer")
	}
	defer end()
	out := make([]door.Proposed, len(r.Items))
	ask := door.ProposalAsk{Sandbox: sandbox, Because: r.Because}
	var place []int // of each asked item in out
	for i, item := range r.Items {
		found, refused, err := p.findRelease(ctx, sandbox, item)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			out[i] = door.Proposed{Package: refused.Package, Effect: policy.Deny, Reason: errorSentence(err)}
		case found == nil:
			out[i] = *refused
		default:
			ask.Items, place = append(ask.Items, *found), append(place, i)
		}
	}
	if len(ask.Items) == 0 {
		return out, nil
	}
	answers, err := p.door.Propose(ctx, ask)
	if err == nil && len(answers) != len(ask.Items) {
		err = errors.New("the door answered another number of packages")
	}
	if err != nil {
		return nil, err
	}
	for k, a := range answers {
		out[place[k]] = a
	}
	return out, nil
}

// findRelease finds the release that an item means. refused is never nil if found is.
func (p *proposals) findRelease(ctx context.Context, sandbox string, item channel.RequestItem) (found *door.ProposedAsk, refused *door.Proposed, err error) {
	ref, err := pkgref.New(pkgref.Ecosystem(item.Ecosystem), item.Name, item.Version)
	refused = &door.Proposed{Effect: policy.Deny}
	if err != nil {
		return nil, refused, fault.Wrap(fault.ErrInvalid, err, "no valid package name of %s", redact.Cut(item.Ecosystem, 32))
	}
	refused.Package = ref
	if !p.guests.admitRequest(ctx, sandbox) {
		return nil, refused, fault.New(fault.ErrUnavailable, "this run asks faster than the gateway answers one run")
	}
	sources, err := p.sources.sourcesOf(ctx, p.door, door.OwnerAsk{Sandbox: sandbox, Package: ref})
	if err != nil {
		return nil, refused, err
	}
	for _, s := range sources {
		found, decision, err := p.findAt(ctx, s, sandbox, ref)
		if errors.Is(err, fault.ErrNotFound) && len(sources) > 1 {
			continue
		}
		if err != nil {
			return nil, refused, err
		}
		if found == nil {
			refused.Rule, refused.Reason = decision.Rule, decision.Reason
			return nil, refused, nil
		}
		return found, refused, nil
	}
	return nil, refused, fault.New(fault.ErrNotFound, "no upstream has it")
}

// findAt asks one upstream. A nil found comes with the decision that refuses
// all that could be meant.
func (p *proposals) findAt(ctx context.Context, s *source, sandbox string, ref pkgref.Ref) (found *door.ProposedAsk, refused policy.Decision, err error) {
	name := ref
	name.Version = ""
	settle, err := p.guests.beginAsk(sandbox, naming{project: name.String()}, ctx.Done())
	if err != nil {
		return nil, refused, err
	}
	result := nameRefused
	defer func() { settle(result) }()
	page, err := p.pages.Page(ctx, s.Source, ref.Name)
	if err != nil {
		return nil, refused, err
	}
	j, err := p.pages.Judge(ctx, pages.Reader{Sandbox: sandbox}, s.Source, ref.Name, page)
	if err != nil {
		return nil, refused, err
	}
	version, refused := choose(ref, j)
	if version == "" {
		if refused.Rule == "" {
			return nil, refused, fault.New(fault.ErrNotFound, "the registry does not have this release")
		}
		return nil, refused, nil
	}
	result = outcomeOfPage(j)
	ref.Version = version
	found, err = p.described(ctx, s, j.Page, ref)
	return found, refused, err
}

// choose picks the version that is meant: the named one, or the highest that
// policy does not deny, a stable one if there is any. With "" comes the decision
// on the named or the highest release, zero if there is none.
func choose(ref pkgref.Ref, j pages.Judged) (version string, refused policy.Decision) {
	var best, highest *pkgref.Version
	for i, f := range j.Index.Files {
		d := j.Decision(i)
		if ref.Version != "" && !pkgref.SameVersion(ref.Ecosystem, f.Version, ref.Version) {
			continue
		}
		v, _ := pkgref.ParseVersion(ref.Ecosystem, f.Version)
		if highest == nil || v.CompareSpelled(*highest) > 0 {
			highest, refused = &v, d
		}
		if !d.Shown() {
			continue
		}
		if best == nil || v.Stable() && !best.Stable() || v.Stable() == best.Stable() && v.CompareSpelled(*best) > 0 {
			best = &v
		}
	}
	if best != nil {
		return best.String(), policy.Decision{}
	}
	return "", refused
}

// described is a release with all its files.
func (p *proposals) described(ctx context.Context, s *source, page *pages.Page, ref pkgref.Ref) (*door.ProposedAsk, error) {
	out := &door.ProposedAsk{Package: ref, Upstream: s.Index, Toolchain: s.Toolchain(ref.Name), SourceURL: page.URL}
	doorFiles := page.DoorFiles()
	for i, f := range page.Index.Files {
		if f.Version != ref.Version {
			continue
		}
		if len(out.Files) == 0 || f.Kind == policy.KindWheel && !hasWheel(out.Files) {
			row, err := page.Row(f.Manifest)
			if err != nil {
				return nil, err
			}
			out.Evidence = p.inspections.evidence(ctx, s, page, ref.Name, f, row)
		}
		file := doorFiles[i]
		if file.Digest == "" && s.log != nil {
			if said, err := s.log.Vouched(ctx, ref.Name, ref.Version); err == nil {
				file.Digest = said.File
			}
		}
		out.Files = append(out.Files, file)
	}
	return out, nil
}

func hasWheel(files []door.File) bool {
	return slices.ContainsFunc(files, func(f door.File) bool { return f.Kind == policy.KindWheel })
}
