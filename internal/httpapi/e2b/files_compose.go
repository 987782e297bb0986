package e2b

import (
	"errors"
	"io"
	"net/http"
	"path"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

const maxComposed = 1_000 // sources of one file

// compose joins files of the sandbox to one, in their order, and removes them when
// that is written.
func (d *Data) compose(w http.ResponseWriter, c *call) error {
	var req struct {
		Sources     []string `json:"source_paths"`
		Destination string   `json:"destination"`
		User        string   `json:"username"`
	}
	if err := readUnary(w, c.Request, &req); err != nil {
		return err
	}
	if len(req.Sources) == 0 || len(req.Sources) > maxComposed || req.Destination == "" {
		return refuse(codeInvalid, "compose takes a destination and 1 to %d source_paths", maxComposed)
	}
	user, err := c.queryUser()
	if err == nil && req.User != "" {
		user, err = userOf(c.box.Info().Account, req.User)
	}
	if err != nil {
		return err
	}
	sources := &joined{d: d, c: c, user: user, paths: req.Sources}
	defer sources.close()
	u := &uploading{d: d, c: c, user: user, left: d.uploadLimit(c)}
	if err := u.one(req.Destination, sources); err != nil {
		return err
	}
	for _, source := range req.Sources {
		if source == req.Destination || path.Clean(source) == u.written[0].Path {
			continue
		}
		if _, err := d.cfg.Sandboxes.File(c.Context(), c.id, channel.File{Op: channel.FileRemove, Path: source, User: user}); err != nil {
			return err
		}
	}
	writeObject(w, http.StatusOK, u.written[0])
	return nil
}

// joined reads files of a sandbox one after the other.
type joined struct {
	d     *Data
	c     *call
	user  string
	paths []string // still to be opened
	conn  *channel.Conn
	stop  func() bool
	body  *fileBody
}

// Read implements io.Reader.
func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.body == nil {
			if len(j.paths) == 0 {
				return 0, io.EOF
			}
			if err := j.open(); err != nil {
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
		j.close()
	}
}

func (j *joined) open() error {
	name := j.paths[0]
	j.paths = j.paths[1:]
	conn, info, err := j.d.cfg.Sandboxes.OpenFile(j.c.Context(), j.c.id, channel.File{Op: channel.FileRead, Path: name, User: j.user})
	if err != nil {
		return err
	}
	j.conn, j.stop = conn, cutOff(j.c.Context(), conn)
	j.body = &fileBody{ctx: j.c.Context(), conn: conn, left: info.Size}
	return nil
}

func (j *joined) close() {
	if j.body != nil {
		j.stop()
		_ = j.conn.Close()
		j.body = nil
	}
}
