package admission

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// moveRelease moves a release by what was said of a file of it, or of its metadata, and
// follows what that opens or closes.
func (t *tenant) moveRelease(q fileQuestion, w weighed) error {
	return t.ledger.Move(q.Package, ledger.Origin{Upstream: q.Upstream, Toolchain: q.Toolchain}, t.ledgerEvent(q, w))
}

// foreseen moves a release that is to wait, and is what rehearsals found about it.
func foreseen(ctx context.Context, t *tenant, q fileQuestion, w weighed) (notes []string, err error) {
	if err := t.moveRelease(q, w); err != nil {
		return nil, err
	}
	return t.rehearsals.Whole(door.ClientOf(ctx), q.Package)
}

// ledgerEvent is what an answer says of a release. Metadata opens what the release's own
// file would open, by all that looks at a file: that its name may be read admits
// nothing.
func (t *tenant) ledgerEvent(q fileQuestion, w weighed) ledger.Event {
	facts, said := q.fileFacts(), w.said
	if q.File.Kind == policy.KindMetadata {
		switch {
		case !w.decision.Shown():
			return ledger.Event{Kind: ledger.Denied}
		case q.Release == nil:
			return ledger.Event{Kind: ledger.Read}
		}
		facts = q.Release.Facts()
		said = w.judge.File(facts)
	}
	e := ledger.Event{Kind: ledger.Denied, File: facts.File, Facts: &facts}
	switch t.known.settleDecision(said).Effect {
	case policy.Allow:
		e.Kind, e.Through, e.ByEdge = ledger.Allowed, said.Through, ledger.ByEdge(w.judge.Release(q.Package.Version))
	case policy.Hold:
		e.Kind = ledger.Waits
	case policy.Deny:
		if q.File.Kind == policy.KindMetadata {
			e.Kind = ledger.Read
		}
	}
	return e
}
