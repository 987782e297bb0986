package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// maxIndexFiles bounds an index page; the largest projects have tens of
// thousands of files.
const maxIndexFiles = 200_000

// indexVerdict is what policy says about all files of one index page. It is
// constant once made and shared by all runs with the same policy and facts.
type indexVerdict struct {
	key      indexKey
	epoch    string
	from     time.Time // when it was judged
	until    time.Time // some verdict changes then; zero: none ever does
	verdicts []policy.Decision
	ofFile   []int
	through  map[string]string // Decision.Through of allowed versions
	withheld []audit.WithheldRange
	refusal  policy.Decision // the withheld verdict that says most: of the highest version
	allowed  int             // files
}

// Index implements Door.
func (c *Controller) Index(ctx context.Context, ask IndexAsk) (IndexAnswer, error) {
	t, err := c.admit(ctx, ask.Sandbox)
	if err != nil {
		return IndexAnswer{}, err
	}
	if !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name) || ask.Package.Version != "" || ask.IndexDigest == "" || len(ask.IndexDigest) > 200 {
		return IndexAnswer{}, fault.Invalid("an index is asked about by its package's canonical name and the page's digest, not by %q", clip(ask.Package.String(), 200))
	}
	if len(ask.Files) > maxIndexFiles {
		return IndexAnswer{}, fault.Invalid("the index of %s has %d files; at most %d are judged", ask.Package, len(ask.Files), maxIndexFiles)
	}
	now := c.config.Clock()
	edges := t.edgesTo(ask.Package)
	key := indexKey{policy: t.run.Policy.Digest(), pkg: ask.Package, index: ask.IndexDigest, edges: edges.epoch}
	v := c.indexes.get(key, now)
	if v == nil {
		if ask.Files == nil {
			return IndexAnswer{NeedFiles: true}, nil
		}
		v = judge(t.run.Policy, now, key, edges.edges, ask.Files)
		c.indexes.put(v)
	}
	if ask.Files != nil && len(ask.Files) != len(v.ofFile) {
		return IndexAnswer{}, fault.Invalid("two pages with %d and %d files have one digest", len(ask.Files), len(v.ofFile))
	}
	out := IndexAnswer{Epoch: v.epoch, Verdicts: v.verdicts, OfFile: v.ofFile}
	if len(v.withheld) > 0 {
		r, err := c.refuse(ctx, t, withheldRecord(ask, v))
		if err != nil {
			return IndexAnswer{}, err
		}
		out.RequestID = r.RequestID
	}
	t.mu.Lock()
	t.indexes[ask.Package] = v
	t.mu.Unlock()
	return out, nil
}

func (t *tenant) edgesTo(p pkgref.Ref) packageEdges {
	p.Version = ""
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.edges.byPackage[p]
}

// judge asks policy about every file; equal decisions share one place.
func judge(p *policy.Policy, now time.Time, key indexKey, edges []policy.Edge, files []File) *indexVerdict {
	v := &indexVerdict{key: key, from: now, ofFile: make([]int, len(files)), through: map[string]string{}}
	places := map[verdictKey]int{}
	j := p.Judge(now, policy.Subject{Package: key.pkg, Edges: edges})
	for i, f := range files {
		d := settle(j.File(f.facts()))
		k := verdictKeyOf(d)
		place, known := places[k]
		if !known {
			place = len(v.verdicts)
			places[k] = place
			v.verdicts = append(v.verdicts, d)
		}
		v.ofFile[i] = place
		if d.Allowed() {
			v.allowed++
			v.through[f.Version] = d.Through
		}
		v.until = earlier(v.until, nextChange(p, now, f.Published))
	}
	v.withheld, v.refusal = withheldRanges(key.pkg.Ecosystem, files, v)
	sum := sha256.Sum256([]byte(strings.Join([]string{key.policy, key.pkg.String(), key.index, key.edges, v.until.UTC().Format(time.RFC3339Nano)}, "\x00")))
	v.epoch = hex.EncodeToString(sum[:16])
	return v
}

// settle makes of a decision what this version can do with it: nobody can be
// asked yet, so a hold stays a refusal and says so.
func settle(d policy.Decision) policy.Decision {
	switch d.Effect {
	case policy.Allow, policy.Deny:
	case policy.Hold:
		d.Reason += "; nobody can be asked in this version, so it is refused"
	default:
		d.Effect, d.Reason = policy.Deny, "the policy gave no decision, so it is refused"
	}
	return d
}

// verdictKey is a decision without its slice, which is the same for all files
// that it decides alike.
type verdictKey struct {
	effect           policy.Effect
	by               policy.ResolvedBy
	rule, reason     string
	through, suggest string
	wanted           string
}

func verdictKeyOf(d policy.Decision) verdictKey {
	k := verdictKey{effect: d.Effect, by: d.ResolvedBy, rule: d.Rule, reason: d.Reason, through: d.Through, suggest: d.Suggest}
	if len(d.WantedBy) > 0 {
		k.wanted = epochOf(d.WantedBy)
	}
	return k
}

// withheldRecord is the record of what an index leaves out.
func withheldRecord(ask IndexAsk, v *indexVerdict) audit.Record {
	what, reason := whatPackage, v.refusal.Reason
	if v.allowed > 0 {
		what = whatIndex
		last := v.withheld[len(v.withheld)-1]
		reason = fmt.Sprintf("%s (%d versions, %s to %s)", v.refusal.Reason, last.Versions, last.From, last.To)
	}
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Withheld, SourceURL: clip(ask.SourceURL, 2_048),
		ResolvedBy: string(v.refusal.ResolvedBy), Rule: v.refusal.Rule, Reason: reason,
		Withheld: slices.Clone(v.withheld),
		Detail:   map[string]string{detailIndex: ask.IndexDigest, detailWhat: what},
	}
	setRef(&r, ask.Package)
	explain(&r, v.refusal)
	return r
}
