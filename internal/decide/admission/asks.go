package admission

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// The most that is told of an ask, in bytes and in edges.
const (
	maxTask   = 2_000
	maxWanted = 5
)

// asking is what every ask of the run has in common.
func (t *tenant) asking(d policy.Decision) approval.Ask {
	return approval.Ask{
		Run: t.run.Run, Sandbox: t.run.Sandbox, Policy: t.policy().Digest(), PolicyName: redact.Sealed(t.policy().Source(), 1_024),
		Token: t.run.Token, OwnerKey: t.ownerKey, User: t.run.User, Task: redact.Sealed(t.run.Task, maxTask), Rule: d.Rule, Reason: d.Reason,
	}
}

// fileAsk makes the queue's question about a file that waits.
func (t *tenant) fileAsk(q fileQuestion, d policy.Decision) approval.Ask {
	w := t.asking(d)
	w.Package, w.Upstream, w.Files = q.Package, q.Upstream, []approval.File{fileOf(q)}
	if q.evidence != nil {
		w.Evidence = *q.evidence
	}
	if w.Evidence.Published.IsZero() {
		w.Evidence.Published = q.File.Published
	}
	if w.Evidence.FirstSeen.IsZero() {
		w.Evidence.FirstSeen = q.File.FirstSeen
	}
	t.compareInstalled(&w.Evidence, q.Package, q.paths)
	for _, text := range findings(q) {
		if !slices.Contains(w.Evidence.Findings, text) {
			w.Evidence.Findings = append(w.Evidence.Findings, text)
		}
	}
	for _, inner := range q.Bundled {
		w.Evidence.Findings = append(w.Evidence.Findings, "it brings "+inner+" inside")
	}
	for _, e := range d.WantedBy[:min(len(d.WantedBy), maxWanted)] {
		w.WantedBy = append(w.WantedBy, requires(e))
	}
	return w
}

func fileOf(q fileQuestion) approval.File {
	f := approval.File{
		Name: q.File.Name, Kind: string(q.File.Kind), Digests: q.fileFacts().Digests, Size: q.fileSize(),
		Scripts: q.File.Scripts, Published: q.File.Published,
	}
	if f.Size == 0 {
		f.Size = q.File.Size
	}
	return f
}

// requires is "rich 13.7.1 requires markdown-it-py >=2.2.0".
func requires(e policy.Edge) string {
	text := e.Parent.Name + " " + e.Parent.Version + " requires " + e.Name
	if e.Specifier != "" {
		text += " " + redact.Sealed(e.Specifier, 200)
	}
	if extra, _, _ := strings.Cut(e.Unasked, ","); extra != "" {
		text += " for its extra " + redact.Sealed(extra, 40)
	}
	return text
}

// shownAs is the request that a person is told of: the tree, where there is one.
func shownAs(r approval.Request) string {
	if r.State == approval.Pending && r.Tree != "" {
		return r.Tree
	}
	return r.ID
}
