package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostNesting is how deep objects and lists of a message may be in each other: the library reads none that go deeper, and
// would end the connection at the first one.
const mostNesting = 1000

// NewStdio is the transport to the client that started this program: a message a line. It answers a question that nests too
// deep with an error, takes an answer that does for one that failed, and a notification for none; the connection goes on. A text that is no JSON ends it, as does a message of more than the
// library's bound: nobody could tell where the next one begins.
func NewStdio(in io.ReadCloser, out io.Writer) sdk.Transport {
	whole := &wholeWriter{out: out}
	return &sdk.IOTransport{Reader: &shallowReader{Closer: in, in: bufio.NewReader(in), out: whole}, Writer: whole}
}

// wholeWriter writes one message at a time, whoever writes them: each comes in one call.
type wholeWriter struct {
	mu  sync.Mutex // guards out
	out io.Writer
}

func (w *wholeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// Close leaves it open: it is this program's own.
func (w *wholeWriter) Close() error { return nil }

// shallowReader reads messages without those that nest too deep, which it answers itself. One reads it at a time.
type shallowReader struct {
	io.Closer

	in    *bufio.Reader
	out   io.Writer
	ready []byte // of the message that is being read
	err   error  // behind it
}

func (r *shallowReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.readMessage()
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// readMessage takes the next message, up to the end of its value or of the line, whichever comes first: some clients send
// no line's end before they have an answer.
func (r *shallowReader) readMessage() {
	var message []byte
	var at nesting
	for ended := false; !ended && len(message) <= sdk.DefaultMaxLineLength; {
		b, err := r.in.ReadByte()
		if err != nil {
			r.err = err
			break
		}
		message = append(message, b)
		ended = at.takeByte(b) || b == '\n'
	}
	if at.deepest <= mostNesting || len(message) > sdk.DefaultMaxLineLength {
		r.ready = message
		return
	}
	r.refuseMessage(envelopeOf(message))
}

// refuseMessage tells the one who waits for it that a message is not read: of a question the client, of an answer the question
// of this program that it is for. For a notification nobody waits.
func (r *shallowReader) refuseMessage(e envelope) {
	var refusal bytes.Buffer
	_ = json.NewEncoder(&refusal).Encode(map[string]any{ // a map of what can be encoded
		"jsonrpc": "2.0", "id": e.id,
		"error": jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message has objects and lists more than %d deep in each other, and is not read; send it flatter", mostNesting)},
	})
	switch {
	case e.asks && e.unnumbered && e.whole:
	case e.answers && !e.asks && e.id != nil:
		r.ready = refusal.Bytes()
	default:
		_, _ = r.out.Write(refusal.Bytes()) // the library finds out that the client has gone
	}
}

// nesting counts how deep a message nests.
type nesting struct {
	depth, deepest  int
	quoted, escaped bool
}

// takeByte goes on with the next byte of a message; true: its outermost value has ended.
func (n *nesting) takeByte(b byte) (ended bool) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.quoted:
		n.escaped, n.quoted = b == '\\', b != '"'
	case b == '"':
		n.quoted = true
	case b == '{', b == '[':
		n.depth++
		n.deepest = max(n.deepest, n.depth)
	case b == '}', b == ']':
		n.depth--
		return n.depth <= 0
	}
	return false
}

// envelope is a message without what it carries.
type envelope struct {
	id            any  // a text or a number; nil: it tells none
	unnumbered    bool // it has no id, or null for one
	asks, answers bool // it has a method; it has a result or an error
	whole         bool // it was read to its end
}

// envelopeOf reads a message word by word, however deep it nests. Of two ids the last counts, as for the library.
func envelopeOf(message []byte) envelope {
	e := envelope{unnumbered: true}
	words := json.NewDecoder(bytes.NewReader(message))
	words.UseNumber()
	if first, err := words.Token(); err != nil || first != json.Delim('{') {
		return e
	}
	for depth, name, named := 1, "", false; depth > 0; {
		word, err := words.Token()
		if err != nil {
			return e
		}
		if depth == 1 && named {
			e.takeWord(name, word)
		}
		switch word {
		case json.Delim('{'), json.Delim('['):
			depth, named = depth+1, false
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			continue
		}
		if depth == 1 {
			name, _ = word.(string)
			named = !named
		}
	}
	e.whole = true
	return e
}

// takeWord takes the first word of the value that a name has.
func (e *envelope) takeWord(name string, word json.Token) {
	switch name {
	case "id":
		e.id, e.unnumbered = nil, word == nil
		switch word.(type) {
		case string, json.Number:
			e.id = word
		}
	case "method":
		e.asks = true
	case "result", "error":
		e.answers = true
	}
}
