package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newProject() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "project",
		Short:   "How the runs of a directory are made, without flags",
		GroupID: groupWork,
		Long: `A file cofferdam.yaml in a directory says how "cofferdam run" makes its sandboxes there and
in the directories below it. Its keys are flags of run; one that you type goes before it:

  template: debian
  policy: policy.yaml
  workspace: copy
  agent: claude
  environment: { MODE: test }
  hooks: { start: [ "npm ci" ], end: [ "npm test" ] }
  command: [ npx, claude ]

The others are isolation, home, task, timeout, lockfiles, mounts and ports. Paths are from
the file's directory. Hooks are lines for a shell in the sandbox, before and after the
command.

Such a file can come with code that a stranger wrote. So a run uses it only once you have
read it and said so to "cofferdam project allow", and again after each change of it, of
the policy that it names, of a lockfile that either names, or of where links on the way of
its paths lead. "cofferdam run --no-project" goes without.`,
		Example: `  cofferdam project import .devcontainer/devcontainer.json
  cofferdam project show
  cofferdam project allow
  cofferdam run`,
	}
	cmd.AddCommand(newProjectShow(), newProjectAllow(), newProjectForbid(), newProjectImport())
	return cmd
}

// projectView is a project, as `project show --json` writes it.
type projectView struct {
	File     string           `json:"file"`
	Digest   string           `json:"digest"`
	Allowed  bool             `json:"allowed"`
	Settings project.Settings `json:"settings"`
	Leads    []project.Lead   `json:"leads,omitempty"`   // paths of the settings that go through links
	Locks    []project.Lock   `json:"locks,omitempty"`   // lockfiles that the settings and the policy name
	Outside  []string         `json:"outside,omitempty"` // lines about parts of what is shown that lie elsewhere, and with which flag they are shown

	text, policy, ignore string
}

func viewProject(p *project.Project, allowed bool) projectView {
	return projectView{File: p.Path(), Digest: p.Digest, Allowed: allowed, Settings: p.Settings, Leads: p.Leads, Locks: p.Locks, Outside: outsideProject(p), text: string(p.Text), policy: string(p.Policy), ignore: string(p.Ignore)}
}

func newProjectShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [DIRECTORY]",
		Short: "Show the settings that a run would use",
		Long: `Shows the cofferdam.yaml of this directory, or of the one that is named, or of the nearest
above it, and whether you have allowed it.`,
		Example: "  cofferdam project show\n  cofferdam project show --json",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		p, err := namedProject(args)
		if err != nil {
			return err
		}
		ok, err := isAllowed(p)
		if err != nil {
			return err
		}
		return writeAnswer(viewProject(p, ok), *asJSON, writeProject)
	}
	return cmd
}

func writeProject(w io.Writer, v projectView) error {
	state := "you have allowed it"
	if !v.Allowed {
		state = "you have not allowed it as it is: read this, and then: cofferdam project allow --digest " + v.Digest
	}
	return v.writeView(w, state)
}

// writeView shows all that a person has to have read, as it was read here.
func (v projectView) writeView(w io.Writer, state string) error {
	text := fmt.Sprintf("%s: %s\n\n%s", ui.Printable(v.File), state, ui.PrintableText(v.text))
	if v.Settings.Policy != "" {
		text = strings.TrimSuffix(text, "\n") + fmt.Sprintf("\n\n%s:\n\n%s", ui.Printable(v.Settings.Policy), ui.PrintableText(v.policy))
	}
	if v.ignore != "" {
		text = strings.TrimSuffix(text, "\n") + fmt.Sprintf("\n\n%s, which hides files of the directory from runs:\n\n%s", project.IgnoreFile, ui.PrintableText(v.ignore))
	}
	for i, l := range v.Leads {
		if i == 0 {
			text = strings.TrimSuffix(text, "\n") + "\n\nthrough links these paths lead elsewhere:\n\n"
		}
		text += fmt.Sprintf("  %s: %s\n", ui.Printable(l.Path), ui.Printable(l.To))
	}
	for i, l := range v.Locks {
		if i == 0 {
			text = strings.TrimSuffix(text, "\n") + "\n\nthese lockfiles say what runs may install; look at them as well:\n\n"
		}
		text += fmt.Sprintf("  %s: %s\n", ui.Printable(l.Path), lockState(l))
	}
	_, err := fmt.Fprintln(w, strings.TrimSuffix(text, "\n")+outsideText(v.Outside))
	return err
}

// lockState says what was read of a lockfile, and what it can do.
func lockState(l project.Lock) string {
	switch {
	case l.SHA256 == "":
		return "it can't be read"
	case l.Trusted:
		return fmt.Sprintf("%d bytes, sha256:%s; the policy trusts it: what it lists is allowed", len(l.Data), l.SHA256)
	}
	return fmt.Sprintf("%d bytes, sha256:%s", len(l.Data), l.SHA256)
}

func newProjectAllow() *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use:   "allow [DIRECTORY|FILE]",
		Short: "Have runs use the settings, or the file, that you have read",
		Long: `Shows a cofferdam.yaml, the policy that it names, and the digests of the lockfiles that both
name, asks whether runs may use them, and notes that. Where nobody can be asked, --digest says which ones you have read: "project
show" tells it. What has been changed since then is not allowed.

With a FILE it is that one: a policy, a lockfile or another file that a flag names and that
decides what runs may do. Where an agent could write, such a file decides only as you have
seen it: as it was when it was used before an agent could write there, or as you allow it.
Its digest is its sha256.`,
		Example: "  cofferdam project allow\n  cofferdam project allow --digest sha256:4f1c...\n  cofferdam project allow policy.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFile(args) {
				return allowFile(args[0], digest)
			}
			p, err := namedProject(args)
			if err != nil {
				return err
			}
			if agreed, err := readBy(p, digest); err != nil || !agreed {
				return err
			}
			file, err := projectsFile()
			if err != nil {
				return err
			}
			return project.Allow(cmd.Context(), file, p)
		},
	}
	cmd.Flags().StringVar(&digest, "digest", "", "of the settings that you have read, as project show tells it")
	incomplete(cmd, "digest")
	return cmd
}

// readBy tells whether a person has read a project, as it was read here, and wants it used.
func readBy(p *project.Project, digest string) (bool, error) {
	switch {
	case digest == p.Digest:
		return true, nil
	case digest != "":
		return false, fault.New(fault.ErrConflict, "%s, its policy and its lockfiles are not what you have read: their digest is %s now; see cofferdam project show", p.Path(), p.Digest)
	case !ui.CanAsk():
		return false, fault.Invalid("nobody can be asked here: read what cofferdam project show shows, and say cofferdam project allow --digest with the digest that it tells")
	}
	if err := viewProject(p, false).writeView(os.Stderr, "read this"); err != nil {
		return false, err
	}
	return ui.Agrees("have runs in " + ui.Printable(p.Dir) + " use this?"), nil
}

func newProjectForbid() *cobra.Command {
	return &cobra.Command{
		Use:     "forbid [DIRECTORY|FILE]",
		Short:   "Have runs not use the settings, or the file, any more",
		Long:    "Takes back that a cofferdam.yaml, or a FILE, was allowed.",
		Example: "  cofferdam project forbid",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isFile(args) {
				return forbidFile(cmd.Context(), args[0])
			}
			file, err := projectsFile()
			if err != nil {
				return err
			}
			if len(args) > 0 { // whose settings may be gone, or a link be in its place
				dir, err := filepath.Abs(args[0])
				if err != nil {
					return err
				}
				if known, err := project.Known(file, dir); err != nil || known {
					return errors.Join(err, project.Forbid(cmd.Context(), file, dir))
				}
			}
			p, err := namedProject(args)
			if err != nil {
				return err
			}
			return project.Forbid(cmd.Context(), file, p.Dir)
		},
	}
}

// namedProject is that of a directory that is named, or of this one.
func namedProject(args []string) (*project.Project, error) {
	dir := "."
	if len(args) > 0 {
		dir = args[0]
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	kept, err := projectsFile()
	if err != nil {
		return nil, err
	}
	p, err := project.Find(resolved(dir), kept)
	if err == nil && p == nil {
		return nil, fault.New(fault.ErrNotFound, "there is no %s in %s or above it", project.File, dir)
	}
	return p, err
}

// projectsFile is where the projects are that this user has allowed.
func projectsFile() (string, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return "", err
	}
	return paths.Projects(), nil
}

func isAllowed(p *project.Project) (bool, error) {
	file, err := projectsFile()
	if err != nil {
		return false, err
	}
	return project.Allowed(file, p)
}

// checkAllowed returns an error that says what has changed if a project is not as somebody has allowed it.
func checkAllowed(kept string, p *project.Project) error {
	ok, err := project.Allowed(kept, p)
	if err != nil || ok {
		return err
	}
	parts, known, err := project.Changed(kept, p)
	if err != nil {
		return err
	}
	why := "is new here"
	switch {
	case len(parts) > 0:
		why = "was allowed, and this has changed since: " + strings.Join(parts, ", ")
	case known:
		why = "was allowed, and it, its policy, a lockfile, the ignore file or where its paths lead has changed since"
	default:
		above, err := project.Above(kept, p.Dir)
		if err != nil {
			return err
		}
		if above != "" {
			why += ", and stands before the settings of " + above + ", which you have allowed"
		}
	}
	return fault.Invalid("%s %s: read it, and then say so: cofferdam project allow; or run with --no-project", p.Path(), why)
}

// withProject adds a project's settings to what was typed, which goes before them.
func (f *runFlags) withProject(cmd *cobra.Command, cwd string, argv []string) ([]string, error) {
	if f.noProject {
		return argv, nil
	}
	kept, err := projectsFile()
	if err != nil {
		return nil, err
	}
	if err := project.CheckPlace(cwd, kept); err != nil {
		return nil, err
	}
	p, err := project.Find(resolved(cwd), kept)
	if err != nil || p == nil {
		return argv, err
	}
	if err := checkAllowed(kept, p); err != nil {
		return nil, err
	}
	if err := vouchFor(p); err != nil {
		return nil, err
	}
	f.applySettings(p, func(flag string) bool { return cmd.Flags().Changed(flag) })
	if len(argv) == 0 {
		argv = p.Settings.Command
	}
	return argv, nil
}

// applySettings takes a project's settings where nothing else was typed.
func (f *runFlags) applySettings(p *project.Project, typed func(flag string) bool) {
	s := p.Settings
	for _, of := range []struct {
		flag  string
		place *string
		value string
	}{
		{"template", &f.template, s.Template},
		{"policy", &f.policy, p.Inside(s.Policy)},
		{"isolation", &f.isolation, s.Isolation},
		{"workspace", &f.workspace, s.Workspace},
		{"agent", &f.agent, s.Agent},
		{"home", &f.home, s.Home},
		{"task", &f.task, s.Task},
	} {
		if of.value != "" && !typed(of.flag) {
			*of.place = of.value
		}
	}
	if s.Policy != "" && !typed("policy") {
		f.allowed = p.Policy // and not what stands there by now
	}
	if s.Timeout > 0 && !typed("timeout") {
		f.timeout = time.Duration(s.Timeout)
	}
	f.allowedLocks = p.LockData
	if !typed("lockfile") {
		for _, lock := range s.Lockfiles {
			f.locks = append(f.locks, p.Inside(lock))
		}
	}
	for _, m := range s.Mounts {
		f.mounts = append(f.mounts, p.Inside(m)) // what follows the first colon stays as it is
	}
	if !typed("publish") {
		f.publish = s.Ports
	}
	for name, value := range s.Environment {
		if !slices.ContainsFunc(f.env, func(given string) bool { given, _, _ = strings.Cut(given, "="); return given == name }) {
			f.env = append(f.env, name+"="+value)
		}
	}
	f.hooks = s.Hooks
}

// hooked runs the project's lines around the command.
func (r *runner) hooked(ctx context.Context, lines []string) error {
	for _, line := range lines {
		if err := r.runHook(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// runHook runs a line of a project's in the sandbox, its output on stderr.
func (r *runner) runHook(ctx context.Context, line string) error {
	r.stderr.Say("hook: %s", line)
	h := newForeground()
	h.client, h.sandbox = r.client, r.sandbox
	if err := h.startCommand(ctx, api.StartCommand{Argv: []string{"/bin/sh", "-c", line}, Dir: r.request.Workdir}); err != nil {
		return err
	}
	s := h.session
	s.out, s.err, s.say = r.stderr, r.stderr, r.stderr.Say
	s.attach = attaching(h.client, h.sandbox, h.command)
	exit, err := s.followCommand(ctx)
	if err != nil {
		return h.explainLoss(err)
	}
	if err := judgeExit(exit); err != nil || exit.Code != 0 {
		return &exitError{code: exitFailure, err: fmt.Errorf("the hook %q of %s ended with %d", line, project.File, exit.Code)}
	}
	return nil
}
