package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// workspaceInside is where a sandbox has the copy.
const workspaceInside = "/workspace"

// Of what a run has changed so many lines are shown at its end, and so many paths are in its
// JSON.
const (
	shownLines   = 200
	shownChanges = 1000
)

// workspaceCopy is the one value of --workspace.
const workspaceCopy = "copy"

// workspaces is the folder with the copies of this user's runs.
func workspaces() (string, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return "", err
	}
	return paths.Workspaces(), nil
}

// copyWorkspace has the run work in a copy of a directory, if that is wanted. The request's
// run gets its name here, by which the copy is found later.
func (r *runner) copyWorkspace(ctx context.Context, dir string) error {
	switch r.flags.workspace {
	case "":
		return nil
	case workspaceCopy:
	default:
		return fault.Invalid("--workspace %q must be copy: the run works in a copy of this directory", r.flags.workspace)
	}
	if r.request.Run == "" {
		var id [6]byte
		if _, err := rand.Read(id[:]); err != nil {
			return err
		}
		r.request.Run = "run-" + hex.EncodeToString(id[:])
	}
	if !oneName(r.request.Run) || strings.HasPrefix(r.request.Run, ".") {
		return fault.Invalid("--run-id %q can't be the name of a copy; leave it out, or take letters and digits", r.request.Run)
	}
	if slices.ContainsFunc(r.request.Mounts, func(m api.Mount) bool { return m.Destination == workspaceInside }) {
		return fault.Invalid("--workspace copy takes %s, and a --mount does too; mount that elsewhere", workspaceInside)
	}
	if err := r.makeWorkspace(ctx, dir); err != nil {
		return err
	}
	for _, name := range r.workspace.Left()[:min(len(r.workspace.Left()), 5)] {
		r.stderr.Say("note: %s is not in the copy: it is neither a file, a directory nor a link", ui.PrintableName(name))
	}
	if n := r.workspace.Hidden(); n > 0 {
		r.stderr.Say("note: %s not in the copy: %s hides them", ui.Plural(n, "path is", "paths are"), mountpolicy.IgnoreFile)
	}
	r.request.Mounts = append(r.request.Mounts, api.Mount{Source: r.workspace.Dir(), Destination: workspaceInside, ReadWrite: true})
	if r.request.Workdir == "" {
		r.request.Workdir = workspaceInside
	}
	return nil
}

// makeWorkspace copies a directory, and notes what of it the run is decided by.
func (r *runner) makeWorkspace(ctx context.Context, dir string) error {
	all, err := workspaces()
	if err != nil {
		return err
	}
	if err := config.MakeOwned(all); err != nil {
		return err
	}
	if err := mountpolicy.CheckCopied(dir); err != nil {
		return err
	}
	if err := workspace.Sweep(all); err != nil {
		r.stderr.Say("note: what is left of a copy that nobody finished can't be removed: %s", ui.Printable(err.Error()))
	}
	interrupted, stop := interruptible(ctx) // nothing is left then
	defer stop()
	err = r.fillWorkspace(interrupted, dir, filepath.Join(all, r.request.Run))
	switch {
	case interrupted.Err() != nil:
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the copy was given up, and nothing of it is left")}
	case errors.Is(err, fs.ErrExist):
		return fault.Invalid("there is a copy of the run %s already; bring it over or discard it with cofferdam apply, or take another --run-id", r.request.Run)
	}
	if err == nil {
		err = r.workspace.NoteHost(hostOf(ctx))
	}
	if err == nil {
		err = r.workspace.NoteDeciding(decidingByRequest(r.workspace.Original(), r))
	}
	if err != nil {
		return fmt.Errorf("copy the directory %s: %w", dir, err)
	}
	return nil
}

// fillWorkspace copies a directory to a folder, without what ignore files hide.
func (r *runner) fillWorkspace(ctx context.Context, dir, folder string) error {
	paths, err := config.DefaultPaths()
	if err != nil {
		return err
	}
	hidden, err := mountpolicy.OpenHidden(paths.Hidden())
	if err != nil {
		return err
	}
	return ui.ShowWaiting("copying "+dir, func() error {
		rules := mountpolicy.Rules{Hidden: hidden, Projects: func() ([]string, error) { return project.Dirs(paths.Projects()) }, Seen: checkNoted}
		ignored := func(dir *hostpath.Path) (func(string, fs.DirEntry) bool, error) { return rules.Ignored(ctx, dir) }
		r.workspace, err = workspace.Make(ctx, dir, folder, ignored)
		return err
	})
}

// dropWorkspace takes the copy of a run away that did not come about.
func (r *runner) dropWorkspace() {
	if r.workspace != nil && r.box.ID == "" {
		_ = r.workspace.Remove() // it would be in nobody's way but the disk's
	}
}

// tellChanges says what the run has changed in its copy, once its sandbox is gone. A copy in
// which nothing has changed is removed.
func (r *runner) tellChanges(ctx context.Context) {
	if r.workspace == nil || r.box.Linger {
		return
	}
	changes, err := r.workspace.Changes(ctx)
	if err != nil {
		r.stderr.Say("what the run has changed in its copy is not known: %s; the copy is %s", err, r.workspace.Dir())
		return
	}
	r.changes = changesOf(changes)
	if len(changes) == 0 {
		r.stderr.Say("the run has changed nothing in its copy of %s", r.workspace.Original())
		if err := r.workspace.Remove(); err != nil {
			r.stderr.Say("the copy could not be removed: %s", err)
		}
		return
	}
	if !r.flags.json {
		files, err := autorunOf(ctx, r.workspace, changes)
		if err != nil {
			r.stderr.Say("which of the changes programs of this host would run is not known: %s; see cofferdam apply %s", err, r.box.Run)
			return
		}
		lines, more := changeLines(r.workspace, leaveUnnamed(r.workspace, files, changes, nil), shownLines)
		for _, line := range lines {
			r.stderr.Line(line)
		}
		if more {
			r.stderr.Say("there is more: cofferdam apply --diff %s", r.box.Run)
		}
	}
	r.stderr.Say("%s in the copy of %s; bring over what you want: cofferdam apply %s", changed(len(changes)), r.workspace.Original(), r.box.Run)
}

func changed(n int) string {
	if n == 1 {
		return "1 path has changed"
	}
	return pathsText(n) + " have changed"
}

func pathsText(n int) string {
	if n == 1 {
		return "1 path"
	}
	return fmt.Sprintf("%d paths", n)
}

// changeLines returns what has changed, in printable lines, up to so many.
func changeLines(w *workspace.Workspace, changes []workspace.Change, most int) (lines []string, more bool) {
	colours := ui.Coloured(os.Stderr)
	for _, c := range changes {
		text, err := w.Diff(c)
		if err != nil {
			text = fmt.Sprintf("%s %s, which can't be read: %s\n", c.How, ui.PrintableName(c.Path), ui.Printable(err.Error()))
		}
		for line := range strings.Lines(text) {
			if len(lines) == most {
				return lines, true
			}
			lines = append(lines, changeLine(strings.TrimSuffix(line, "\n"), colours))
		}
	}
	return lines, false
}

// changeLine returns a line as a terminal may have it.
func changeLine(line string, colours bool) string {
	text := ui.Printable(strings.ReplaceAll(line, "\t", "    "))
	if !colours {
		return text
	}
	for _, of := range []struct{ prefix, colour string }{{"+++", "\x1b[1m"}, {"---", "\x1b[1m"}, {"@@", "\x1b[36m"}, {"+", "\x1b[32m"}, {"-", "\x1b[31m"}} {
		if strings.HasPrefix(line, of.prefix) {
			return of.colour + text + "\x1b[0m"
		}
	}
	return text
}

// pathChange is one, as JSON tells it.
type pathChange struct {
	Path     string `json:"path"`
	Escaped  bool   `json:"escaped,omitempty"` // the path is no UTF-8, and is written as people are shown it
	How      string `json:"how"`               // added, modified, removed
	Kind     string `json:"kind"`              // file, dir, link; "": neither
	Conflict string `json:"conflict,omitempty"`
	Refused  string `json:"refused,omitempty"`
}

// changeList is what a copy's changes are in JSON.
type changeList struct {
	Total     int          `json:"total"`
	Truncated bool         `json:"truncated"`
	Changes   []pathChange `json:"changes"`
}

func changesOf(changes []workspace.Change) *changeList {
	list := &changeList{Total: len(changes), Truncated: len(changes) > shownChanges, Changes: []pathChange{}}
	for _, c := range changes[:min(len(changes), shownChanges)] {
		change := pathChange{Path: c.Path, How: string(c.How), Kind: string(c.Kind), Conflict: c.Conflict, Refused: c.Refused}
		if !utf8.ValidString(c.Path) {
			change.Path, change.Escaped = ui.PrintableName(c.Path), true
		}
		list.Changes = append(list.Changes, change)
	}
	return list
}
