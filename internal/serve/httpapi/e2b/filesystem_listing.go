package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// listingHeld is how much of a list is kept back, so that what goes wrong can still be
// told in its place. A longer one goes to the client as it comes: a guest can fill a
// list with hundreds of megabytes of names.
const listingHeld = 1 << 20

// listing is the answer to a list: the one message of a unary call, written in parts.
type listing struct {
	ctx   context.Context //nolint:containedctx // of the one call that it answers
	w     http.ResponseWriter
	codec *codec
	added int
	held  bytes.Buffer
	sent  bool // some of it: an error breaks the connection
}

// addEntry tells of one more entry.
func (l *listing) addEntry(e fileEntry) error {
	l.added++
	data, err := l.encodeEntry(e)
	if err != nil {
		return err
	}
	if !l.sent {
		if err := backend.Take(l.ctx, len(data)); err != nil {
			return err
		}
	}
	l.held.Write(data)
	if l.held.Len() < listingHeld {
		return nil
	}
	return l.flushList()
}

// encodeEntry encodes one more entry, with what separates it from those before.
func (l *listing) encodeEntry(e fileEntry) ([]byte, error) {
	if l.codec != nil {
		return l.codec.encodePart(e)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	if l.added == 1 {
		return append([]byte(`{"entries":[`), data...), nil
	}
	return append([]byte{','}, data...), nil
}

// flushList sends what is kept back.
func (l *listing) flushList() error {
	if !l.sent {
		l.w.Header().Set("Content-Type", l.codec.unaryType())
		l.sent = true
	}
	_, err := l.w.Write(l.held.Bytes())
	l.held.Reset()
	return err
}

// endList sends the rest.
func (l *listing) endList() error {
	if l.codec == nil {
		if l.added == 0 {
			l.held.WriteString(`{"entries":[`)
		}
		l.held.WriteString(`]}`)
	}
	_ = l.flushList() // a client that is gone is its own loss
	return nil
}

// failList answers a list that broke off: by err, or where a part of the list is
// with the client, the end of the connection.
func (l *listing) failList(err error) error {
	if l.sent {
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
	return err
}
