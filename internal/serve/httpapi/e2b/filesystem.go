package e2b

import (
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const filesystemService = "/filesystem.Filesystem/"

func (d *Data) filesystemRoutes() {
	d.routes.HandleFunc("POST "+filesystemService+"Stat", d.serveUnary(d.statFile))
	d.routes.HandleFunc("POST "+filesystemService+"MakeDir", d.serveUnary(d.makeDirectory))
	d.routes.HandleFunc("POST "+filesystemService+"Move", d.serveUnary(d.moveFile))
	d.routes.HandleFunc("POST "+filesystemService+"ListDir", d.serveUnary(d.listDirectory))
	d.routes.HandleFunc("POST "+filesystemService+"Remove", d.serveUnary(d.removeFile))
	d.routes.HandleFunc("POST "+filesystemService+"WatchDir", d.streaming(d.watchDirectory))
	d.routes.HandleFunc("POST "+filesystemService+"CreateWatcher", d.serveUnary(d.createWatcher))
	d.routes.HandleFunc("POST "+filesystemService+"GetWatcherEvents", d.serveUnary(d.watcherEvents))
	d.routes.HandleFunc("POST "+filesystemService+"RemoveWatcher", d.serveUnary(d.removeWatcher))
}

// pathRequest is the request of several calls.
type pathRequest struct {
	Path string `json:"path"`
}

// entryAnswer is the answer of several.
type entryAnswer struct {
	Entry fileEntry `json:"entry"`
}

// doFile does an operation that is one reply.
func (d *Data) doFile(c *call, f channel.File) (channel.FileInfo, error) {
	user, err := c.basicUser()
	if err != nil {
		return channel.FileInfo{}, err
	}
	f.User = user
	return d.cfg.Sandboxes.File(c.Context(), c.id, f)
}

func (d *Data) statFile(w http.ResponseWriter, c *call) error {
	var req pathRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	info, err := d.doFile(c, channel.File{Op: channel.FileStat, Path: req.Path})
	if err != nil {
		return err
	}
	return writeUnary(w, c, entryAnswer{entryOf(info)})
}

func (d *Data) makeDirectory(w http.ResponseWriter, c *call) error {
	var req pathRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	info, err := d.makePath(c, req.Path)
	if errors.Is(err, fault.ErrConflict) && heldSentence(c.box.Waits()) == "" && !d.isGone(c.id) {
		return &failure{Code: codeExists, Message: failureOf(err).Message}
	}
	if err != nil {
		return err
	}
	if info.Path == "" { // the operation answers with nothing of its own
		if info, err = d.doFile(c, channel.File{Op: channel.FileStat, Path: req.Path}); err != nil {
			return err
		}
	}
	return writeUnary(w, c, entryAnswer{entryOf(info)})
}

// makePath makes a directory with its parents.
func (d *Data) makePath(c *call, at string) (channel.FileInfo, error) {
	user, err := c.basicUser()
	if err != nil {
		return channel.FileInfo{}, err
	}
	f := channel.File{Op: channel.FileMkdir, Path: at, User: user}
	info, err := d.cfg.Sandboxes.File(c.Context(), c.id, f)
	if given, ok := givenTo(f, err); ok {
		if made, again := d.cfg.Sandboxes.File(c.Context(), c.id, given); again == nil {
			return made, nil
		}
	}
	return info, err
}

func (d *Data) moveFile(w http.ResponseWriter, c *call) error {
	var req struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	}
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	if _, err := d.doFile(c, channel.File{Op: channel.FileMove, Path: req.Source, To: req.Destination}); err != nil {
		return err
	}
	info, err := d.doFile(c, channel.File{Op: channel.FileStat, Path: req.Destination})
	if err != nil {
		return err
	}
	return writeUnary(w, c, entryAnswer{entryOf(info)})
}

// removeFile removes what is there; nothing is fine, too.
func (d *Data) removeFile(w http.ResponseWriter, c *call) error {
	var req pathRequest
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	_, err := d.doFile(c, channel.File{Op: channel.FileRemove, Path: req.Path})
	if err != nil && (!errors.Is(err, fault.ErrNotFound) || d.isGone(c.id)) {
		return err
	}
	return writeUnary(w, c, struct{}{})
}

// listDirectory lists what is in a directory, and below it to a depth.
func (d *Data) listDirectory(w http.ResponseWriter, c *call) error {
	var req struct {
		pathRequest
		Depth number `json:"depth"`
	}
	if err := readUnary(w, c, &req); err != nil {
		return err
	}
	if req.Depth > channel.MaxListDepth {
		return refuseWith(codeInvalid, "a depth of %d is more than %d", req.Depth, channel.MaxListDepth)
	}
	user, err := c.basicUser()
	if err != nil {
		return err
	}
	list := channel.File{Op: channel.FileList, Path: req.Path, User: user, Depth: int(max(req.Depth, 1))}
	conn, _, err := d.cfg.Sandboxes.OpenFile(c.Context(), c.id, list)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it was for reading
	defer cutOff(c.Context(), conn)()
	answer := &listing{ctx: c.Context(), w: w, codec: c.codec}
	err = channel.ReadList(conn, func(part []channel.FileInfo) error {
		for _, info := range part {
			if err := answer.addEntry(entryOf(info)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return answer.failList(streamError(c.Context(), err))
	}
	return answer.endList()
}
