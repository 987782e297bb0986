package e2b

import (
	"compress/gzip"
	"context"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// download sends a file as it comes from the sandbox; nothing is kept here but what zipping needs. There
// are no ranges: no client of this wire asks for any.
func (d *Data) download(w http.ResponseWriter, c *call) error {
	name := c.URL.Query().Get("path")
	if name == "" {
		return refuseWith(codeInvalid, "name the file in the query: path=")
	}
	user, err := c.queryUser()
	if err != nil {
		return err
	}
	read := channel.File{Op: channel.FileRead, Path: name, User: user}
	if c.Method == http.MethodHead && d.tellHead(w, c, read) {
		return nil
	}
	conn, info, err := d.cfg.Sandboxes.OpenFile(c.Context(), c.id, read)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it was for reading
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	defer cutOff(ctx, conn)()
	stop := cutWrites(ctx, c, w)
	defer stop()
	w = &httphead.Answer{ResponseWriter: w, Within: d.cfg.Untaken}
	body := channel.NewFileReader(conn, info.Size)
	if describeDownload(w, c.Request, info) {
		zipped := gzip.NewWriter(w)
		if _, err := io.Copy(zipped, body); err != nil || zipped.Close() != nil {
			panic(http.ErrAbortHandler) // the status is out: only a broken connection tells that the file is not whole
		}
		return nil
	}
	w.WriteHeader(http.StatusOK)
	if c.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(w, body); err != nil {
		panic(http.ErrAbortHandler) // as above
	}
	return nil
}

// tellHead answers who asks for a file's headers alone; false: it has to be opened to say why there
// are none.
func (d *Data) tellHead(w http.ResponseWriter, c *call, read channel.File) bool {
	info, told := backend.HeadOf(c.Context(), d.cfg.Sandboxes, c.id, read)
	if !told {
		return false
	}
	describeDownload(w, c.Request, info)
	if info.Size == 0 {
		w.Header().Del("Content-Length") // a file of the kernel may have content all the same
	}
	w.WriteHeader(http.StatusOK)
	return true
}

// zipCost is what zipping takes of the daemon's memory, in bytes, for as long as the client takes the file.
const zipCost = 832 << 10

// describeDownload sets the headers of a file, and tells whether its content comes zipped. It takes the room for that,
// until the request is over; without room the file comes as it is.
func describeDownload(w http.ResponseWriter, r *http.Request, info channel.FileInfo) (zip bool) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": path.Base(info.Path)}))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Accept-Ranges", "none")
	w.Header().Set("Vary", "Accept-Encoding")
	if zip = wantsGzip(r) && info.Size > 0 && backend.Take(r.Context(), zipCost) == nil; zip {
		w.Header().Set("Content-Encoding", "gzip")
	} else {
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size, 10))
	}
	return zip
}

// wantsGzip tells whether a client asked for gzip and nothing else: those that offer
// it by habit, with others, are better served without.
func wantsGzip(r *http.Request) bool {
	return strings.EqualFold(strings.TrimSpace(r.Header.Get("Accept-Encoding")), "gzip")
}

// cutWrites cuts off what is being written when the sandbox is taken away; the
// result takes that back.
func cutWrites(ctx context.Context, c *call, w http.ResponseWriter) func() {
	done := make(chan struct{})
	finished := make(chan struct{})
	safego.Go(func() {
		defer close(finished)
		select {
		case <-c.box.Gone():
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now())
		case <-ctx.Done():
		case <-done:
		}
	})
	return func() {
		close(done)
		<-finished
	}
}

// metrics answers what the sandbox uses.
func (d *Data) metrics(w http.ResponseWriter, c *call) error {
	u, err := d.cfg.Sandboxes.Usage(c.Context(), c.id)
	if err != nil {
		return err
	}
	const mib = 1 << 20
	return writeAnswer(c.Context(), w, http.StatusOK, map[string]any{
		"ts": u.Time.Unix(), "cpu_count": int(max(u.CPUCount, 1)), "cpu_used_pct": u.CPUPercent,
		"mem_total": u.MemoryLimit, "mem_used": u.MemoryBytes, "mem_total_mib": u.MemoryLimit / mib, "mem_used_mib": u.MemoryBytes / mib,
		"disk_total": u.DiskLimit, "disk_used": u.DiskBytes,
	})
}
