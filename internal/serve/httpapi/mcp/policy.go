package mcp

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxKeys bounds the keys of a document that are explained at once.
const maxKeys = 200

type policyInput struct {
	Ecosystem string `json:"ecosystem,omitempty" jsonschema:"with package and version: what is decided about that release"`
	Package   string `json:"package,omitempty"`
	Version   string `json:"version,omitempty"`
}

// key is what one key of a policy means.
type key struct {
	Key      string `json:"key"`
	Line     int    `json:"line,omitempty"`
	Meaning  string `json:"meaning"`
	Enforced bool   `json:"enforced"` // false: what it asks for stays closed here
}

type decision struct {
	Effect string `json:"effect"` // allow; hold: a person decides; deny
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

type policyOutput struct {
	Name      string    `json:"name,omitempty"`
	Digest    string    `json:"digest"`
	Keys      []key     `json:"keys"`
	Total     int       `json:"total"`
	Truncated bool      `json:"truncated"`
	Decision  *decision `json:"decision,omitempty"` // about the release, by its name and version alone: its file, its age and advisories are judged when it is installed, and plan_packages weighs them
}

func explainPolicy(ctx context.Context, c call, in policyInput) (policyOutput, error) {
	parsed, err := c.peer.policy(ctx)
	if err != nil {
		return policyOutput{}, err
	}
	out := policyOutput{Name: ui.Printable(parsed.Name()), Digest: parsed.Digest(), Keys: []key{}}
	all := parsed.Check()
	out.Total, out.Truncated = len(all), len(all) > maxKeys
	for _, e := range all[:min(len(all), maxKeys)] {
		out.Keys = append(out.Keys, key{Key: ui.Printable(e.Key), Line: e.Line, Meaning: text.Shorten(ui.Printable(e.Meaning), maxSentence), Enforced: e.Enforced})
	}
	if in == (policyInput{}) {
		return out, nil
	}
	if in.Ecosystem == "" || in.Package == "" || in.Version == "" {
		return policyOutput{}, failure(codeInvalid, "ecosystem, package and version are given together, or none of them", "")
	}
	out.Decision, err = decide(parsed, in)
	return out, err
}

// policy is that of a peer's sandboxes, as the daemon has it on record for their run.
func (p *peer) policy(ctx context.Context) (*policy.Policy, error) {
	if _, err := p.needSandbox(ctx, ""); err != nil {
		return nil, err
	}
	p.mu.Lock()
	run := p.run
	p.mu.Unlock()
	of, err := askBackend(ctx, p, func(b Backend) (api.Suggestion, error) { return b.Suggest(ctx, run) })
	if err != nil {
		return nil, err
	}
	parsed, err := policy.Parse(filepath.Base(of.Source), of.Document)
	if err != nil {
		return nil, fmt.Errorf("the daemon's policy can't be read by this version: %w", err)
	}
	return parsed, nil
}

func decide(parsed *policy.Policy, in policyInput) (*decision, error) {
	of, err := pkgref.EcosystemCalled(in.Ecosystem)
	if err != nil {
		return nil, err
	}
	ref, err := pkgref.New(of, in.Package, in.Version)
	if err != nil {
		return nil, err
	}
	kind := policy.KindPackage
	if of.Traits().Sources {
		kind = policy.KindWheel
	}
	input := policy.Input{Subject: policy.Subject{Package: ref, Assessed: true}, FileFacts: policy.FileFacts{Kind: kind}}
	input.Upstream, _ = policy.OwnerOf(parsed.Namespaces(), ref) // its own upstream, if it has one
	d := parsed.Decide(time.Now(), input)
	return &decision{Effect: string(d.Effect), Rule: ui.Printable(d.Rule), Reason: ui.Printable(d.Reason)}, nil
}
