package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/evidence"
)

func newApprovalsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID...",
		Short: "Show requests with all their evidence, and what approving would mean",
		Long: `Shows everything that is known about a request: who asked and why, what wanted it,
its files with their digests, and the evidence. A group's id means its pending
requests. Publishers and agents wrote the text in it, so don't take it for true.
Characters that a terminal would take for instructions are shown as escapes.`,
		Example: "  cofferdam approvals show ap-k3m7qx\n  cofferdam approvals show apg-h4t9zc --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			requests, err := addressed(ctx, c, ids)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(os.Stdout, requests)
			}
			for i, r := range requests {
				if i > 0 {
					_, _ = fmt.Fprintln(os.Stdout) // the next write fails as well
				}
				if err := showRequest(os.Stdout, r, time.Now()); err != nil {
					return err
				}
			}
			return nil
		},
		ValidArgsFunction: completeRequests(),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// sheet is text of named lines, in two columns. All values are made printable.
type sheet struct{ b strings.Builder }

const sheetIndent = 16

func (s *sheet) line(name, format string, args ...any) {
	_, _ = fmt.Fprintf(&s.b, "  %-*s%s\n", sheetIndent-2, name, printable(fmt.Sprintf(format, args...)))
}

// text is line for a value that may be missing.
func (s *sheet) text(name, value string) {
	if value != "" {
		s.line(name, "%s", value)
	}
}

// list names its first value only.
func (s *sheet) list(name string, values []string) {
	for i, value := range values {
		if i > 0 {
			name = ""
		}
		s.line(name, "%s", value)
	}
}

// words is our own text, broken into lines.
func (s *sheet) words(text string) {
	const width = 94
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			_, _ = fmt.Fprintf(&s.b, "  %s\n", line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	_, _ = fmt.Fprintf(&s.b, "  %s\n", line)
}

func showRequest(w io.Writer, r approval.Request, now time.Time) error {
	s := &sheet{}
	_, _ = fmt.Fprintf(&s.b, "%s  %s  %s\n", printable(r.ID), printable(releaseText(r)), printable(string(r.State)))
	showStanding(s, r)
	showAskers(s, r, now)
	if r.IsTree() {
		showMembers(s, r, now)
	} else {
		showEvidence(s, r, now)
		showFiles(s, r)
	}
	if r.State == approval.Pending {
		_, _ = fmt.Fprintln(&s.b)
		s.words(printable(meaning(r, approval.ScopeRun, 0)))
		_, _ = fmt.Fprintf(&s.b, "\n  cofferdam approvals approve %s\n  cofferdam approvals deny %s --reason \"...\"\n", printable(r.ID), printable(r.ID))
	}
	_, err := io.WriteString(w, s.b.String())
	return err
}

func showStanding(s *sheet, r approval.Request) {
	if a := r.Answer; a != nil {
		until := "for ever"
		if !a.Expires.IsZero() {
			until = "until " + a.Expires.Local().Format(time.DateTime)
		}
		s.line("answer", "%s by %s at %s, scope %s, %s", a.State, a.By, a.At.Local().Format(time.DateTime), a.Scope, until)
		s.text("reason", a.Reason)
		s.list("for runs", a.Runs)
		s.list("for policies", a.Policies)
	}
	s.text("ended", r.Ended)
	s.text("replaced by", r.ReplacedBy)
	if r.State == approval.Pending && !r.Expires.IsZero() {
		s.line("waits until", "%s", r.Expires.Local().Format(time.DateTime))
	}
	s.line("why it waits", "%s [%s]", r.Reason, r.Rule)
	s.text("group", r.Group)
	if r.Tree != "" && r.Tree != r.ID {
		s.line("part of", "%s", r.Tree)
	}
	s.list("note", r.Notes)
	if len(r.Near) > 0 {
		s.line("ATTENTION", "the same run asks for names that are almost the same: %s", strings.Join(r.Near, ", "))
	}
}

func showAskers(s *sheet, r approval.Request, now time.Time) {
	for _, a := range r.Asks {
		by := ""
		if a.User != "" {
			by = " of " + a.User
		}
		s.line("asked by", "run %s%s, %s ago", a.Run, by, age(now.Sub(a.At)))
		policy := a.PolicyName
		if policy == "" {
			policy = "the built-in policy"
		}
		s.line("  under", "%s (%s)", policy, a.Policy)
		s.text("  task", a.Task)
		s.list("  wanted by", a.WantedBy)
		if a.Because != "" {
			s.line("  it says", "%q (the agent's claim)", a.Because)
		}
	}
	if more := r.Asked - len(r.Asks); more > 0 {
		s.line("", "and %s", plural(more, "other run", "other runs"))
	}
}

func showEvidence(s *sheet, r approval.Request, now time.Time) {
	e := r.Evidence
	s.list("ADVISORIES", e.Advisories)
	s.text("SIMILAR TO", e.Similar)
	s.list("FINDINGS", e.Findings)
	s.list("NOT CHECKED", e.Unchecked)
	s.list("runs", e.Scripts)
	s.orUnknown("index", r.Upstream)
	if e.Published.IsZero() {
		s.line("published", "%s", unknown)
	} else {
		s.line("published", "%s, %s ago", e.Published.UTC().Format(time.DateOnly), age(now.Sub(e.Published)))
	}
	if !e.FirstSeen.IsZero() {
		s.line("first seen", "%s, by this installation", e.FirstSeen.UTC().Format(time.DateOnly))
	}
	popularity := e.Popularity
	if popularity == "" {
		popularity = "on no list of popular packages that is known here"
	}
	s.text("popularity", popularity)
	s.orUnknown("maintainer", e.Maintainer)
	s.orUnknown("summary", e.Summary)
	s.orUnknown("homepage", e.Homepage)
	s.orUnknown("license", e.License)
	if e.Versions > 0 {
		s.line("versions", "%d", e.Versions)
	}
	s.list("requires", e.Requires)
	showInside(s, e.Inside)
	showUpgrade(s, e)
	if e.LastApproved != "" {
		s.line("last approved", "%s", e.LastApproved)
		s.list("since then", e.Changes)
	}
}

// unknown is what is told where nothing is known.
const unknown = "unknown"

// orUnknown is line for a value that may not be known.
func (s *sheet) orUnknown(name, value string) {
	if value == "" {
		value = unknown
	}
	s.line(name, "%s", value)
}

// showInside tells what the file brings.
func showInside(s *sheet, in *evidence.Inside) {
	if in == nil {
		s.line("inside", "not checked: the file was not looked into yet")
		return
	}
	s.line("inside", "%s", plural(in.Files, "file", "files"))
	s.list("  modules", in.Modules)
	s.list("  entry points", in.EntryPoints)
	s.list("  EACH START", in.Starts)
	s.list("  NATIVE CODE", in.Native)
	if len(in.Starts)+len(in.Native) == 0 {
		s.line("", "no native code, and nothing that runs at each start")
	}
}

// showUpgrade tells what differs from the version that the run has.
func showUpgrade(s *sheet, e evidence.Evidence) {
	if e.Installed == "" {
		return
	}
	s.line("in its place", "the run has %s of it already", e.Installed)
	switch {
	case e.FilesUnknown:
		s.line("  new files", "%s", unknown)
	case len(e.NewFiles) == 0:
		s.line("  new files", "none")
	default:
		s.list("  new files", e.NewFiles)
	}
}

func showFiles(s *sheet, r approval.Request) {
	if len(r.Files) == 0 {
		s.line("files", "none is known yet")
	}
	for i, f := range r.Files {
		name := ""
		if i == 0 {
			name = "files"
		}
		about := []string{f.Kind}
		if f.Size > 0 {
			about = append(about, bytesText(f.Size))
		}
		if !f.Published.IsZero() {
			about = append(about, "of "+f.Published.UTC().Format(time.DateOnly))
		}
		if f.Scripts {
			about = append(about, "RUNS SOMETHING at installation")
		}
		s.line(name, "%s (%s)", f.Name, strings.Join(about, ", "))
		for _, d := range f.Digests {
			s.line("", "  %s", d)
		}
		if len(f.Digests) == 0 {
			s.line("", "  no digest is known yet")
		}
	}
}

// meaning says what an approval would do, and what it would not.
func meaning(r approval.Request, scope approval.Scope, lasts time.Duration) string {
	if r.IsTree() {
		return treeMeaning(r, scope, lasts)
	}
	who := whom(r, scope)
	long := until(lasts)
	return fmt.Sprintf("Approving (scope %s) lets %s install exactly %s of %s, by digest, from this index%s. Another file, version, index or run asks again; "+
		"what it requires is not approved with it, and what the policy denies stays denied.",
		scope, who, noun(len(r.Files), "this file", fmt.Sprintf("these %d files", len(r.Files))), releaseText(r), long)
}

// until is the end of an answer that lasts for some time.
func until(lasts time.Duration) string {
	if lasts <= 0 {
		return ""
	}
	return fmt.Sprintf(" until %s", time.Now().Add(lasts).Format(time.DateTime))
}

// whom says for whom an answer would be.
func whom(r approval.Request, scope approval.Scope) string {
	who := "every run of this installation"
	switch scope {
	case approval.ScopeRun:
		who = fmt.Sprintf("the %s", noun(r.Asked, "run that asked", fmt.Sprintf("%d runs that asked", r.Asked)))
	case approval.ScopePolicy:
		who = "every run under the same policy, byte for byte, as " + noun(r.Asked, "the run that asked", "one of the runs that asked")
	case approval.ScopeEverywhere:
	}
	return who
}
