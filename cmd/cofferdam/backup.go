package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/backup"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// backupMade is what `backup --json` writes.
type backupMade struct {
	File      string   `json:"file"` // "-": the standard output
	Bytes     int64    `json:"bytes"`
	Files     int      `json:"files"`
	Templates []string `json:"templates"`
	Snapshots []string `json:"snapshots"`
	LeftOut   []string `json:"left_out"`  // directories in the state directory, and links out of it
	NotWhole  []string `json:"not_whole"` // homes, each with why
}

// backupFlags are those of `backup`.
type backupFlags struct {
	without []string
	json    bool
}

func newBackup() *cobra.Command {
	var flags backupFlags
	cmd := &cobra.Command{
		Use:     "backup FILE|DIRECTORY|-",
		Short:   "Write a copy of this installation's state, while it works",
		GroupID: groupHost,
		Long: `Writes a tar archive of the state directory: the audit log, keys, tokens, policies,
approvals, templates, snapshots and homes. The daemon goes on meanwhile, and sandboxes
too; it is just as right while no daemon runs. The log in the archive has every record
that the rest knows of. In a directory the archive gets a name with the time; "-" is the
standard output.

It leaves out what can be fetched or made again (the files of packages, the index of the
log, engines' programs), and what runs: sandboxes, and the images of paused ones. With
--without it leaves out more. It says what it left out (with "-", on the standard error),
and of which home it could not copy all.

The archive has private keys and, with the homes, logins: it is for its owner alone (mode
0600), and no file is replaced. It is refused in the state directory, and in a directory
that a sandbox could ever write to. Nothing is left of an archive that fails.

docs/operations.md says how to restore it, on another path or machine.`,
		Example: `  cofferdam backup /root/cofferdam.tar
  cofferdam backup --without templates,homes /var/backups
  (umask 077; cofferdam backup - | zstd > /var/backups/cofferdam.tar.zst)`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onThisHost(cmd.Context(), "backup"); err != nil {
				return err
			}
			ctx, stop := interrupted(cmd.Context()) // nothing must be left of what it began
			defer stop()
			err := flags.runBackup(ctx, cmd, args[0])
			if err != nil && ctx.Err() != nil {
				return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the backup was given up, and no archive is there")}
			}
			return err
		},
	}
	set := cmd.Flags()
	set.StringSliceVar(&flags.without, "without", nil, "leave this out, too: "+strings.Join(backup.Parts(), ", "))
	set.BoolVar(&flags.json, "json", false, "write JSON about the archive")
	registerCompletion(cmd, "without", completeWords(backup.Parts()...))
	return cmd
}

func (f backupFlags) runBackup(ctx context.Context, cmd *cobra.Command, to string) error {
	paths, err := config.DefaultPaths()
	if err != nil {
		return err
	}
	line := ui.NewLine(os.Stderr)
	defer line.Clear()
	options := backup.Options{Paths: paths, Without: f.without}
	show := ui.Often(func(done, _ int64) { line.Show(ui.Size(done) + " copied") })
	options.Progress = func(bytes int64) { show(bytes, bytes) }
	var report backup.Report
	write := func(w io.Writer) (err error) {
		report, err = backup.Write(ctx, w, options)
		return err
	}
	if to == "-" {
		if err := f.stream(cmd, write); err != nil {
			return err
		}
		line.Clear()
		return madeOf("-", report).printLeftOut(os.Stderr)
	}
	at, err := backupPlace(to, paths, time.Now())
	if err != nil {
		return err
	}
	if err := at.CreateFrom(0o600, write); err != nil {
		return unwrittenBackup(err, at.Name)
	}
	line.Clear()
	return madeOf(at.Name, report).printBackup(f.json)
}

func madeOf(name string, r backup.Report) backupMade {
	return backupMade{name, r.Bytes, r.Files, orNone(r.Templates), orNone(r.Snapshots), r.LeftOut, orNone(r.NotWhole)}
}

// stream writes an archive to the standard output, and nothing else.
func (f backupFlags) stream(cmd *cobra.Command, write func(io.Writer) error) error {
	switch {
	case f.json:
		return usageError(cmd, "--json says what is in a file, and the archive is the output here")
	case ui.Width(os.Stdout) > 0:
		return usageError(cmd, "an archive is not for a terminal; name a file, or pass it on with |")
	}
	return unwrittenBackup(write(os.Stdout), "the standard output")
}

// backupPlace finds where an archive is to be made, of which others must not read or write anything.
func backupPlace(to string, paths config.Paths, now time.Time) (hostpath.Entry, error) {
	if kind, err := kindNamed(to); err == nil && kind == hostpath.Dir {
		to = filepath.Join(to, "cofferdam-"+now.Format("20060102-150405")+".tar")
	}
	at, err := findNamed(to)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, hostpath.ErrDangling):
		return at, fault.Invalid("the directory of %s does not exist; make it first", to)
	case err != nil:
		return at, fault.Invalid("the archive %s %s", to, because(err))
	case !at.File.IsZero():
		return at, fault.New(fault.ErrConflict, "there is a file %s already, and a backup replaces none; name another, or remove it", at.Name)
	}
	for _, own := range []string{paths.State, paths.Runtime, paths.Workspaces()} {
		if within, err := isWithin(at.Name, own); err != nil || within {
			return at, errors.Join(err, fault.Invalid("%s is in %s, which is this installation's own; put the archive elsewhere", at.Name, own))
		}
	}
	trees, err := recordedTrees()
	if err != nil {
		return at, fault.Wrap(fault.ErrForbidden, err, "where sandboxes could write is not known, so that an archive with keys may be put nowhere")
	}
	tree, is, err := hostpath.Within(at.Name, trees)
	if err != nil || is {
		return at, errors.Join(err, fault.New(fault.ErrForbidden, "sandboxes could write in %s, and the archive has keys; put it elsewhere", tree.Path))
	}
	return at, nil
}

// isWithin tells whether a path leads into a directory, under whatever name; of one that is not there, nothing does.
func isWithin(path, dir string) (bool, error) {
	p, err := openNamed(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer p.Close()
	_, is, err := hostpath.Within(path, []hostpath.Tree{{Path: p.Name, ID: p.ID}})
	return is, err
}

// unwrittenBackup says why there is no archive.
func unwrittenBackup(err error, to string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.Wrap(fault.ErrUnavailable, err, "the disk is full, and nothing is left of %s", to)
	case errors.Is(err, fs.ErrExist):
		return fault.Wrap(fault.ErrConflict, err, "there is a file %s already, and a backup replaces none", to)
	}
	return fmt.Errorf("back up to %s: %w", to, err)
}

func orNone(names []string) []string {
	if names == nil {
		return []string{}
	}
	slices.Sort(names)
	return names
}

// printBackup says what was made.
func (b backupMade) printBackup(asJSON bool) error {
	return writeAnswer(b, asJSON, func(w io.Writer, m backupMade) error {
		_, err := fmt.Fprintf(w, "%s: %s, %s; with %s and %s.\nIt has private keys: keep it where only you can read it.\n",
			ui.PrintableName(m.File), ui.Size(m.Bytes), ui.Plural(m.Files, "file", "files"),
			ui.Plural(len(m.Templates), "template", "templates"), ui.Plural(len(m.Snapshots), "snapshot", "snapshots"))
		return errors.Join(err, m.printLeftOut(w))
	})
}

// printLeftOut says what is not in the archive.
func (b backupMade) printLeftOut(w io.Writer) error {
	_, err := fmt.Fprintf(w, "Left out: %s\n", strings.Join(b.LeftOut, ", "))
	for _, home := range b.NotWhole {
		_, more := fmt.Fprintf(w, "Not whole: %s\n", ui.PrintableName(home))
		err = errors.Join(err, more)
	}
	return err
}
