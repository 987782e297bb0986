package guest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
)

// Bounds of what is read of one package.
const (
	contentsFiles = 50_000
	contentsBytes = 1 << 30
)

// contents answers with the digests of directories.
func (a *Agent) contents(ctx context.Context, stream *channel.Conn, ask *channel.ContentsAsk) error {
	if ask == nil || len(ask.Paths) > channel.MaxContents {
		return replyCall(stream, errors.New("there are too many directories to look into, or none"))
	}
	ctx, cancel := a.clock.withTimeout(ctx, channel.MaxInventoryTime)
	defer cancel()
	answer := channel.ContentsReply{Whole: make([]string, len(ask.Paths)), Own: make([]string, len(ask.Paths))}
	for i, path := range ask.Paths {
		answer.Whole[i], answer.Own[i] = contentsOf(ctx, a.config.Root+filepath.Clean("/"+path))
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return replyCall(stream, err)
	}
	return stream.WriteJSON(channel.FrameReply, channel.Reply{OK: true, Body: body})
}

// contentsOf are the digests of a directory: of all of it, and of what is not in its
// node_modules. Both are "" if it can't be read whole: half of it is another package.
func contentsOf(ctx context.Context, dir string) (whole, own string) {
	r := &contentsReader{ctx: ctx, whole: digest.Files{}, own: digest.Files{}}
	if r.walkDir(dir, "") != nil {
		return "", ""
	}
	if r.links {
		return "", r.own.Digest()
	}
	return r.whole.Digest(), r.own.Digest()
}

type contentsReader struct {
	ctx        context.Context //nolint:containedctx // lives for one call, and every step of the walk needs it
	whole, own digest.Files
	bytes      int64
	links      bool
}

var errIncomparable = errors.New("it can't be compared")

func (r *contentsReader) walkDir(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		inner := entry.Name()
		if name != "" {
			inner = name + "/" + inner
		}
		path := filepath.Join(dir, entry.Name())
		switch {
		case r.ctx.Err() != nil, len(r.whole) >= contentsFiles:
			return errIncomparable
		case entry.IsDir():
			err = r.walkDir(path, inner)
		case entry.Type().IsRegular():
			err = r.readFile(path, inner)
		case ofModules(inner):
			r.links = true // to other packages: then only what is its own counts
		default:
			return errIncomparable
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readFile reads one file. It is opened without waiting, and is what it was when it was
// listed, or is not compared.
func (r *contentsReader) readFile(path, name string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if r.bytes += info.Size(); !info.Mode().IsRegular() || r.bytes > contentsBytes {
		return errIncomparable
	}
	if err := r.whole.Add(name, io.LimitReader(f, contentsBytes)); err != nil {
		return err
	}
	if sum, counts := r.whole[name]; counts && !ofModules(name) {
		r.own[name] = sum
	}
	return nil
}

// ofModules tells what lies in a package's own node_modules: other packages.
func ofModules(name string) bool { return strings.HasPrefix(name, "node_modules/") }
