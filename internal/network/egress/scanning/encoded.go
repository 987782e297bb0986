package scanning

import (
	"bytes"
	"io"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// Bounds of bodies of which a server reads something else than is written. A longer one is
// unseen, but for parts and pieces, which are looked through while they pass.
const (
	maxEncoded = 4 << 20
	// readingCopies is how often such a body is in memory at most while its readings are looked through.
	readingCopies = 4
)

// readings looks through all that a server may take a body for, which is read whole for that.
// Without a coding what is written is redacted first, and the rest read out of that. A body that is
// encoded is sent as it is: it can't be redacted, so what would be is blocked. read tells that
// nothing is left to look through; without an error the rest of a longer body is.
func (l *look) readings(body requestparts.Body) (read bool, err error) {
	raw, done, err := l.keepBody()
	if err != nil {
		return false, err
	}
	defer done()
	if len(raw) > maxEncoded {
		if body.HasParts() && len(body.Codings()) == 0 {
			return false, nil
		}
		return true, l.unseen("it is encoded and has more than " + sizeText(maxEncoded))
	}
	if err := l.trailer(); err != nil || len(raw) == 0 {
		return true, err
	}
	written := len(body.Codings()) == 0 // what comes first is what is written
	if written {
		if raw, err = l.scanned(raw, false); err != nil {
			return true, err
		}
		l.sendFirst(raw)
	}
	unread := body.Each(raw, func(text []byte) (more bool) {
		if written {
			written = false
			return true
		}
		_, err = l.scanned(text, true)
		return err == nil
	})
	if err == nil && unread != "" {
		err = l.unseen(unread)
	}
	return true, err
}

// keepBody reads a body, or the beginning of one that is too long. done gives back what keeping it does
// not take any more.
func (l *look) keepBody() (raw []byte, done func(), err error) {
	r := l.request
	most := int64(maxEncoded)
	if r.ContentLength >= 0 {
		most = min(most, r.ContentLength)
	}
	cost := readingCopies*most + requestparts.DecoderCost
	if err := requests.TakePlace(r, l.searches, cost); err != nil {
		return nil, nil, err
	}
	if raw, err = io.ReadAll(io.LimitReader(r.Body, maxEncoded+1)); err != nil {
		return nil, nil, err
	}
	l.sendFirst(raw)
	return raw, func() { requests.Return(r, cost-min(int64(len(raw)), cost)) }, nil
}

// sendFirst has the request send these bytes before the rest of its body.
func (l *look) sendFirst(begin []byte) {
	rest := l.request.Body
	if kept, is := rest.(*readBeginning); is {
		rest = kept.rest
	}
	l.request.Body = &readBeginning{io.MultiReader(bytes.NewReader(begin), rest), rest}
}

// readBeginning is a body of which some was read.
type readBeginning struct {
	io.Reader
	rest io.ReadCloser
}

// Close implements io.Closer.
func (b *readBeginning) Close() error { return b.rest.Close() }

// scanned looks through a text of the body; see look.lookThroughText.
func (l *look) scanned(text []byte, whole bool) (clean []byte, err error) {
	out, err := l.lookThroughText("body", string(text), whole)
	return []byte(out), err
}

func sizeText(n int) string { return strconv.Itoa(n>>20) + " MiB" }
