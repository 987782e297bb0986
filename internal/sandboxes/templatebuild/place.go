package templatebuild

import (
	"context"
	_ "embed" // the script of a copy
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
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

// copyUpload brings an upload, unpacks it and removes it again: what is left would be in the
// template, for everyone who may read it.
func (j *job) copyUpload(ctx context.Context, t task) error {
	if err := j.bringUpload(ctx, t.hash); err != nil {
		return err
	}
	if err := j.placeFiles(ctx, t); err != nil {
		return err // the sandbox goes with the build
	}
	err := j.writeFile(ctx, channel.File{Op: channel.FileRemove, Path: uploadPlace, User: "root"})
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	return err
}

// placeFiles unpacks what was brought, as the user whose files these are to be. Where only
// root may write they are root's, unless somebody was named.
func (j *job) placeFiles(ctx context.Context, t task) error {
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
	switch {
	case err != nil || exit.Code != notHis:
	case c.user == "": // its directory is root's
		exit, p, err = j.unpack(ctx, t, "root")
	case c.user == "root": // its directory is the user's
		exit, p, err = j.unpackAmong(ctx, t)
	}
	switch {
	case err != nil:
		return err
	case exit.Code == notHis:
		return fault.New(fault.ErrForbidden, "%s can't be written to", text.Shorten(c.dest, 200))
	}
	return p.failure(exit)
}

// unpackAmong unpacks root's files in a directory of the user's, where root of a sandbox, who has no capabilities, may not write: the
// user opens it to others for as long. A build whose directory stays open fails, and goes with its sandbox.
func (j *job) unpackAmong(ctx context.Context, t task) (exit channel.Exit, p *process, err error) {
	into := path.Clean(t.copy.dest)
	info, err := j.b.cfg.Sandboxes.File(ctx, j.box, channel.File{Op: channel.FileStat, Path: into, User: j.asUser("")})
	if err != nil || info.Kind != channel.KindDir && info.Leads != channel.KindDir {
		into = path.Dir(into)
	}
	if exit, p, err = j.start(ctx, t, "", "chmod", "o+w", "--", into); err != nil || exit.Code != 0 {
		return exit, p, err
	}
	exit, p, err = j.unpack(ctx, t, "root")
	if err != nil || exit.Code != 0 {
		return exit, p, err
	}
	return j.start(ctx, t, "", "chmod", "o-w", "--", into)
}

func (j *job) unpack(ctx context.Context, t task, user string) (channel.Exit, *process, error) {
	c := t.copy
	return j.start(ctx, t, user, "/bin/bash", "-c", copyScript, "copy", uploadPlace, c.source, fmt.Sprint(c.pattern), c.dest, c.mode)
}

// start runs a command of a copy to its end.
func (j *job) start(ctx context.Context, t task, user string, argv ...string) (channel.Exit, *process, error) {
	p, err := j.startCommand(ctx, t.number, sandbox.Command{Argv: argv, Judged: t.title, Dir: "/", User: j.asUser(user), Timeout: longestStep})
	if err != nil {
		return channel.Exit{}, nil, err
	}
	exit, err := p.waitExit(ctx)
	return exit, p, err
}

// makeDir makes a directory, and those above it, for a user. Where only root may write
// root makes it, and gives it away; where only the user may write, it is the user's.
func (j *job) makeDir(ctx context.Context, dir, user string) error {
	err := j.writeFile(ctx, channel.File{Op: channel.FileMkdir, Path: dir, User: j.asUser(user)})
	if errors.Is(err, fault.ErrForbidden) && user == "root" {
		err = j.writeFile(ctx, channel.File{Op: channel.FileMkdir, Path: dir, User: j.asUser("")})
	}
	if errors.Is(err, fault.ErrForbidden) && user == "" {
		err = j.writeFile(ctx, channel.File{Op: channel.FileMkdir, Path: dir, User: "root", Give: true})
	}
	if !errors.Is(err, fault.ErrConflict) {
		return err
	}
	info, err := j.b.cfg.Sandboxes.File(ctx, j.box, channel.File{Op: channel.FileStat, Path: dir, User: "root"})
	if err == nil && info.Kind != channel.KindDir && info.Leads != channel.KindDir {
		return fault.New(fault.ErrConflict, "%s is there, and is no directory", text.Shorten(dir, 200))
	}
	return err
}

func (j *job) writeFile(ctx context.Context, f channel.File) error {
	_, err := j.b.cfg.Sandboxes.File(ctx, j.box, f)
	return err
}

// bringUpload writes an upload into the sandbox.
func (j *job) bringUpload(ctx context.Context, hash string) error {
	archive, err := j.b.uploads.openUpload(j.g.Owner, hash)
	if err != nil {
		return err
	}
	defer archive.Close()
	return j.writeRootFile(ctx, uploadPlace, archive)
}
