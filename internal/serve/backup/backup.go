// Package backup writes an archive of an installation's state while its daemon runs, and
// while none does. It is tar, so that restoring it needs nothing of ours.
//
// Templates, snapshots and homes can be left out.
//
// Nobody waits for a backup and no lock is taken. It is consistent by the order in which
// things are read, in which each thing knows at most what is read after it:
//
//  1. the databases, each as of one moment;
//  2. policies, which tokens and snapshots name;
//  3. templates, then snapshots, and templates that came meanwhile, each a set: one that is removed
//     meanwhile is left out;
//  4. all else, file by file, with the policies that came meanwhile; the daemon replaces each of
//     these whole; and homes, each as far as it can be read;
//  5. the audit log, a set, up to its last whole record.
//
// So the log in an archive has every record that the rest knows of, and a daemon that is started
// on it finds neither a log that was rolled back nor a token or a snapshot without its policy.
//
// Not guaranteed: that a home which a sandbox writes to meanwhile is of one moment, or that all of it can be
// copied; the report says of which home something lacks. The holes of files are written as zeros.
package backup

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// The parts.
const (
	Templates = "templates"
	Snapshots = "snapshots"
	Homes     = "homes"
)

// Parts are all of them.
func Parts() []string { return []string{Templates, Snapshots, Homes} }

// Options say of what a backup is made.
type Options struct {
	Paths config.Paths
	// Without are parts that are left out.
	Without []string
	// Progress (may be nil) is told again and again how many bytes of files were read.
	Progress func(bytes int64)
}

// Report says what an archive has.
type Report struct {
	Bytes     int64 // of the archive
	Files     int
	Templates []string // generations, as NAME/GENERATION
	Snapshots []string // ids
	// LeftOut are the directories in the state directory of which it has nothing, and the links that lead
	// out of that, sorted.
	LeftOut []string
	// NotWhole are the homes of which something is left out, each with why.
	NotWhole []string
}

// Write writes an archive of the state directory. Its entries are relative to that. The error
// is a fault with a sentence; what was written until then is of no use.
func Write(ctx context.Context, to io.Writer, o Options) (Report, error) {
	if err := o.checkKeys(); err != nil {
		return Report{}, err
	}
	state, err := hostpath.Resolve(o.Paths.State, nil)
	if err != nil {
		return Report{}, fault.Wrap(fault.ErrNotFound, err, "the state directory %s can't be opened, so there is nothing to back up", o.Paths.State)
	}
	defer state.Close()
	counted := &counter{to: to}
	b := &writer{state: state, tar: tar.NewWriter(counted), options: o, out: leftOut(o), seen: map[string]bool{}}
	if err := b.writeAll(ctx); err != nil {
		return Report{}, err
	}
	b.report.Bytes = counted.bytes
	b.report.LeftOut = slices.Sorted(slices.Values(b.out))
	return b.report, nil
}

// checkKeys refuses an installation whose keys are not kept as its daemon demands.
func (o Options) checkKeys() error {
	for _, part := range o.Without {
		if !slices.Contains(Parts(), part) {
			return fault.Invalid("there is no part %q of a backup; the parts are %s", part, strings.Join(Parts(), ", "))
		}
	}
	return o.Paths.CheckKept()
}

// leftOut are the directories in the state directory of which no archive has what is in them: it
// can be had again, or is of what runs on this machine.
func leftOut(o Options) []string {
	p := o.Paths
	var out []string
	for _, dir := range []string{
		p.Engines(), p.Stages(), p.Agent(), p.Frozen(), p.Builds(), p.Debian(), p.Compiled(),
		filepath.Join(p.State, "index"), filepath.Join(p.State, "blanks"), filepath.Join(p.State, "sandboxes"),
	} {
		out = append(out, filepath.Base(dir))
	}
	for _, dir := range []string{"blobs", "pages", "tmp"} {
		out = append(out, path.Join(filepath.Base(p.Cache()), "artifacts", dir))
	}
	return append(out, o.Without...)
}

// writer writes one archive.
type writer struct {
	state   *hostpath.Path
	tar     *tar.Writer
	options Options
	out     []string        // directories of which the content is left out
	seen    map[string]bool // paths that the archive has
	home    *home           // the one that is being copied; nil: none is
	read    int64           // bytes of files
	report  Report
}

// counter counts what is written.
type counter struct {
	to    io.Writer
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes += int64(n)
	return n, err
}

func (b *writer) writeAll(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		b.databases,
		func(ctx context.Context) error { return b.copyFiles(ctx, "policies") },
		func(ctx context.Context) error { return b.copySets(ctx, Templates, 2, &b.report.Templates) },
		func(ctx context.Context) error { return b.copySets(ctx, Snapshots, 1, &b.report.Snapshots) },
		func(ctx context.Context) error { return b.copySets(ctx, Templates, 2, &b.report.Templates) }, // those that came meanwhile, which a snapshot may need
		func(ctx context.Context) error { return b.copyFiles(ctx, ".") },
		b.copyHomes,
		b.copyLog,
		func(context.Context) error { return b.tar.Close() },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// databases copies each database as it is at one moment.
func (b *writer) databases(ctx context.Context) error {
	copies, err := b.copies(ctx)
	defer set{copies}.closeFiles()
	if err != nil {
		return err
	}
	for _, c := range copies {
		if err := b.copyParents(c.name); err != nil {
			return err
		}
		if err := b.copyFile(ctx, c.name, c.file, -1); err != nil {
			return err
		}
	}
	return nil
}

// copies makes copies of the databases, which have no names any more: a pipe that breaks ends this program
// while it writes. The caller closes the result, also with an error.
func (b *writer) copies(ctx context.Context) (all []member, err error) {
	beside, err := os.MkdirTemp("", "cofferdam-backup-")
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "there is no place for the copies of the databases")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	p := b.options.Paths
	for _, db := range []string{p.Tokens(), p.Sandboxes(), p.Approvals()} {
		name, err := filepath.Rel(p.State, db)
		if err != nil {
			return all, err
		}
		if _, err := os.Lstat(db); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		at := filepath.Join(beside, filepath.Base(db))
		if err := store.Copy(ctx, db, at); err != nil {
			return all, err
		}
		file, err := os.Open(filepath.Clean(at))
		if err != nil {
			return all, err
		}
		all = append(all, member{name: name, file: file})
	}
	return all, nil
}

// isPassed tells whether something is not to be copied as it lies there: a database and what SQLite has
// beside it, and what is being written.
func (b *writer) isPassed(name string) bool {
	if b.home != nil {
		return false // names in it mean nothing here
	}
	base := path.Base(name)
	if strings.HasPrefix(base, ".") && strings.Contains(base, ".new-") {
		return true
	}
	for _, db := range []string{b.options.Paths.Tokens(), b.options.Paths.Sandboxes(), b.options.Paths.Approvals()} {
		if strings.HasPrefix(filepath.Join(b.options.Paths.State, name), db) {
			return true
		}
	}
	if name == Homes {
		return !slices.Contains(b.out, Homes)
	}
	return slices.Contains([]string{Templates, Snapshots, filepath.Base(b.options.Paths.Audit())}, name)
}
