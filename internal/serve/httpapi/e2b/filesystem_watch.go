package e2b

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"path"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

type watchRequest struct {
	Path         string `json:"path"`
	Recursive    bool   `json:"recursive"`
	IncludeEntry bool   `json:"includeEntry"`
}

// watchEvent is one change as the protocol tells of it.
type watchEvent struct {
	Name  string     `json:"name"`
	Type  string     `json:"type"`
	Entry *fileEntry `json:"entry,omitempty"`
}

// errLost ends a watch that can't tell of everything any more.
var errLost = &failure{Code: codeDataLoss, Message: "there were more changes than could be kept: list the directory, and watch it again"}

// watch is a directory that is being watched.
type watch struct {
	d       *Data
	c       *call // whose context is the watch's
	user    string
	conn    *channel.Conn
	path    string
	entries bool // each event has the entry of what changed, if it is there
}

// openWatch begins to watch, until ctx ends.
func (d *Data) openWatch(ctx context.Context, c *call, req watchRequest) (*watch, error) {
	user, err := c.basicUser()
	if err != nil {
		return nil, err
	}
	w := &watch{d: d, c: &call{Request: c.WithContext(ctx), box: c.box, id: c.id}, user: user, entries: req.IncludeEntry}
	conn, info, err := d.cfg.Sandboxes.OpenFile(ctx, c.id, channel.File{Op: channel.FileWatch, Path: req.Path, User: user, Recursive: req.Recursive})
	w.conn, w.path = conn, info.Path
	return w, err
}

// events are changes as the protocol tells of them, one by one: a frame has thousands of changes, and of each
// the guest may say much when it is asked about it.
func (w *watch) events(changes []channel.FileEvent) iter.Seq[watchEvent] {
	return func(yield func(watchEvent) bool) { w.tellChanges(changes, yield) }
}

func (w *watch) tellChanges(changes []channel.FileEvent, yield func(watchEvent) bool) {
	types := map[channel.Change]string{
		channel.ChangeCreate: "EVENT_TYPE_CREATE", channel.ChangeWrite: "EVENT_TYPE_WRITE", channel.ChangeRemove: "EVENT_TYPE_REMOVE",
		channel.ChangeRename: "EVENT_TYPE_RENAME", channel.ChangeChmod: "EVENT_TYPE_CHMOD",
	}
	for _, change := range changes {
		kind := types[change.Change]
		if kind == "" {
			continue
		}
		e := watchEvent{Name: change.Name, Type: kind}
		if w.entries && change.Change != channel.ChangeRemove && change.Change != channel.ChangeRename {
			e.Entry = w.entryOf(change.Name)
		}
		if !yield(e) {
			return
		}
	}
}

// entryOf is what lies there now; nil if nothing does.
func (w *watch) entryOf(name string) *fileEntry {
	info, err := w.d.cfg.Sandboxes.File(w.c.Context(), w.c.id, channel.File{Op: channel.FileStat, Path: path.Join(w.path, name), User: w.user})
	if err != nil {
		return nil
	}
	e := entryOf(info)
	return &e
}

// watchDirectory streams what changes in a directory.
func (d *Data) watchDirectory(w http.ResponseWriter, c *call) (feed, error) {
	var req watchRequest
	if err := readEnvelope(w, c, &req); err != nil {
		return nil, err
	}
	timeout, err := timeoutOf(c.Request)
	if err != nil {
		return nil, err
	}
	pulse, err := pulseOf(c.Request)
	if err != nil {
		return nil, err
	}
	watch, err := d.openWatch(c.Context(), c, req)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s *connectStream) error { return watch.sendChanges(ctx, s, timeout, pulse) }, nil
}

// sendChanges sends changes until the time is over or nobody wants more.
func (w *watch) sendChanges(ctx context.Context, s *connectStream, timeout, pulse time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer w.conn.Close() //nolint:errcheck // it was for reading
	if err := s.sendMessage(map[string]any{"start": struct{}{}}); err != nil {
		return err
	}
	var over <-chan time.Time
	if timeout > 0 {
		over = time.After(timeout)
	}
	frames := readFrames(ctx, w.conn)
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		select {
		case f := <-frames.next:
			if f.err != nil {
				return streamError(ctx, channel.BrokenOff(f.err))
			}
			if err := w.sendChange(s, f); err != nil {
				return err
			}
			frames.taken <- struct{}{}
			ticker.Reset(pulse)
		case <-ticker.C:
			if err := s.sendMessage(map[string]any{"keepalive": struct{}{}}); err != nil {
				return err
			}
		case <-over:
			return refuseWith(codeDeadline, "the watch was open for the %s that it was given", timeout)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *watch) sendChange(s *connectStream, f commandFrame) error {
	changes, err := changesOf(f.kind, f.payload)
	if err != nil {
		return err
	}
	for e := range w.events(changes.Events) {
		if err := s.sendMessage(map[string]any{"filesystem": e}); err != nil {
			return err
		}
	}
	if changes.Lost {
		return errLost
	}
	return nil
}

// changesOf reads a frame of a watch.
func changesOf(kind channel.FrameType, payload []byte) (channel.FileEvents, error) {
	changes, err := channel.DecodeEvents(kind, payload)
	if errors.Is(err, io.EOF) {
		err = refuseWith(codeNotFound, "the directory is not there any more")
	}
	return changes, err
}
