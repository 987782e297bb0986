package e2b

import (
	"errors"
	"io"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const maxComposed = 1_000 // sources of one file

// compose joins files of the sandbox to one, in their order, and removes them when
// that is written. One that is the result by another name stays.
func (d *Data) compose(w http.ResponseWriter, c *call) error {
	var req struct {
		Sources     []string `json:"source_paths"`
		Destination string   `json:"destination"`
		User        string   `json:"username"`
	}
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	if len(req.Sources) == 0 || len(req.Sources) > maxComposed || req.Destination == "" {
		return refuseWith(codeInvalid, "compose takes a destination and 1 to %d source_paths", maxComposed)
	}
	user, err := c.queryUser()
	if err == nil && req.User != "" {
		user, err = userOf(c.box.Info().Account, req.User)
	}
	if err != nil {
		return err
	}
	sources := &joined{d: d, c: c, user: user, paths: req.Sources}
	defer sources.closeJoined()
	u := &uploading{d: d, c: c, user: user, left: d.uploadLimit(c)}
	if err := u.writeOne(req.Destination, sources); err != nil {
		return err
	}
	result, err := d.behindPath(c, user, u.last.Path)
	if err != nil {
		return err
	}
	for _, source := range req.Sources {
		if err := d.removeSource(c, user, source, u.last.Path, result); err != nil {
			return err
		}
	}
	// Paths mean what they mean inside, where others may change that meanwhile: what is
	// answered is there.
	if _, err := d.behindPath(c, user, u.last.Path); err != nil {
		return err
	}
	return writeAnswer(c.Context(), w, http.StatusOK, u.written[0])
}

// removeSource removes a source of a file that is written, unless it is that file by
// another name: relative, through a link, with dots. A link that leads to it is one of
// its names, too. The sandbox's agent says what lies at the source; that it is as large
// as what was written and was written in the same nanosecond tells that it is the same.
func (d *Data) removeSource(c *call, user, source, written string, result channel.FileInfo) error {
	at, err := d.cfg.Sandboxes.File(c.Context(), c.id, channel.File{Op: channel.FileStat, Path: source, User: user})
	if errors.Is(err, fault.ErrNotFound) {
		return nil // it was named twice
	}
	if err != nil {
		return err
	}
	info, err := d.behindPath(c, user, source)
	if err != nil {
		return err
	}
	if at.Path == written || info.Path == result.Path || info.Size == result.Size && info.Modified.Equal(result.Modified) {
		return nil
	}
	_, err = d.cfg.Sandboxes.File(c.Context(), c.id, channel.File{Op: channel.FileRemove, Path: source, User: user})
	return err
}

// behindPath tells of what a path leads to in the end.
func (d *Data) behindPath(c *call, user, at string) (channel.FileInfo, error) {
	stat := channel.File{Op: channel.FileStat, Path: at, User: user}
	info, err := d.cfg.Sandboxes.File(c.Context(), c.id, stat)
	if err != nil || info.Kind != channel.KindSymlink {
		return info, err
	}
	if info.Resolved == "" {
		return info, refuseWith(codeInvalid, "%.100q leads nowhere, or through too many links", at)
	}
	stat.Path = info.Resolved
	return d.cfg.Sandboxes.File(c.Context(), c.id, stat)
}

// joined reads files of a sandbox one after the other.
type joined struct {
	d     *Data
	c     *call
	user  string
	paths []string // still to be opened
	conn  *channel.Conn
	stop  func() bool
	body  *channel.FileReader
}

// Read implements io.Reader.
func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.body == nil {
			if len(j.paths) == 0 {
				return 0, io.EOF
			}
			if err := j.openJoined(); err != nil {
				return 0, err
			}
		}
		n, err := j.body.Read(p)
		if n > 0 {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		j.closeJoined()
	}
}

func (j *joined) openJoined() error {
	name := j.paths[0]
	j.paths = j.paths[1:]
	conn, info, err := j.d.cfg.Sandboxes.OpenFile(j.c.Context(), j.c.id, channel.File{Op: channel.FileRead, Path: name, User: j.user})
	if err != nil {
		return err
	}
	j.conn, j.stop = conn, cutOff(j.c.Context(), conn)
	j.body = channel.NewFileReader(conn, info.Size)
	return nil
}

func (j *joined) closeJoined() {
	if j.body != nil {
		j.stop()
		_ = j.conn.Close() // with what was held for it
		j.conn, j.body = nil, nil
	}
}
