package e2b

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// fileEntry is a file as the protocol tells of it.
type fileEntry struct {
	Name          string            `json:"name"`
	Type          string            `json:"type"`
	Path          string            `json:"path"`
	Size          string            `json:"size"` // an int64 of proto3 JSON
	Mode          uint32            `json:"mode"` // permission bits
	Permissions   string            `json:"permissions"`
	Owner         string            `json:"owner"`
	Group         string            `json:"group"`
	ModifiedTime  string            `json:"modifiedTime"`
	SymlinkTarget string            `json:"symlinkTarget,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
}

// The types of entries.
const (
	typeFile      = "FILE_TYPE_FILE"
	typeDirectory = "FILE_TYPE_DIRECTORY"
)

// entryOf makes an entry of a file; a symbolic link has the type of what it leads to.
func entryOf(info channel.FileInfo) fileEntry {
	mode := fs.FileMode(info.Mode & 0o777)
	kind := info.Kind
	switch info.Kind {
	case channel.KindSymlink:
		mode |= fs.ModeSymlink
		kind = info.Leads
	case channel.KindDir:
		mode |= fs.ModeDir
	case channel.KindFile, channel.KindOther:
	}
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if info.Mode&bit != 0 {
			mode |= flag
		}
	}
	e := fileEntry{
		Name: path.Base(info.Path), Type: typeFile, Path: info.Path, Size: strconv.FormatInt(info.Size, 10),
		Mode: info.Mode & 0o7777, Permissions: mode.String(), Owner: info.Owner, Group: info.Group,
		ModifiedTime: info.Modified.UTC().Format(time.RFC3339Nano), SymlinkTarget: targetOf(info), Metadata: clientMetadata(info.Metadata),
	}
	if kind == channel.KindDir {
		e.Type = typeDirectory
	}
	return e
}

// targetOf is what a symbolic link leads to in the end; of one that leads nowhere, or
// where it can't be told, what it says, as an absolute path. All is resolved inside.
func targetOf(info channel.FileInfo) string {
	switch {
	case info.Resolved != "" || info.Target == "":
		return info.Resolved
	case path.IsAbs(info.Target):
		return path.Clean(info.Target)
	}
	return path.Join(path.Dir(info.Path), info.Target)
}

// cutOff closes a file's stream when ctx ends; the result takes that back.
func cutOff(ctx context.Context, conn *channel.Conn) func() bool {
	return safego.When(ctx, func() { _ = conn.Close() })
}

// streamError is why a file's stream ended: its context, or else err.
func streamError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
