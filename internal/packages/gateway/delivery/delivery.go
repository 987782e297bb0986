// Package delivery is the only way on which a release's bytes leave to a sandbox.
// Bytes that are verified become Judged when the door has said that they may be
// served and has that on record, and what describes a release becomes Shown when its
// showing is on record. Only these can be sent.
package delivery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
)

// Door judges and records what is sent.
type Door interface {
	Judge(ctx context.Context, ask door.JudgeAsk) (door.Answer, error)
	Serve(ctx context.Context, ask door.ServeAsk) (door.Answer, error)
	Show(ctx context.Context, s door.Showing) error
	Sent(ctx context.Context, sandbox string, recordSeq uint64) error
	Aborted(ctx context.Context, sandbox string, recordSeq uint64, sent int64) error
}

// Judged is a file that may be served, and whose serving is on record. Only Judge
// makes one that has bytes.
type Judged struct {
	door   Door
	ask    door.JudgeAsk // whether it may still be had
	file   *artifacts.Verified
	answer door.Answer
}

// Judge asks whether verified bytes may be served now. An allowed request is on record when it
// returns, and stays there whether or not the client does; ok is false for all else, with the
// answer that says why. ask lacks the bytes, and what of them the request asks for.
func Judge(r *http.Request, d Door, ask door.ServeAsk, paths []string, v *artifacts.Verified) (j Judged, answer door.Answer, ok bool, err error) {
	ask.Bytes, ask.Part = Bytes(v, paths), deliveredPart(r, v)
	answer, err = d.Serve(context.WithoutCancel(r.Context()), ask)
	if err != nil || !answer.Decision.Allowed() {
		return Judged{}, answer, false, err
	}
	return Judged{door: d, ask: door.JudgeAsk{FileAsk: ask.FileAsk}, file: v, answer: answer}, answer, true, nil
}

// Bytes are a verified file's for the door. paths are those of the files inside.
func Bytes(v *artifacts.Verified, paths []string) door.Bytes {
	return door.Bytes{SHA256: strings.TrimPrefix(v.Digest(), "sha256:"), Size: v.Size(), Paths: paths}
}

// errNotJudged is what there is to send of what the door did not let through.
var errNotJudged = fault.Invalid("this was not judged, so nothing of it is sent")

// Send sends the file, as long as it may be had, and tells the door whether all of
// it has left. An error is that this is not on record.
func (j Judged) Send(w http.ResponseWriter, r *http.Request) error {
	if j.file == nil {
		http.Error(w, errNotJudged.Error(), http.StatusInternalServerError)
		return errNotJudged
	}
	out := &counted{ResponseWriter: w}
	content := &standing{ReadSeeker: j.file.Reader(), check: func() bool { return j.stands(r) }, step: allowedBytes, left: allowedBytes}
	if j.answer.Decision.ResolvedBy == policy.ByApproval {
		content.step, content.left = approvedBytes, 0 // the first question is before the first byte
	}
	serveContent(out, r, j.file.Digest(), content)
	announced, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
	whole := err != nil || out.sent >= announced
	if http.NewResponseController(w).Flush() != nil {
		whole = false // what was still kept here could not be sent
	}
	ctx := context.WithoutCancel(r.Context())
	if whole {
		return j.door.Sent(ctx, j.ask.Sandbox, j.answer.Seq)
	}
	return j.door.Aborted(ctx, j.ask.Sandbox, j.answer.Seq, out.sent)
}

// stands tells whether what is being sent may still be had: a person may take an
// approval back, a policy be narrowed, an advisory imported.
func (j Judged) stands(r *http.Request) bool {
	answer, err := j.door.Judge(context.WithoutCancel(r.Context()), j.ask)
	return err == nil && answer.Decision.Allowed()
}

// Head answers HEAD: what GET would be answered with, and none of its bytes.
func Head(w http.ResponseWriter, r *http.Request, v *artifacts.Verified) {
	as := r.Clone(r.Context())
	as.Method = http.MethodHead
	serveContent(w, as, v.Digest(), io.NewSectionReader(noBytes{}, 0, v.Size()))
}

// noBytes stands for content of which only the size is told.
type noBytes struct{}

// ReadAt implements io.ReaderAt.
func (noBytes) ReadAt([]byte, int64) (int, error) {
	return 0, errors.New("what was not judged is not read")
}

// deliveredPart tells what of a file the answer to the request has, for the record; "" is
// all of it.
func deliveredPart(r *http.Request, v *artifacts.Verified) string {
	said := &unsent{header: http.Header{}}
	Head(said, r, v)
	switch said.status {
	case http.StatusOK:
		return ""
	case http.StatusPartialContent:
		return said.header.Get("Content-Range")
	case http.StatusNotModified:
		return "nothing, the client has it"
	}
	return "nothing, the answer has status " + strconv.Itoa(said.status)
}

// serveContent answers GET and HEAD, whole or one range.
func serveContent(w http.ResponseWriter, r *http.Request, digest string, content io.ReadSeeker) {
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // many ranges in one answer are of use to nobody here
	}
	w.Header().Set("ETag", `"`+digest+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, content)
}

// Shown is what describes a release, or what its client verifies itself, and whose
// showing is on record. Only Show makes one that has bytes.
type Shown struct {
	recorded bool
	body     []byte
}

// Show has it recorded that these bytes, which describe what s says, go to the guest;
// an error refuses them.
func Show(ctx context.Context, d Door, s door.Showing, body []byte) (Shown, error) {
	sum := sha256.Sum256(body)
	s.SHA256, s.Size = hex.EncodeToString(sum[:]), int64(len(body))
	if err := d.Show(ctx, s); err != nil {
		return Shown{}, err
	}
	return Shown{recorded: true, body: body}, nil
}

// Send sends it. etag is without quotes; "" is none.
func (s Shown) Send(w http.ResponseWriter, r *http.Request, contentType, etag string) {
	if !s.recorded {
		http.Error(w, errNotJudged.Error(), http.StatusInternalServerError)
		return
	}
	if etag != "" {
		w.Header().Set("ETag", `"`+etag+`"`)
	}
	w.Header().Set("Content-Type", contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.body))
}
