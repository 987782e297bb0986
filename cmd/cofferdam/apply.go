package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// applyFlags are those of `apply`.
type applyFlags struct {
	all, diff, force, discard, json bool
}

func newApply() *cobra.Command {
	var flags applyFlags
	cmd := &cobra.Command{
		Use:     "apply [flags] [RUN [PATH...]]",
		Short:   "Bring over what a run has changed in its copy of a directory",
		GroupID: groupWork,
		Long: `A run with --workspace copy works in a copy of the directory that it was started in. This
brings over what it changed there: the paths that you name, with all that is below them,
or all with --all. Without either it lists what has changed, and at a terminal it shows
it and asks.

Your own changes in the directory meanwhile are left alone, unless you say --force. Links
that lead out of the directory are never brought over, nor any right but the right to be
executed. Some files are brought over only if you name them, and not the directory that they
are in: those that programs of this host run by themselves, such as .git, .vscode, .npmrc, a
folder that git takes for a repository, or what such a file or a link of yours leads to;
hidden files of which nothing is known; those from which agents take instructions, such as
AGENTS.md; and those that decide what later runs may do, such as cofferdam.yaml, a policy, and
the lockfiles that runs are held to.

The copy stays until all of it is brought over, or until you --discard it. Without a RUN,
this lists the copies that there are.`,
		Example: `  cofferdam apply
  cofferdam apply run-4f1c07
  cofferdam apply run-4f1c07 src README.md
  cofferdam apply --diff run-4f1c07 | less
  cofferdam apply --discard run-4f1c07`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listWorkspaces(cmd.Context(), flags)
			}
			return flags.applyRun(cmd.Context(), args[0], args[1:])
		},
		ValidArgsFunction: completeWorkspaces,
	}
	set := cmd.Flags()
	set.BoolVarP(&flags.all, "all", "a", false, "bring over all that can be")
	set.BoolVar(&flags.diff, "diff", false, "show what has changed, and bring nothing over")
	set.BoolVar(&flags.force, "force", false, "also bring over what has changed in your directory meanwhile")
	set.BoolVar(&flags.discard, "discard", false, "remove the copy, with all that was not brought over")
	set.BoolVar(&flags.json, "json", false, "list as JSON")
	cmd.MarkFlagsMutuallyExclusive("diff", "all", "discard")
	return cmd
}

// applyRun runs `cofferdam apply RUN`.
func (f applyFlags) applyRun(ctx context.Context, run string, wanted []string) error {
	w, err := f.openRunCopy(ctx, run)
	if err != nil {
		return err
	}
	if f.discard {
		if len(wanted) > 0 {
			return fault.Invalid("--discard removes the whole copy; leave the paths out")
		}
		return w.Remove()
	}
	changes, err := w.Changes(ctx)
	if err != nil {
		return err
	}
	files, err := autorunOf(ctx, w, changes)
	if err != nil {
		return err
	}
	named := len(wanted) > 0
	if named {
		wanted = f.relative(w, wanted)
		if changes, err = workspace.Pick(changes, wanted); err != nil {
			return err
		}
	}
	changes = leaveUnnamed(w, files, changes, wanted)
	switch {
	case f.diff:
		lines, _ := changeLines(w, changes, -1)
		for _, line := range lines {
			if _, err := fmt.Println(line); err != nil {
				return err
			}
		}
		return nil
	case f.json && !named && !f.all:
		return writeAnswer(changesOf(changes), true, func(io.Writer, *changeList) error { return nil })
	case !named && !f.all:
		if changes, err = f.decide(w, changes); err != nil || changes == nil {
			return err
		}
	}
	return f.applyChanges(ctx, w, run, files, changes)
}

// openRunCopy opens a run's copy, in which nobody may work any more.
func (applyFlags) openRunCopy(ctx context.Context, run string) (*workspace.Workspace, error) {
	all, err := workspaces()
	if err != nil {
		return nil, err
	}
	if !oneName(run) {
		return nil, fault.Invalid("%q is no run", run)
	}
	w, err := workspace.Open(filepath.Join(all, run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.ErrNotFound, "there is no copy of a run %s; cofferdam apply lists those that there are", run)
	}
	if err != nil {
		return nil, err
	}
	c, err := connectFor(ctx, w, all, run)
	if err != nil {
		return nil, err
	}
	boxes, err := c.FindSandboxes(ctx, client.SandboxFilter{Runs: []string{run}})
	if err != nil {
		return nil, err
	}
	if len(boxes) > 0 {
		return nil, fault.New(fault.ErrConflict, "the run %s still has the sandbox %s, in which its copy can change; end it first: cofferdam kill %s", run, boxes[0].ID, boxes[0].ID)
	}
	return w, nil
}

// connectFor connects to the daemon whose sandbox works in a copy. Another daemon of this host may have it, and no other
// knows whether the sandbox is gone.
func connectFor(ctx context.Context, w *workspace.Workspace, all, run string) (*client.Client, error) {
	address := w.Host()
	if address == "" {
		return connectHere(ctx)
	}
	c, err := remote{host: address}.client()
	if err == nil {
		_, err = c.Version(ctx)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the sandbox of the run %s is the daemon's at %s, which can't be asked whether it is gone, and as long as it lives its copy can change; start that daemon, or remove %s if there is none any more", run, ui.Printable(address), filepath.Join(all, run))
	}
	return c, nil
}

// relative are paths as the copy knows them: those of a person are from the directory that
// they are in, if that is in the original, or from the original's top.
func (applyFlags) relative(w *workspace.Workspace, paths []string) []string {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = ""
	}
	var all []string
	for _, p := range paths {
		if cwd != "" && !filepath.IsAbs(p) {
			if rel, err := filepath.Rel(w.Original(), filepath.Join(resolved(cwd), p)); err == nil && filepath.IsLocal(rel) {
				all = append(all, filepath.ToSlash(rel))
				continue
			}
		}
		if rel, err := filepath.Rel(w.Original(), p); err == nil && filepath.IsAbs(p) {
			p = rel
		}
		all = append(all, path.Clean(filepath.ToSlash(p)))
	}
	return all
}

// applyChanges brings changes over, says what was left, and removes a copy of which nothing is.
func (f applyFlags) applyChanges(ctx context.Context, w *workspace.Workspace, run string, files autorun.Files, changes []workspace.Change) error {
	applied, errs := w.Apply(ctx, changes, f.force)
	stderr := ui.NewStderr(os.Stderr)
	for _, c := range applied {
		if _, err := fmt.Println(appliedLine(c)); err != nil {
			return err
		}
		if level := files.Level(c.Path); level == autorun.Deciding || level != autorun.Plain && c.How != workspace.Removed {
			stderr.Say("note: look at %s %s", ui.PrintableName(c.Path), level.Caution())
		}
	}
	for _, err := range errs {
		stderr.Say("%s", ui.Printable(err.Error()))
	}
	rest, err := w.Changes(context.Background())
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return w.Remove()
	}
	stderr.Say("left in the copy: %s; see cofferdam apply %s, or cofferdam apply --discard %s", pathsText(len(rest)), run, run)
	if len(errs) > 0 {
		return &exitError{code: exitFailure}
	}
	return nil
}

// appliedLine says of a change that it was brought over.
func appliedLine(c workspace.Change) string {
	return fmt.Sprintf("%-8s  %s", c.How, ui.PrintableName(c.Path))
}

// decide shows what has changed, and has a person decide, if there is one. nil: nothing is
// to be brought over.
func (applyFlags) decide(w *workspace.Workspace, changes []workspace.Change) ([]workspace.Change, error) {
	if len(changes) == 0 {
		fmt.Println("nothing has changed")
		return nil, nil
	}
	if !ui.CanAsk() {
		return nil, writeChanges(os.Stdout, changes)
	}
	lines, more := changeLines(w, changes, shownLines)
	for _, line := range lines {
		fmt.Println(line)
	}
	if more {
		fmt.Println("... and more, which cofferdam apply --diff shows")
	}
	if !ui.Agrees(changed(len(changes)) + "; bring all of it over?") {
		return nil, nil
	}
	return changes, nil
}

// writeChanges lists them.
func writeChanges(w io.Writer, changes []workspace.Change) error {
	rows := [][]string{}
	for _, c := range changes {
		why := c.Refused
		if why == "" {
			why = c.Conflict
		}
		rows = append(rows, []string{string(c.How), ui.PrintableName(c.Path), ui.Printable(why)})
	}
	for _, line := range ui.Columns(rows, ui.Width(w)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// workspaceRow is a copy in the list of them.
type workspaceRow struct {
	Run      string `json:"run"`
	Original string `json:"original"`
	Copy     string `json:"copy"`
	Changed  int    `json:"changed"` // -1: not known
}

func listWorkspaces(ctx context.Context, flags applyFlags) error {
	if flags.all || flags.diff || flags.discard {
		return fault.Invalid("name a run, as in: cofferdam apply run-4f1c07")
	}
	all, err := workspaces()
	if err != nil {
		return err
	}
	if err := workspace.Sweep(all); err != nil {
		return err
	}
	folders, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rows := []workspaceRow{}
	for _, f := range folders {
		w, err := workspace.Open(filepath.Join(all, f.Name()))
		if err != nil {
			continue // one that is being made, or removed
		}
		row := workspaceRow{Run: f.Name(), Original: w.Original(), Copy: w.Dir(), Changed: -1}
		if changes, err := w.Changes(ctx); err == nil {
			row.Changed = len(changes)
		}
		rows = append(rows, row)
	}
	return writeAnswer(rows, flags.json, tableOf([]string{"RUN", "CHANGED", "COPY OF"}, workspaceColumns))
}

func workspaceColumns(r workspaceRow) []string {
	n := strconv.Itoa(r.Changed)
	if r.Changed < 0 {
		n = ui.Unknown
	}
	return []string{ui.Printable(r.Run), n, ui.Printable(r.Original)}
}

func completeWorkspaces(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	all, err := workspaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	if len(args) == 0 {
		folders, _ := os.ReadDir(all) // none, if there is none
		var runs []string
		for _, f := range folders {
			runs = append(runs, f.Name())
		}
		return runs, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
