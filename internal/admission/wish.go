package admission

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// The most that is told of a wish, in bytes and in edges.
const (
	maxTask   = 2_000
	maxWanted = 5
)

// wish is a file that waits, for the queue.
func (t *tenant) wish(ask door.ArtifactAsk, d policy.Decision) approval.Ask {
	w := approval.Ask{
		Package: ask.Package, Upstream: ask.Upstream, Files: []approval.File{fileOf(ask)},
		Run: t.run.Run, Sandbox: t.run.Sandbox, Policy: t.policy().Digest(), PolicyName: excerpt.Of(t.policy().Source(), 1_024),
		Token: t.run.Token, User: t.run.User, Task: excerpt.Of(t.run.Task, maxTask), Rule: d.Rule, Reason: d.Reason,
	}
	if ask.Evidence != nil {
		w.Evidence = *ask.Evidence
	}
	if w.Evidence.Published.IsZero() {
		w.Evidence.Published = ask.File.Published
	}
	if w.Evidence.FirstSeen.IsZero() {
		w.Evidence.FirstSeen = ask.File.FirstSeen
	}
	t.compareInstalled(&w.Evidence, ask.Package, ask.Paths)
	for _, text := range findings(ask) {
		if !slices.Contains(w.Evidence.Findings, text) {
			w.Evidence.Findings = append(w.Evidence.Findings, text)
		}
	}
	for _, inner := range ask.Bundled {
		w.Evidence.Findings = append(w.Evidence.Findings, "it brings "+inner+" inside")
	}
	w.Evidence.Findings = w.Evidence.Findings[:min(len(w.Evidence.Findings), maxEvidence)]
	for _, e := range d.WantedBy[:min(len(d.WantedBy), maxWanted)] {
		w.WantedBy = append(w.WantedBy, requires(e))
	}
	return w
}

// maxEvidence bounds the findings that a wish tells.
const maxEvidence = 50

func fileOf(ask door.ArtifactAsk) approval.File {
	f := approval.File{
		Name: ask.File.Name, Kind: string(ask.File.Kind), Digests: ask.Facts().Digests, Size: ask.Size,
		Scripts: ask.File.Scripts, Published: ask.File.Published,
	}
	if f.Size == 0 {
		f.Size = ask.File.Size
	}
	return f
}

// requires is "rich 13.7.1 requires markdown-it-py >=2.2.0".
func requires(e policy.Edge) string {
	text := e.Parent.Name + " " + e.Parent.Version + " requires " + e.Name
	if e.Specifier != "" {
		text += " " + excerpt.Of(e.Specifier, 100)
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
