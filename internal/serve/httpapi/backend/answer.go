package backend

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// How long a client may take for an answer that is written whole: a while, and then some for each so
// many bytes. Until it has taken all, the daemon keeps what it is answered.
const (
	answerTimeout = 30 * time.Second
	answerRate    = 8 << 10 // bytes a second
	// smallAnswer is what any request may be answered: it takes no more than the request itself, and
	// who has changed something hears of it however much its token holds.
	smallAnswer = 8 << 10
	// bufferedAnswer is how much of an answer net/http keeps until the handler has returned.
	bufferedAnswer = 2 << 10
)

// ErrAnswered is that an answer was begun, and its client did not take all of it.
var ErrAnswered = errors.New("answered")

// WriteJSON answers the request of ctx with v as one line of JSON. It is the one way in which a value
// goes to a client whole: what v holds has its room (Reserve) until the request is over (fault.ErrExhausted if there
// is none, and nothing is written then), it is encoded as the client takes it, and a client that does not
// keep up is cut off (ErrAnswered). Of a caller without a room nothing is counted.
func WriteJSON(ctx context.Context, w http.ResponseWriter, status int, v any) error {
	if err := Reserve(ctx, SizeOf(v)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return writeTyped(w, status, v)
}

// Reserve has the request of ctx hold n bytes of its room, those included that it holds already: when it
// is answered, its own body is over. fault.ErrExhausted if there is no room; a small answer has some.
func Reserve(ctx context.Context, n int) error {
	s, ok := ctx.Value(roomKey{}).(*share)
	if !ok || n <= smallAnswer {
		return nil
	}
	s.mu.Lock()
	more, promised := int64(n)-s.taken, s.promised
	s.mu.Unlock()
	if more <= 0 {
		return nil
	}
	if err := s.takeBytes(more); !promised {
		return err
	}
	return nil
}

// Promise has the request of ctx hold the room for its answer, which is about n times as large as like,
// before it does something that can't be undone: fault.ErrExhausted if there is none, and nothing is to be
// done then. A late answer is not refused, though it turns out a little larger: who has changed something
// hears of it.
func Promise(ctx context.Context, n int, like any) error {
	s, ok := ctx.Value(roomKey{}).(*share)
	if !ok {
		return nil
	}
	if err := Reserve(ctx, n*SizeOf(like)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promised = true
	return nil
}

// WriteList answers the request of ctx with a list as WriteJSON does, but with one element at a time: it may be of any
// length, and holds the room of its largest element. all gives the same elements whenever it is asked; one that has
// grown meanwhile is sent as it is.
func WriteList[T any](ctx context.Context, w http.ResponseWriter, status int, all iter.Seq[T]) error {
	largest := 0
	for one := range all {
		largest = max(largest, SizeOf(one))
	}
	if err := Reserve(ctx, largest); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := timed{w: w, control: http.NewResponseController(w), began: time.Now()}
	defer out.endWrites()
	before := "["
	for one := range all {
		_, err := io.WriteString(&out, before)
		if err == nil {
			err = json.MarshalWrite(&out, one, jsonv1.DefaultOptionsV1())
		}
		if err != nil {
			return ErrAnswered // the status is out already
		}
		before = ","
	}
	if before == "[" {
		before = "[]\n"
	} else {
		before = "]\n"
	}
	if _, err := io.WriteString(&out, before); err != nil {
		return ErrAnswered
	}
	return nil
}

// Sharing is ctx with the room of another context: what is done in it is for the same request.
func Sharing(ctx, of context.Context) context.Context {
	return context.WithValue(ctx, roomKey{}, of.Value(roomKey{}))
}

// TakeAnswer takes room for a value that others write, as it is and as its text.
func TakeAnswer(ctx context.Context, v any) error {
	if n := 2 * SizeOf(v); n > smallAnswer {
		return Take(ctx, n)
	}
	return nil
}

// WriteError answers with a short object of ours, such as why there is no other answer. It takes no room.
func WriteError(w http.ResponseWriter, contentType string, status int, v any) {
	w.Header().Set("Content-Type", contentType)
	_ = writeTyped(w, status, v) // a client that is gone is its own loss
}

func writeTyped(w http.ResponseWriter, status int, v any) error {
	w.WriteHeader(status)
	out := timed{w: w, control: http.NewResponseController(w), began: time.Now()}
	defer out.endWrites()
	err := json.MarshalWrite(&out, v, jsonv1.DefaultOptionsV1())
	if err == nil {
		_, err = io.WriteString(&out, "\n")
	}
	if err != nil {
		return ErrAnswered // the status is out already
	}
	return nil
}

// WriteBytes answers the request of ctx with bytes that are there already, and for which the caller has
// taken room; a client that does not keep up is cut off.
func WriteBytes(w http.ResponseWriter, data []byte) error {
	out := timed{w: w, control: http.NewResponseController(w), began: time.Now()}
	defer out.endWrites()
	const piece = 64 << 10 // so that each has a deadline of its own
	for len(data) > 0 {
		n := min(piece, len(data))
		if _, err := out.Write(data[:n]); err != nil {
			return ErrAnswered
		}
		data = data[n:]
	}
	return nil
}

// timed is an answer whose client must keep up.
type timed struct {
	w       http.ResponseWriter
	control *http.ResponseController
	began   time.Time
	written int64
}

// Write implements io.Writer.
func (t *timed) Write(p []byte) (int, error) {
	t.setDeadline(t.began.Add(answerTimeout + time.Duration(t.written/answerRate)*time.Second))
	n, err := t.w.Write(p)
	t.written += int64(n)
	return n, err
}

// setDeadline sets the deadline of what is written.
func (t *timed) setDeadline(at time.Time) {
	_ = t.control.SetWriteDeadline(at) // a writer of tests has no connection, and no deadlines
}

// endWrites sends what is still with the server, in time, and takes the deadline back: the connection goes on.
func (t *timed) endWrites() {
	if t.written >= bufferedAnswer {
		_ = t.control.Flush() // who is gone needs it no more
	}
	t.setDeadline(time.Time{})
}

// Prompt is w for an answer that comes piece by piece, each of which its client must take as it would a
// whole answer. Between two pieces it has all the time there is.
func Prompt(w http.ResponseWriter) http.ResponseWriter {
	return &prompt{ResponseWriter: w, control: http.NewResponseController(w)}
}

type prompt struct {
	http.ResponseWriter

	control *http.ResponseController
	unsent  int // bytes since the last flush
}

// Write implements http.ResponseWriter.
func (p *prompt) Write(b []byte) (int, error) {
	p.unsent += len(b)
	defer p.setPromptDeadline()()
	return p.ResponseWriter.Write(b)
}

// FlushError serves http.ResponseController.
func (p *prompt) FlushError() error {
	defer p.setPromptDeadline()()
	p.unsent = 0
	return p.control.Flush()
}

// Unwrap is for http.ResponseController.
func (p *prompt) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// setPromptDeadline sets the deadline of what was not sent yet; ease takes it back, because there may be nothing to
// write for long.
func (p *prompt) setPromptDeadline() (ease func()) {
	at := time.Now().Add(answerTimeout + time.Duration(p.unsent/answerRate)*time.Second)
	_ = p.control.SetWriteDeadline(at) // a writer of tests has no connection, and no deadlines
	return func() { _ = p.control.SetWriteDeadline(time.Time{}) }
}

// WriteExhausted answers with 429 a request for which there is no room, for wires that know no errors of their own below
// their messages: a problem document, and Retry-After where err says when the same may succeed.
func WriteExhausted(w http.ResponseWriter, err error) {
	const status = http.StatusTooManyRequests
	p := api.Problem{Title: http.StatusText(status), Status: status, Detail: fault.Sentence(err, "there is no room for the request"), RetrySeconds: RetrySeconds(err)}
	if p.RetrySeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetrySeconds))
	}
	WriteError(w, "application/problem+json", status, p)
}
