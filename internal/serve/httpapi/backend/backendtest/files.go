package backendtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Files are the files of one pretended sandbox: real ones below a directory.
type Files struct {
	Root string // of the machine that the test runs on
	Home string // inside
	// Full, above 0, is how many bytes a file may have before the disk is full.
	Full int64
	// Closed, if not "", is a directory inside in which only root may write.
	Closed string
	// Given are the paths of what root wrote for the user.
	Given []string
}

// mayWrite refuses the user what only root may, and notes what root gives.
func (f *Files) mayWrite(op channel.File) error {
	if f.Closed == "" || !strings.HasPrefix(f.absolute(op.Path), f.Closed+"/") {
		return nil
	}
	if op.User != "root" {
		return fault.New(fault.ErrForbidden, "%s: permission denied to the user", op.Path)
	}
	if op.Give {
		f.Given = append(f.Given, op.Path)
	}
	return nil
}

// hostPath is where a path of the sandbox lies.
func (f *Files) hostPath(inside string) string {
	return filepath.Join(f.Root, f.absolute(inside))
}

func (f *Files) absolute(inside string) string {
	if inside == "~" || strings.HasPrefix(inside, "~/") {
		inside = f.Home + inside[1:]
	}
	if !path.IsAbs(inside) {
		inside = path.Join(f.Home, inside)
	}
	return path.Clean(inside)
}

// Do is an operation with one reply.
func (f *Files) Do(op channel.File) (channel.FileInfo, error) {
	if op.Path == "" || strings.ContainsRune(op.Path, 0) {
		return channel.FileInfo{}, fault.Invalid("%q is not a path", op.Path)
	}
	at := f.hostPath(op.Path)
	switch op.Op {
	case channel.FileStat:
		return f.statFile(op.Path)
	case channel.FileMkdir:
		if err := f.mayWrite(op); err != nil {
			return channel.FileInfo{}, err
		}
		if _, err := os.Stat(at); err == nil {
			return channel.FileInfo{}, fault.New(fault.ErrConflict, "%s exists already", op.Path)
		}
		return channel.FileInfo{}, explainError(op.Path, os.MkdirAll(at, 0o755)) //nolint:gosec // as a guest does
	case channel.FileMove:
		if err := os.MkdirAll(filepath.Dir(f.hostPath(op.To)), 0o755); err != nil { //nolint:gosec // as above
			return channel.FileInfo{}, err
		}
		return channel.FileInfo{}, explainError(op.Path, os.Rename(at, f.hostPath(op.To)))
	case channel.FileRemove:
		if _, err := os.Lstat(at); err != nil {
			return channel.FileInfo{}, explainError(op.Path, err)
		}
		return channel.FileInfo{}, os.RemoveAll(at)
	case channel.FileList, channel.FileRead, channel.FileWrite, channel.FileWatch:
	}
	return channel.FileInfo{}, fault.Invalid("%q is a stream", op.Op)
}

func (f *Files) statFile(inside string) (channel.FileInfo, error) {
	info, err := os.Lstat(f.hostPath(inside))
	if err != nil {
		return channel.FileInfo{}, explainError(inside, err)
	}
	return f.describeFile(f.absolute(inside), info), nil
}

func (f *Files) describeFile(inside string, info fs.FileInfo) channel.FileInfo {
	d := channel.FileInfo{
		Path: inside, Kind: channel.KindFile, Size: info.Size(), Mode: uint32(info.Mode().Perm()),
		Owner: "user", Group: "user", Modified: info.ModTime(),
	}
	switch {
	case info.IsDir():
		d.Kind = channel.KindDir
	case info.Mode()&fs.ModeSymlink != 0:
		d.Kind = channel.KindSymlink
		d.Target, _ = os.Readlink(f.hostPath(inside))
		f.resolveLink(inside, &d)
	case !info.Mode().IsRegular():
		d.Kind = channel.KindOther
	}
	return d
}

// resolveLink tells what a link leads to. The box's root is a directory of the host, so an
// absolute link leads out of it, and is not resolved.
func (f *Files) resolveLink(inside string, d *channel.FileInfo) {
	root, err := filepath.EvalSymlinks(f.Root)
	if err != nil {
		return
	}
	end, err := filepath.EvalSymlinks(f.hostPath(inside))
	if err != nil {
		return
	}
	below, ok := strings.CutPrefix(end, root)
	if info, err := os.Stat(end); ok && err == nil {
		d.Resolved, d.Leads = below, f.describeFile(below, info).Kind
	}
}

func explainError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.ErrNotFound, "%s does not exist", name)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.ErrForbidden, "%s may not be used", name)
	}
	return fault.Invalid("%s: %v", name, err)
}

// Open begins an operation that is a stream.
func (f *Files) Open(_ context.Context, op channel.File) (*channel.Conn, channel.FileInfo, error) {
	near, far := net.Pipe()
	guest := channel.NewConn(far)
	serve, info, err := f.serveOperation(op)
	if err != nil {
		return nil, info, err
	}
	go func() {
		defer far.Close()
		serve(guest)
	}()
	return channel.NewConn(near), info, nil
}

func (f *Files) serveOperation(op channel.File) (func(*channel.Conn), channel.FileInfo, error) {
	at := f.hostPath(op.Path)
	info, err := os.Stat(at)
	if op.Op == channel.FileWrite {
		if err := f.mayWrite(op); err != nil {
			return nil, channel.FileInfo{}, err
		}
		if err == nil && info.IsDir() {
			return nil, channel.FileInfo{}, fault.Invalid("%s is a directory", op.Path)
		}
		return func(c *channel.Conn) { f.writeFile(c, op) }, channel.FileInfo{}, nil
	}
	if err != nil {
		return nil, channel.FileInfo{}, explainError(op.Path, err)
	}
	described := f.describeFile(f.absolute(op.Path), info)
	switch {
	case op.Op == channel.FileRead && !info.Mode().IsRegular():
		return nil, described, fault.Invalid("%s is not a file", op.Path)
	case op.Op == channel.FileRead:
		return func(c *channel.Conn) { f.readFile(c, at) }, described, nil
	case !info.IsDir():
		return nil, described, fault.Invalid("%s is not a directory", op.Path)
	case op.Op == channel.FileList:
		return func(c *channel.Conn) { f.listDir(c, op) }, described, nil
	}
	seen := listWithTimes(at)
	return func(c *channel.Conn) { watchDir(c, at, seen) }, described, nil
}

func (f *Files) readFile(c *channel.Conn, at string) {
	content, err := os.ReadFile(at)
	if err != nil {
		return
	}
	for chunk := range slices.Chunk(content, channel.MaxPayload) {
		if c.WriteFrame(channel.FrameStdout, chunk) != nil {
			return
		}
	}
	_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
}

func (f *Files) writeFile(c *channel.Conn, op channel.File) {
	var content []byte
	for {
		kind, payload, err := c.ReadFrame()
		if err != nil || kind != channel.FrameStdin {
			return // the old file stays
		}
		if len(payload) == 0 {
			break
		}
		content = append(content, payload...)
		if f.Full > 0 && int64(len(content)) > f.Full {
			_ = c.WriteJSON(channel.FrameReply, channel.Reply{Code: channel.CodeNoSpace, Error: "the disk is full"})
			return
		}
	}
	at := f.hostPath(op.Path)
	_ = os.MkdirAll(filepath.Dir(at), 0o755)                 //nolint:gosec // as a guest does
	if err := os.WriteFile(at, content, 0o644); err != nil { //nolint:gosec // as above
		_ = c.WriteJSON(channel.FrameReply, channel.Reply{Code: channel.CodePermission, Error: err.Error()})
		return
	}
	info, err := f.statFile(op.Path)
	if err != nil {
		return
	}
	info.Metadata = op.Metadata
	_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: marshal(info)})
}

func (f *Files) listDir(c *channel.Conn, op channel.File) {
	var found channel.FileEntries
	top := f.hostPath(op.Path)
	_ = filepath.WalkDir(top, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at == top {
			return err
		}
		below, _ := filepath.Rel(top, at)
		if info, err := entry.Info(); err == nil {
			found.Entries = append(found.Entries, f.describeFile(path.Join(f.absolute(op.Path), below), info))
		}
		if entry.IsDir() && strings.Count(below, "/")+1 >= op.Depth {
			return fs.SkipDir
		}
		return nil
	})
	if c.WriteJSON(channel.FrameEvent, found) == nil {
		_ = c.WriteJSON(channel.FrameReply, channel.Reply{OK: true})
	}
}

// listWithTimes lists what lies in a directory, by name.
func listWithTimes(at string) map[string]time.Time {
	seen := map[string]time.Time{}
	entries, _ := os.ReadDir(at)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			seen[e.Name()] = info.ModTime()
		}
	}
	return seen
}

// watchDir looks again and again, which is enough for a test.
func watchDir(c *channel.Conn, at string, seen map[string]time.Time) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, c.Raw())
	}()
	for {
		now := listWithTimes(at)
		var answered channel.FileEvents
		for name, modified := range now {
			switch before, ok := seen[name]; {
			case !ok:
				answered.Events = append(answered.Events, channel.FileEvent{Name: name, Change: channel.ChangeCreate}, channel.FileEvent{Name: name, Change: channel.ChangeWrite})
			case !before.Equal(modified):
				answered.Events = append(answered.Events, channel.FileEvent{Name: name, Change: channel.ChangeWrite})
			}
		}
		for name := range seen {
			if _, ok := now[name]; !ok {
				answered.Events = append(answered.Events, channel.FileEvent{Name: name, Change: channel.ChangeRemove})
			}
		}
		if len(answered.Events) > 0 && c.WriteJSON(channel.FrameEvent, answered) != nil {
			return
		}
		seen = now
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond): // a directory tells nobody of its changes
		}
	}
}
