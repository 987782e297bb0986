package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// listDir tells of a directory, and below it as far as the depth goes. A directory
// below that the user may not read is told of, without what is in it.
func (c *fileCall) listDir(ctx context.Context) error {
	ctx, stop := untilHostCloses(ctx, c.stream)
	defer stop()
	answered := false
	err := c.doAt(search{follow: true}, func(p *filePlace) error {
		info, err := c.infoOf(p)
		if err != nil {
			return err
		}
		l, err := c.newLister(ctx)
		if err != nil {
			return err
		}
		dir, err := l.openDir(p.dir, p.name)
		if err != nil {
			return err
		}
		if err := replyFile(c.stream, info, nil); err != nil {
			_ = dir.Close()
			return err
		}
		answered = true
		walked := l.walkDir(dir, p.path, l.depth)
		if err := l.out.flushItems(); err != nil {
			return err
		}
		return walked
	})
	if gone, ok := errors.AsType[*brokenStream](err); ok {
		return gone
	}
	if err == nil && !answered {
		err = errors.New("the list was not begun")
	}
	return replyFile(c.stream, nil, explainFile(c.path, err))
}

// lister walks directories.
type lister struct {
	*fileCall
	ctx    context.Context //nolint:containedctx // a lister lives within one call
	depth  int
	listed int
	links  int // that were resolved
	out    packer
	proc   uint64
}

func (c *fileCall) newLister(ctx context.Context) (*lister, error) {
	depth := max(c.Depth, 1)
	if depth > channel.MaxListDepth {
		return nil, invalidFile("a list is at most %d deep, not %d", channel.MaxListDepth, depth)
	}
	return &lister{fileCall: c, ctx: ctx, depth: depth, proc: procDevice(), out: packer{stream: c.stream, wrap: func(items []json.RawMessage) any {
		return map[string]any{"entries": items}
	}}}, nil
}

// openDir opens a directory, but none of the process table.
func (l *lister) openDir(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, invalidFile("%.300q is not a directory", name)
	}
	if err != nil {
		return nil, err
	}
	if inProc(fd, l.proc) {
		_ = unix.Close(fd)
		return nil, errProc()
	}
	return os.NewFile(uintptr(fd), name), nil
}

// walkDir tells of what is in a directory, which it closes.
func (l *lister) walkDir(dir *os.File, at string, depth int) error {
	defer dir.Close()
	found, err := l.readNames(dir)
	if err != nil {
		return err
	}
	raw, err := dir.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for _, name := range found {
			if failed = l.tellEntry(int(fd), name, path.Join(at, name), depth); failed != nil {
				return
			}
		}
	})
	return errors.Join(err, failed)
}

// readNames reads a directory, sorted.
func (l *lister) readNames(dir *os.File) ([]string, error) {
	var found []string
	for {
		more, err := dir.Readdirnames(1024)
		found = append(found, more...)
		if l.listed+len(found) > channel.MaxListEntries {
			return nil, invalidFile("the directory has more than %d entries; list a part of it", channel.MaxListEntries)
		}
		if errors.Is(err, io.EOF) || len(more) == 0 {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(found)
	return found, nil
}

// tellEntry tells of one name, and of what is below it.
func (l *lister) tellEntry(dir int, name, at string, depth int) error {
	if err := l.ctx.Err(); err != nil {
		return &brokenStream{err}
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(dir, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil //nolint:nilerr // it is gone again
	}
	if l.listed++; l.listed > channel.MaxListEntries {
		return invalidFile("there are more than %d entries; list a part of them", channel.MaxListEntries)
	}
	info := l.describeFile(dir, name, at, stat)
	if info.Kind == channel.KindSymlink {
		if l.links++; l.links <= channel.MaxResolved {
			l.resolveLink(info)
		}
	}
	if err := l.out.addItem(slimmed(info)); err != nil {
		return err
	}
	if depth <= 1 || stat.Mode&unix.S_IFMT != unix.S_IFDIR || len(at) > maxPath {
		return nil
	}
	below, err := l.openDir(dir, name)
	if err != nil {
		return nil //nolint:nilerr // gone, or not the user's to read
	}
	return l.walkDir(below, at, depth-1)
}

// slimmed drops of an info what would not go into a frame.
func slimmed(info *channel.FileInfo) *channel.FileInfo {
	size := len(info.Path) + len(info.Target)
	for name, value := range info.Metadata {
		size += len(name) + len(value)
	}
	if size*6 > channel.MaxPayload/2 { // JSON makes up to six bytes of one
		info.Metadata = nil
	}
	return info
}

// packer sends items of JSON, as many as fit into a frame at a time.
type packer struct {
	stream *channel.Conn
	wrap   func(items []json.RawMessage) any
	items  []json.RawMessage
	size   int
}

// packed is how many bytes of items wait before they are sent.
const packed = channel.MaxPayload / 4

func (p *packer) addItem(item any) error {
	data, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if p.size+len(data) > channel.MaxPayload-1024 {
		if err := p.flushItems(); err != nil {
			return err
		}
	}
	p.items, p.size = append(p.items, data), p.size+len(data)+1
	if p.size < packed {
		return nil
	}
	return p.flushItems()
}

func (p *packer) flushItems() error {
	if len(p.items) == 0 {
		return nil
	}
	if err := p.stream.WriteJSON(channel.FrameEvent, p.wrap(p.items)); err != nil {
		return &brokenStream{err}
	}
	p.items, p.size = nil, 0
	return nil
}

// brokenStream is an error of the stream, of which the host can't be told.
type brokenStream struct{ cause error }

func (e *brokenStream) Error() string { return fmt.Sprintf("the stream is over: %v", e.cause) }
func (e *brokenStream) Unwrap() error { return e.cause }
