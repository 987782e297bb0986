package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// explainFlags describe the release that is asked about.
type explainFlags struct {
	via       []string
	kind      string
	published string
	digests   []string
	scripts   bool
	locks     []string
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
with_dependencies. --published says when the file was uploaded, for policies that
judge ages; without it that time is unknown. --scripts says that the file runs
something when it is installed. --digest says which digests it has, for lockfiles:
those that the policy names, and those of --lockfile. Imported advisories are not
consulted, and so packages.vulnerabilities is not judged.`,
		Example: `  cofferdam policy explain policy.yaml python requests==2.31.0
  cofferdam policy explain policy.yaml python mdurl==0.1.2 --via markdown-it-py==3.0.0
  cofferdam policy explain policy.yaml python numpy==2.1.0 --kind sdist --published 2024-08-18T21:40:00Z
  cofferdam policy explain policy.yaml node esbuild@0.25.0 --scripts --lockfile package-lock.json`,
		Args: cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			return flags.runExplain(time.Now(), args[0], args[1], args[2])
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
	set.StringVar(&flags.kind, "kind", "", "kind of the file: wheel, sdist or built (a wheel that is built of the sdist, see packages.sdist) for python, package for the others, or ran (what is left of a package when its install scripts ran, see packages.install_scripts) for node; the first if not given")
	set.StringVar(&flags.published, "published", "", "when the file was published, as 2024-08-18T21:40:00Z or 2024-08-18")
	set.BoolVar(&flags.scripts, "scripts", false, "the file runs something when it is installed")
	set.StringArrayVar(&flags.digests, "digest", nil, "a digest of the file, such as sha256:...; may be repeated, the registry's first")
	set.StringArrayVar(&flags.locks, "lockfile", nil, "a lockfile, as of cofferdam run; may be repeated")
	set.BoolVar(&flags.json, "json", false, "write JSON")
	registerCompletion(cmd, "kind", completeWords(string(policy.KindWheel), string(policy.KindSdist), string(policy.KindBuilt), string(policy.KindPackage), string(policy.KindRan)))
	incomplete(cmd, "via")
	incomplete(cmd, "published")
	incomplete(cmd, "digest")
	return cmd
}

func (f explainFlags) runExplain(now time.Time, document, ecosystem, release string) error {
	_, p, err := loadPolicy(document)
	if err != nil {
		return err
	}
	lock, err := f.lockfiles(document, p)
	if err != nil {
		return err
	}
	input, err := f.buildInput(p, lock, now, ecosystem, release)
	if err != nil {
		return err
	}
	return f.printAnswer(input.Package, p.Decide(now, input))
}

// lockfiles reads the lockfiles of a run with this policy; nil: it has none.
func (f explainFlags) lockfiles(document string, p *policy.Policy) (*lockfile.Set, error) {
	cwd, err := currentDirectory()
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(document) {
		document = filepath.Join(cwd, document)
	}
	read, err := runFlags{locks: f.locks}.lockfiles(cwd, document, p.Lockfiles())
	if err != nil {
		return nil, err
	}
	var sources []lockfile.Source
	for _, l := range read {
		sources = append(sources, lockfile.Source{Name: l.Source, Data: l.Document})
	}
	given, err := lockfile.Give(document, p.Lockfiles(), "", sources)
	if err != nil || given == nil {
		return nil, err
	}
	return given.Set()
}

// buildInput makes the question as the gateway would ask it.
func (f explainFlags) buildInput(p *policy.Policy, lock *lockfile.Set, now time.Time, ecosystem, release string) (policy.Input, error) {
	var in policy.Input
	family, err := pkgref.EcosystemCalled(ecosystem)
	if err != nil {
		return in, err
	}
	kind, err := f.artifactKind(family)
	if err != nil {
		return in, err
	}
	published, err := parsePublished(f.published)
	if err != nil {
		return in, err
	}
	ask := func(release string) (policy.Input, error) {
		ref, err := parseRelease(family, release)
		in := policy.Input{Subject: policy.Subject{Package: ref, Assessed: true}, FileFacts: policy.FileFacts{Kind: kind, Published: published, FirstSeen: published}}
		in.Upstream, _ = policy.OwnerOf(p.Namespaces(), ref) // its own upstream, if it has one
		if lock != nil {
			in.Lock = lock.For(ref)
		}
		return in, err
	}
	if in, err = ask(release); err != nil {
		return in, err
	}
	in.Scripts, in.Digests = f.scripts, f.digests
	if len(f.digests) > 0 {
		in.Digest, in.Complete = f.digests[0], true
	}
	in.Edges, err = f.listEdges(p, now, in.Package.Name, ask)
	return in, err
}

// listEdges lists the requirements of the releases of --via, if the policy allows
// these.
func (f explainFlags) listEdges(p *policy.Policy, now time.Time, name string, ask func(string) (policy.Input, error)) ([]policy.Edge, error) {
	var edges []policy.Edge
	for _, via := range f.via {
		parent, err := ask(via)
		if err != nil {
			return nil, err
		}
		d := p.Decide(now, parent)
		if !d.Allowed() {
			return nil, fault.Invalid("--via %s: the policy does not allow that release itself (%s), so nothing gets in through it", via, d.Reason)
		}
		edges = append(edges, policy.Edge{Parent: parent.Package, Through: d.Through, Name: name})
	}
	return edges, nil
}

// artifactKind is the kind that is asked about.
func (f explainFlags) artifactKind(ecosystem pkgref.Ecosystem) (policy.ArtifactKind, error) {
	kind := policy.ArtifactKind(f.kind)
	switch sources := ecosystem.Traits().Sources; {
	case sources && kind == "":
		return policy.KindWheel, nil
	case sources && kind != policy.KindWheel && kind != policy.KindSdist && kind != policy.KindBuilt:
		return kind, fault.Invalid("--kind %q is neither wheel nor sdist nor built", f.kind)
	case sources:
		return kind, nil
	case kind == policy.KindRan && ecosystem.Traits().Scripts:
		return kind, nil
	case ecosystem.Traits().Scripts && kind != "" && kind != policy.KindPackage:
		return kind, fault.Invalid("--kind %q is neither package nor ran", f.kind)
	case kind != "" && kind != policy.KindPackage:
		return kind, fault.Invalid("--kind %q is not package, the one kind of file that %s has", f.kind, ecosystem)
	}
	return policy.KindPackage, nil
}

// parseRelease reads NAME==VERSION, or NAME@VERSION as node and go write it.
func parseRelease(ecosystem pkgref.Ecosystem, s string) (pkgref.Ref, error) {
	name, version, ok := strings.Cut(s, "==")
	if at := strings.LastIndexByte(s, '@'); !ok && at > 0 {
		name, version, ok = s[:at], s[at+1:], true
	}
	if !ok || name == "" || version == "" {
		return pkgref.Ref{}, fault.Invalid("%q names no release: write NAME==VERSION or NAME@VERSION", s)
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

func (f explainFlags) printAnswer(ref pkgref.Ref, d policy.Decision) error {
	if err := writeAnswer(explained{Package: ref, Decision: d}, f.json, writeDecision); err != nil {
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

func writeDecision(w io.Writer, e explained) error {
	ref, d := e.Package, e.Decision
	lines := []string{fmt.Sprintf("%s: %s", d.Effect, ref)}
	if d.Would != "" {
		lines = append(lines, fmt.Sprintf("  would:  %s, if the policy did not only observe", d.Would))
	}
	lines = append(lines, "  reason: "+d.Reason, "  rule:   "+d.Rule, "  by:     "+string(d.ResolvedBy))
	if d.Pinned != "" {
		lines = append(lines, "  pinned: "+d.Pinned)
	}
	if d.Alarm {
		lines = append(lines, "  alarm:  a run that is given this file records an alarm")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, ui.Printable(line)); err != nil {
			return err
		}
	}
	if d.Suggest == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "  this would allow it:\n%s\n", indent(ui.PrintableText(strings.TrimRight(d.Suggest, "\n"))))
	return err
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(s, "\n", "\n    ")
}
