package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// explainFlags describe the release that is asked about.
type explainFlags struct {
	via       []string
	kind      string
	published string
	json      bool
}

// explained is what `policy explain --json` writes.
type explained struct {
	Package  pkgref.Ref      `json:"package"`
	Decision policy.Decision `json:"decision"`
}

func newPolicyExplain() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain FILE ECOSYSTEM NAME==VERSION",
		Short: "Say what a policy decides about a release, and by which rule",
		Long: `Asks the same function that the gateway asks, and prints its decision, the rule
and the reason. Exit code 0 is allow, 1 deny, 3 hold.

--via names a release whose metadata requires the package, for entries with
with_dependencies. Where the policy judges a release's age, --published says
when the file was uploaded; without it that time is unknown.`,
		Example: `  cofferdam policy explain policy.yaml python requests==2.31.0
  cofferdam policy explain policy.yaml python mdurl==0.1.2 --via markdown-it-py==3.0.0
  cofferdam policy explain policy.yaml python numpy==2.1.0 --kind sdist --published 2024-08-18T21:40:00Z`,
		Args: cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			_, p, err := loadPolicy(args[0])
			if err != nil {
				return err
			}
			now := time.Now()
			input, err := flags.input(p, now, args[1], args[2])
			if err != nil {
				return err
			}
			return flags.answer(input.Package, p.Decide(now, input))
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
			case 1:
				return ecosystemNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	set := cmd.Flags()
	set.StringArrayVar(&flags.via, "via", nil, "a release NAME==VERSION that requires the package; may be repeated")
	set.StringVar(&flags.kind, "kind", string(policy.KindWheel), "kind of the file: wheel or sdist")
	set.StringVar(&flags.published, "published", "", "when the file was published, as 2024-08-18T21:40:00Z or 2024-08-18")
	set.BoolVar(&flags.json, "json", false, "write JSON")
	register(cmd, "kind", fixed(string(policy.KindWheel), string(policy.KindSdist)))
	register(cmd, "via", cobra.NoFileCompletions)
	register(cmd, "published", cobra.NoFileCompletions)
	return cmd
}

func ecosystemNames() []string {
	var names []string
	for _, e := range pkgref.Ecosystems() {
		names = append(names, string(e))
	}
	return names
}

// input is the question as the gateway would ask it.
func (f explainFlags) input(p *policy.Policy, now time.Time, ecosystem, release string) (policy.Input, error) {
	in := policy.Input{FileFacts: policy.FileFacts{Kind: policy.ArtifactKind(f.kind)}}
	if in.Kind != policy.KindWheel && in.Kind != policy.KindSdist {
		return in, fault.Invalid("--kind %q is neither wheel nor sdist", f.kind)
	}
	family, err := pkgref.ParseEcosystem(ecosystem)
	if err != nil {
		return in, err
	}
	if in.Package, err = parseRelease(family, release); err != nil {
		return in, err
	}
	if in.Published, err = parsePublished(f.published); err != nil {
		return in, err
	}
	for _, via := range f.via {
		parent, err := parseRelease(family, via)
		if err != nil {
			return in, err
		}
		d := p.Decide(now, policy.Input{
			Subject: policy.Subject{Package: parent}, FileFacts: policy.FileFacts{Kind: policy.KindWheel, Published: in.Published},
		})
		if !d.Allowed() {
			return in, fault.Invalid("--via %s: the policy does not allow that release itself (%s), so nothing gets in through it", via, d.Reason)
		}
		in.Edges = append(in.Edges, policy.Edge{Parent: parent, Through: d.Through, Name: in.Package.Name})
	}
	return in, nil
}

// parseRelease reads NAME==VERSION, or NAME@VERSION as node and go write it.
func parseRelease(ecosystem pkgref.Ecosystem, s string) (pkgref.Ref, error) {
	name, version, ok := strings.Cut(s, "==")
	if at := strings.LastIndexByte(s, '@'); !ok && at > 0 {
		name, version, ok = s[:at], s[at+1:], true
	}
	if !ok || name == "" || version == "" {
		return pkgref.Ref{}, fault.Invalid("%q must be NAME==VERSION, such as requests==2.31.0", s)
	}
	return pkgref.New(ecosystem, name, version)
}

func parsePublished(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Invalid("--published %q must be a time such as 2024-08-18T21:40:00Z or 2024-08-18", s)
}

func (f explainFlags) answer(ref pkgref.Ref, d policy.Decision) error {
	var err error
	if f.json {
		err = writeJSON(os.Stdout, explained{Package: ref, Decision: d})
	} else {
		err = writeDecision(ref, d)
	}
	if err != nil {
		return err
	}
	switch d.Effect {
	case policy.Allow:
		return nil
	case policy.Hold:
		return &exitError{code: exitHeld}
	case policy.Deny:
	}
	return &exitError{code: exitDenied}
}

func writeDecision(ref pkgref.Ref, d policy.Decision) error {
	lines := []string{fmt.Sprintf("%s: %s", d.Effect, ref)}
	lines = append(lines, "  reason: "+d.Reason, "  rule:   "+d.Rule, "  by:     "+string(d.ResolvedBy))
	for _, line := range lines {
		if _, err := fmt.Println(printable(line)); err != nil {
			return err
		}
	}
	if d.Suggest == "" {
		return nil
	}
	_, err := fmt.Printf("  this would allow it:\n%s\n", indent(printableText(strings.TrimRight(d.Suggest, "\n"))))
	return err
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(s, "\n", "\n    ")
}
