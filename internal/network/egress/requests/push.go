package requests

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// maxDrained is how much of a refused push is read and thrown away, so that its client
// comes to read why.
const maxDrained = 256 << 20

// pushKept is what is kept of a push, in bytes: what it says before its objects, as it was said
// and as it was read.
const pushKept = 4 << 20

// Push is a push whose refs and options were read, and nothing of its objects.
type Push struct {
	Path   string
	Change gitwire.Change
	Size   int64 // of the request's body; 0: not known
}

// holdPush reads what a push is about to change, and waits for a person's answer. The body that is
// sent then begins with the bytes that were read.
func (c *Carrier) holdPush(r *http.Request, terms policy.RequestTerms) *Refusal {
	body, refusal := plainBody(r)
	if refusal != nil {
		return refusal
	}
	if terms.Limited() {
		body = &boundedBody{ReadCloser: io.NopCloser(body), left: terms.MaxBody}
	}
	pushed, refusal := c.readPush(r, body)
	if refusal != nil {
		return refusal
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(string(pushed.Said)), body), r.Body}
	if len(pushed.Commands) == 0 {
		return nil // by which clients find out whether they are let in
	}
	err := c.config.AwaitPush(r.Context(), Push{Path: r.URL.EscapedPath(), Change: pushed.Change, Size: max(0, r.ContentLength)})
	if err == nil {
		return nil
	}
	refusal = refusalOf(err)
	refusal.pushed = pushed
	return refusal
}

// readPush reads the beginning of a push. One that can't be read is told why.
func (c *Carrier) readPush(r *http.Request, body io.Reader) (*gitwire.Pushed, *Refusal) {
	if err := TakePlace(r, c.config.Searches, pushKept); err != nil {
		return nil, noPlace(err)
	}
	pushed, err := gitwire.ReadPush(body)
	if unread, is := errors.AsType[*gitwire.Malformed](err); is {
		return nil, &Refusal{Rule: door.RuleGit, Reason: unread.What, pushed: pushed}
	}
	if refusal, ok := asRefusal(err); ok {
		return nil, refusal
	}
	if err != nil {
		return nil, &Refusal{Rule: door.RuleHostHTTP, Reason: "a request's body did not end", Status: http.StatusBadRequest}
	}
	return pushed, nil
}

// plainBody is a push's body without its coding, in which it is sent on: nobody has to
// find in it what was found here.
func plainBody(r *http.Request) (io.Reader, *Refusal) {
	if len(r.Header.Values("Content-Encoding")) > 1 {
		return nil, &Refusal{Rule: door.RuleGit, Reason: "a push is encoded twice", Status: http.StatusUnsupportedMediaType}
	}
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return r.Body, nil
	case "gzip", "x-gzip":
	default:
		return nil, &Refusal{Rule: door.RuleGit, Reason: "a push is encoded in another way than gzip", Status: http.StatusUnsupportedMediaType}
	}
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, &Refusal{Rule: door.RuleGit, Reason: "a push is said to be compressed, and is not", Status: http.StatusBadRequest}
	}
	r.Header.Del("Content-Encoding")
	r.Header.Del("Content-Length")
	r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
	return plain, nil
}

// refusePush answers a push in git's own way, which shows the reason; git says of another
// answer only its status. false: its client can't be told so.
func refusePush(w http.ResponseWriter, r *http.Request, pushed *gitwire.Pushed, sentence string) bool {
	answer := pushed.Refusal(sentence, "refused by cofferdam")
	if len(answer) == 0 || len(pushed.Commands) == 0 {
		return false
	}
	if _, err := io.CopyN(io.Discard, r.Body, maxDrained); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	w.Header().Set("Content-Type", gitwire.ResultType)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = w.Write(answer) //nolint:gosec // packets for git, by their content type; its client may have gone
	return true
}

// Rest forgets the connections to the host on which nothing goes on: whoever carries them
// closes them, since a request waits. Requests that were under way on them are told of one by
// one as they end.
func (c *Carrier) Rest() {
	c.done.tellAtOnce()
	if c.first != nil {
		c.first.closeConn()
	}
	c.forget()
}
