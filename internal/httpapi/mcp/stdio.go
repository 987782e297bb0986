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

// NewStdio is the transport to the client that started this program: a message a line. It answers a message that nests too
// deep with an error, and the connection goes on. A text that is no JSON ends it, as does a message of more than the
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
	_ = json.NewEncoder(r.out).Encode(map[string]any{ // the library finds out that the client has gone
		"jsonrpc": "2.0", "id": idOf(message),
		"error": jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message has objects and lists more than %d deep in each other, and is not read; send it flatter", mostNesting)},
	})
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

// idOf is the id of a message, a text or a number; nil: it tells none. It reads word by word, however deep they nest.
func idOf(message []byte) any {
	words := json.NewDecoder(bytes.NewReader(message))
	words.UseNumber()
	if first, err := words.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	for depth, name, named := 1, "", false; depth > 0; {
		word, err := words.Token()
		if err != nil {
			return nil
		}
		switch word {
		case json.Delim('{'), json.Delim('['):
			depth, named = depth+1, false
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			continue
		}
		if depth > 1 {
			continue
		}
		if named && name == "id" {
			return idOfWord(word)
		}
		if !named {
			name, _ = word.(string)
		}
		named = !named
	}
	return nil
}

// idOfWord is a word that can be an id.
func idOfWord(word json.Token) any {
	switch word.(type) {
	case string, json.Number:
		return word
	}
	return nil
}
