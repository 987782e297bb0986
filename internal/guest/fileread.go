package guest

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// read sends a regular file: as many bytes as it had when it was opened, so that
// one that grows, or that never ends, is read to an end.
func (c *fileCall) read(ctx context.Context) error {
	var file *os.File
	var info *channel.FileInfo
	err := c.at(search{follow: true}, func(p *place) error {
		opened, stat, err := openRegular(p)
		if errors.Is(err, errIrregular) {
			return invalidFile("%.300q is not a regular file, and only those can be read", c.path)
		}
		if err != nil {
			return err
		}
		file, info = opened, c.describe(p.dir, p.name, p.path, stat)
		return nil
	})
	if err != nil {
		return replyFile(c.stream, nil, explainFile(c.path, err))
	}
	defer file.Close()
	ctx, stop := heard(ctx, c.stream)
	defer stop()
	if err := replyFile(c.stream, info, nil); err != nil {
		return err
	}
	err = c.send(ctx, file, info.Size)
	if gone, ok := errors.AsType[*brokenStream](err); ok {
		return gone
	}
	return replyFile(c.stream, nil, explainFile(c.path, err))
}

// send sends n bytes of a file.
func (c *fileCall) send(ctx context.Context, file *os.File, n int64) error {
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
