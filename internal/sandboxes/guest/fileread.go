package guest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// sendFile sends a regular file: as many bytes as it had when it was opened, so that
// one that grows, or that never ends, is read to an end. The kernel's own files say
// no size, or one that is not theirs: those are read before their size is told, and so
// are small ones, which programs write anew while others read them: once a size is told,
// fewer bytes are an error.
func (c *fileCall) sendFile(ctx context.Context) error {
	var file io.ReadCloser
	var info *channel.FileInfo
	err := c.doAt(search{follow: true, kernel: true}, func(p *filePlace) error {
		opened, stat, err := openRegular(p)
		if errors.Is(err, errIrregular) {
			return invalidFile("%.300q is not a regular file, and only those can be read", c.path)
		}
		if err != nil {
			return err
		}
		file, info = opened, c.describeFile(p.dir, p.name, p.path, stat)
		most, sized := int64(maxUnsized+1), stat.Size > 0 && !isKernels(opened)
		if sized && stat.Size > maxWhole {
			return nil
		}
		if sized {
			most = stat.Size
		}
		defer opened.Close()
		text, err := io.ReadAll(io.LimitReader(opened, most))
		if err != nil {
			return err
		}
		if len(text) > maxUnsized {
			return invalidFile("%.300q says no size, and has more than %d bytes", c.path, maxUnsized)
		}
		file, info.Size = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return nil
	})
	if err != nil {
		return replyFile(c.stream, nil, explainFile(c.path, err))
	}
	defer file.Close()
	ctx, stop := untilHostCloses(ctx, c.stream)
	defer stop()
	if err := replyFile(c.stream, info, nil); err != nil {
		return err
	}
	err = c.sendBytes(ctx, file, info.Size)
	if gone, ok := errors.AsType[*brokenStream](err); ok {
		return gone
	}
	return replyFile(c.stream, nil, explainFile(c.path, err))
}

// maxWhole is how long a file may be that is read before its size is told.
const maxWhole = 64 << 10

// maxUnsized is how much is read of a file that does not say how long it is.
const maxUnsized = 1 << 20

// isKernels tells whether a file is one that the kernel makes up as it is read.
func isKernels(file *os.File) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	var stat unix.Statfs_t
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &stat) })
	return err == nil && failed == nil && (stat.Type == unix.PROC_SUPER_MAGIC || stat.Type == unix.SYSFS_MAGIC)
}

// sendBytes sends n bytes of a file.
func (c *fileCall) sendBytes(ctx context.Context, file io.Reader, n int64) error {
	buf := make([]byte, channel.MaxPayload)
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return &brokenStream{err}
		}
		got, err := io.ReadFull(file, buf[:min(n, int64(len(buf)))])
		if got > 0 {
			if err := c.stream.WriteFrame(channel.FrameStdout, buf[:got]); err != nil {
				return &brokenStream{err}
			}
			n -= int64(got)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return &fileError{"", "the file became shorter while it was read"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
