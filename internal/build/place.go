package build

import (
	"context"
	_ "embed" // the script of a copy
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

//go:embed copy.sh
var copyScript string

// uploadPlace is where an upload lies inside while it is unpacked.
const uploadPlace = "/var/tmp/.upload"

// How the script says that its user may not write there, and that there is no directory.
const (
	notHis   = 77
	notThere = 78
)

// copy brings an upload, unpacks it and removes it again: what is left would be in the
// template, for everyone who may read it.
func (j *job) copy(ctx context.Context, t task) error {
	if err := j.bring(ctx, t.hash); err != nil {
		return err
	}
	if err := j.place(ctx, t); err != nil {
		return err // the sandbox goes with the build
	}
	err := j.file(ctx, channel.File{Op: channel.FileRemove, Path: uploadPlace, User: "root"})
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	return err
}

// place unpacks what was brought, as the user whose files these are to be. Where only
// root may write they are root's.
func (j *job) place(ctx context.Context, t task) error {
	c := t.copy
	dir := c.dest
	if !c.pattern && !strings.HasSuffix(dir, "/") { // a file's place, or a directory's: the upload tells
		dir = path.Dir(dir)
	}
	if err := j.makeDir(ctx, path.Clean(dir), c.user); err != nil {
		return err
	}
	exit, p, err := j.unpack(ctx, t, c.user)
	if err == nil && exit.Code == notThere {
		if err := j.makeDir(ctx, path.Clean(c.dest), c.user); err != nil {
			return err
		}
		exit, p, err = j.unpack(ctx, t, c.user)
	}
	if err == nil && exit.Code == notHis && c.user == "" { // its directory is root's
		exit, p, err = j.unpack(ctx, t, "root")
	}
	switch {
	case err != nil:
		return err
	case exit.Code == notHis:
		return fault.New(fault.ErrForbidden, "%s can't be written to", excerpt.Of(c.dest, 200))
	}
	return p.failure(exit)
}

func (j *job) unpack(ctx context.Context, t task, user string) (channel.Exit, *process, error) {
	c := t.copy
	p, err := j.begin(ctx, t.number, sandbox.Command{
		Argv:   []string{"/bin/bash", "-c", copyScript, "copy", uploadPlace, c.source, fmt.Sprint(c.pattern), c.dest, c.mode},
		Judged: t.title, Dir: "/", User: j.as(user), Timeout: longestStep,
	})
	if err != nil {
		return channel.Exit{}, nil, err
	}
	exit, err := p.wait(ctx)
	return exit, p, err
}

// makeDir makes a directory, and those above it, for a user. Where only root may write
// root makes it, and gives it away.
func (j *job) makeDir(ctx context.Context, dir, user string) error {
	err := j.file(ctx, channel.File{Op: channel.FileMkdir, Path: dir, User: j.as(user)})
	if errors.Is(err, fault.ErrForbidden) && user == "" {
		err = j.file(ctx, channel.File{Op: channel.FileMkdir, Path: dir, User: "root", Give: true})
	}
	if !errors.Is(err, fault.ErrConflict) {
		return err
	}
	info, err := j.b.cfg.Sandboxes.File(ctx, j.box, channel.File{Op: channel.FileStat, Path: dir, User: "root"})
	if err == nil && info.Kind != channel.KindDir && info.Leads != channel.KindDir {
		return fault.New(fault.ErrConflict, "%s is there, and is no directory", excerpt.Of(dir, 200))
	}
	return err
}

func (j *job) file(ctx context.Context, f channel.File) error {
	_, err := j.b.cfg.Sandboxes.File(ctx, j.box, f)
	return err
}

// bring writes an upload into the sandbox.
func (j *job) bring(ctx context.Context, hash string) error {
	archive, err := j.b.uploads.open(j.g.Owner, hash)
	if err != nil {
		return err
	}
	defer archive.Close()
	return j.write(ctx, uploadPlace, archive)
}
