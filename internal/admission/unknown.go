package admission

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// ruleUnknown is of packages of which the imported facts can't be read.
const ruleUnknown = "advisory.unreadable"

// errFacts tells errors of the imported facts from others.
var errFacts = errors.New("the imported facts about packages can't be read")

func errUnknown(p pkgref.Ref, err error) error {
	return fault.Wrap(fault.ErrUnavailable, errors.Join(errFacts, err), "what is known of %s could not be read", p)
}

// unknownDecision is the refusal of a package of which the imported facts can't
// be read: it might be malware.
func unknownDecision() policy.Decision {
	return policy.Decision{
		Effect: policy.Deny, Rule: ruleUnknown, ResolvedBy: policy.ByAdvisory,
		Reason: "the imported facts about packages can't be read, so every package is refused; on the host, see: cofferdam advisory status",
	}
}

// refuseUnknown records that a file was refused since its facts could not be
// read. The cause goes with the error if that fails too.
func (c *Controller) refuseUnknown(ctx context.Context, t *tenant, ask door.ArtifactAsk, cause error) (door.Answer, error) {
	d := unknownDecision()
	r := blockedRecord(ask, d)
	r.Outcome = audit.Failed
	r, err := c.refuse(ctx, t, r)
	if err != nil {
		return door.Answer{}, errors.Join(cause, err)
	}
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}

// unknownVerdict withholds all of a page. It is not remembered: the facts may be
// mended at any moment.
func unknownVerdict(key indexKey, now time.Time, files []door.File) *indexVerdict {
	v := &indexVerdict{key: key, from: now, verdicts: []policy.Decision{unknownDecision()}, ofFile: make([]int, len(files))}
	v.withheld, v.refusal = withheldRanges(key.pkg.Ecosystem, files, v)
	v.epoch = v.name()
	v.page = new(ledger.PageMaker).Page(key.index, v.epoch)
	return v
}
